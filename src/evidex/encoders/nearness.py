"""Common English words and how near each stands to what a model was taught about.

The words a model was taught are those of its captions; people use others. A pretrained text tower, before it is trained
on captions, knows which of them speak of the same world: "quarry" is near "an open pit mine", "toothbrush" is near
nothing. That tower does not come with the model, so its judgement of some twenty thousand words does, one byte each,
and the rarer ones that are near.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

NEAR = 0.9
"""Share of common words that stand further from what was taught than one that is near."""
_HIGHEST = 255


@dataclass(frozen=True, eq=False)
class Nearness:
    """Sorted words, and for each the share of all that stand further off, in 255 steps."""

    words: tuple[str, ...]
    ranks: NDArray[np.uint8]

    def __post_init__(self) -> None:
        if not self.words or self.ranks.dtype != np.uint8 or self.ranks.shape != (len(self.words),):
            raise ValueError("the table of words and their nearness does not fit together")
        if any(first >= second for first, second in zip(self.words, self.words[1:], strict=False)):
            raise ValueError("the words of the table of nearness are not in order")

    @classmethod
    def of(
        cls,
        words: Sequence[str],
        vectors: NDArray[np.floating],
        taught: NDArray[np.floating],
        rarer: Sequence[str] = (),
        rarer_vectors: NDArray[np.floating] | None = None,
    ) -> Nearness:
        """From unit rows of ``words`` and of texts that were ``taught``, in a space that was not trained on these.

        Of ``rarer`` words, none of them in ``words``, only those that are near are kept: the others would say nothing.
        """
        mean = taught.mean(axis=0, dtype=np.float64)
        like = vectors.astype(np.float64) @ mean
        ranks = np.empty(len(words), np.float64)
        ranks[np.argsort(like, kind="stable")] = np.linspace(0.0, 1.0, len(words))
        all_words, all_ranks = list(words), ranks
        if rarer_vectors is not None:
            further = np.searchsorted(np.sort(like), rarer_vectors.astype(np.float64) @ mean) / len(words)
            near = further >= NEAR
            all_words += [word for word, kept in zip(rarer, near, strict=True) if kept]
            all_ranks = np.concatenate([ranks, further[near]])
        order = sorted(range(len(all_words)), key=all_words.__getitem__)
        stored = np.round(_HIGHEST * all_ranks[order]).astype(np.uint8)
        return cls(tuple(all_words[i] for i in order), stored)

    def __contains__(self, word: str) -> bool:
        return self._place(word) is not None

    def is_near(self, word: str) -> bool:
        """Whether ``word`` is one of the table that is near."""
        place = self._place(word)
        return place is not None and bool(self.ranks[place] >= NEAR * _HIGHEST)

    def furthest(self, share: float) -> list[str]:
        """The words that stand furthest off, ``share`` of all."""
        return [word for word, rank in zip(self.words, self.ranks, strict=True) if rank < share * _HIGHEST]

    def _place(self, word: str) -> int | None:
        place = bisect_left(self.words, word)
        return place if place < len(self.words) and self.words[place] == word else None


def common_words(vocabulary: Sequence[str]) -> list[str]:
    """The whole words among the pieces of a tower's vocabulary."""
    return [piece for piece in dict.fromkeys(vocabulary) if len(piece) > 2 and piece.isascii() and piece.isalpha()]
