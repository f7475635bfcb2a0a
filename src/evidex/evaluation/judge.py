"""How a model compares its rows, and what its method says itself of its certainty."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evidex.evaluation.features import Compare, compare_of, inner_product

OWN = "own"
"""The name of a method's own uncertainty among the scores."""

Own = Callable[[NDArray[np.float32], Any], NDArray[np.float64] | None]


def _silent(rows: NDArray[np.float32], modality: str) -> None:
    """Of a model that says nothing about its certainty."""
    del rows, modality


@dataclass(frozen=True)
class Judge:
    """The plain dual encoder, unless a method says otherwise."""

    compare: Compare = inner_product
    inner: bool = True
    """Whether rows can be averaged, scanned and compared with one another, as unit vectors can."""
    own: Own = _silent


def judge_of(model: object) -> Judge:
    """What ``model`` brings; encoders that are no `Model` are plain."""
    return Judge(compare_of(model), getattr(model, "inner_product", True), getattr(model, "own_uncertainty", _silent))
