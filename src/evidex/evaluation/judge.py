"""What a model brings to its evaluation besides features: a temperature, and what its method says of its certainty."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

OWN = "own"
"""The name of a method's own uncertainty among the scores."""

Own = Callable[[NDArray[np.float32], Any], NDArray[np.float64] | None]


def _silent(rows: NDArray[np.float32], modality: str) -> None:
    """Of a model that says nothing about its certainty."""
    del rows, modality


@dataclass(frozen=True)
class Judge:
    """The plain dual encoder at ``temperature``, unless a method says otherwise."""

    temperature: float
    inner: bool = True
    """Whether rows can be averaged, scanned and compared with one another, as unit vectors can."""
    own: Own = _silent


def judge_of(model: Any) -> Judge:
    """What ``model`` brings; encoders that are no `Model` are plain."""
    return Judge(model.temperature, getattr(model, "inner_product", True), getattr(model, "own_uncertainty", _silent))
