"""Captions of a gallery as queries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

MOST_SELF_QUERIES = 500
_Row = TypeVar("_Row")


def one_caption_each(captioned: Sequence[tuple[_Row, list[str]]], rng: np.random.Generator) -> list[tuple[_Row, str]]:
    """A bounded number of rows, each with one of its captions.

    Captions of one image are right or wrong together; a guarantee counts independent queries.
    """
    chosen = [captioned[i] for i in rng.permutation(len(captioned))[:MOST_SELF_QUERIES]]
    return [(row, captions[int(rng.integers(len(captions)))]) for row, captions in chosen]
