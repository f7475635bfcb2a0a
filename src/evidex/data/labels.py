"""Labels as texts, and which of them exclude each other."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

# A label that is written together has words of three letters at least, and of more than four in the mean: "parkinglot"
# is made of two, but "chaparral" is not "cha par ral".
_SHORTEST_PART, _MEAN_PART = 3, 4


def as_typed(label: str) -> str:
    """The label as somebody would type it."""
    return " ".join(label.replace("_", " ").replace("-", " ").split())


def spelt_apart(label: str, words: Collection[str]) -> str:
    """The label as typed, what is written together taken apart into the fewest of ``words``: "golfcourse" is two.

    A word that is one of ``words``, or made of none of them, stays as it is.
    """
    return " ".join(_parts(word, words) or word for word in as_typed(label).lower().split())


def _parts(word: str, words: Collection[str]) -> str | None:
    """The fewest of ``words`` that make up ``word``; None where it is one of them or they do not."""
    if word in words:
        return None
    best: list[list[str] | None] = [[], *[None] * len(word)]
    for end in range(_SHORTEST_PART, len(word) + 1):
        for start in range(end - _SHORTEST_PART + 1):
            before, known = best[start], best[end]
            if before is None or word[start:end] not in words:
                continue
            if known is None or len(before) + 1 < len(known):
                best[end] = [*before, word[start:end]]
    found = best[-1]
    return None if found is None or len(word) <= _MEAN_PART * len(found) else " ".join(found)


def exclusions(labels: Sequence[str], sources: Sequence[Collection[str]] | None = None) -> np.ndarray:
    """(n, n) bool: which labels cannot hold together, as neither has all words of the other.

    "residential" excludes neither "dense residential" nor "residential area"; "dense residential" and "sparse
    residential" exclude each other. Plural, case and whether words are written together make no difference.
    ``sources`` are the labels of each dataset: only those exclude each other between which somebody had to choose, as
    one dataset's "port" is another's "harbor".
    """
    glued = [as_typed(label).lower().replace(" ", "").removesuffix("s") for label in labels]
    words = [frozenset(word.removesuffix("s") for word in as_typed(label).lower().split()) for label in labels]
    numbers = range(len(labels))

    def exclude(one: int, other: int) -> bool:
        if sources is not None and not any(labels[one] in own and labels[other] in own for own in sources):
            return False
        return glued[one] != glued[other] and not (words[one] <= words[other] or words[other] <= words[one])

    return np.array([[exclude(one, other) for other in numbers] for one in numbers], dtype=bool)
