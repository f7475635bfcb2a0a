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
    residential" exclude each other. Plural and case make no difference.
    """
    words = [frozenset(word.removesuffix("s") for word in as_typed(label).lower().split()) for label in labels]
    return np.array([[not (one <= other or other <= one) for other in words] for one in words], dtype=bool)
