"""Labels as texts, and which of them exclude each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def as_typed(label: str) -> str:
    """The label as somebody would type it."""
    return " ".join(label.replace("_", " ").replace("-", " ").split())


def exclusions(labels: Sequence[str]) -> np.ndarray:
    """(n, n) bool: which labels cannot hold together, as neither has all words of the other.

    "residential" excludes neither "dense residential" nor "residential area"; "dense residential" and "sparse
    residential" exclude each other. Plural, case and whether words are written together make no difference.
    """
    glued = [as_typed(label).lower().replace(" ", "").removesuffix("s") for label in labels]
    words = [frozenset(word.removesuffix("s") for word in as_typed(label).lower().split()) for label in labels]
    numbers = range(len(labels))

    def exclude(one: int, other: int) -> bool:
        return glued[one] != glued[other] and not (words[one] <= words[other] or words[other] <= words[one])

    return np.array([[exclude(one, other) for other in numbers] for one in numbers], dtype=bool)
