"""How a question stands to what the model was taught: words it never met, what may have been meant, faint matches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

import numpy as np
from numpy.typing import NDArray

from evidex.encoders.acquaintance import STRANGE, Acquaintance
from evidex.retrieval.filters import Target
from evidex.retrieval.gate import Direction
from evidex.retrieval.phrasing import asked_for
from evidex.retrieval.queries import Query

Words = tuple[str, ...]
_MOST_WORDS = 3  # looked up for a question
_LEAST_LETTERS = 4  # shorter words are close to many
_CLOSE = 0.8  # of difflib's ratio: "rivr" and "river" have .89


def strange_words(
    known: Acquaintance | None, queries: Sequence[Query], vectors: NDArray[np.float32], direction: Direction
) -> list[Words]:
    """For each text that is strange to the model the words that it was never taught, for others none."""
    if known is None or direction == "image":
        return [()] * len(queries)
    outside = ~(known.strangeness(vectors) <= STRANGE)
    return [known.new_words(asked_for(query)) if far else () for query, far in zip(queries, outside, strict=True)]


def ignored_words(
    known: Acquaintance | None, queries: Sequence[Query], strange: Sequence[Words], direction: Direction
) -> list[Words]:
    """The words that the model was never taught, of the texts that are not strange all the same."""
    if known is None or direction == "image":
        return [()] * len(queries)
    return [() if words else known.new_words(asked_for(query)) for query, words in zip(queries, strange, strict=True)]


def meant(known: Acquaintance | None, words: Iterable[str]) -> Words:
    """Taught words that are spelt nearly like ``words``, as a slip of the pen would."""
    if known is None:
        return ()
    close = []
    for word in [word for word in words if len(word) >= _LEAST_LETTERS][:_MOST_WORDS]:
        # A slip seldom hits the first letter; so few candidates cost nothing beside the encoder.
        near = sorted(taught for taught in known.words if taught[0] == word[0] and abs(len(taught) - len(word)) <= 2)
        close += get_close_matches(word, near, n=1, cutoff=_CLOSE)
    return tuple(dict.fromkeys(close))


def least_match(known: Acquaintance | None, direction: Direction, target: Target) -> float | None:
    """The similarity that nearly all right answers have at least; None where the model does not know."""
    return None if known is None or (direction, target) != ("text", "images") else known.least_match


def is_faint(known: Acquaintance | None, scores: NDArray[np.floating]) -> bool:
    """Whether the best of ``scores``, if there is any, is less than most right answers have."""
    fair = None if known is None else known.fair_match
    return fair is not None and len(scores) > 0 and not scores[0] >= fair
