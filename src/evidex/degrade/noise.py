"""Random numbers that are the same bits on every machine.

NumPy promises stable raw bits from a generator, but the transformations on top of them (the ziggurat, vectorised
exponentials) may differ between builds. These take raw bits and fixed tables only.
"""

from __future__ import annotations

from functools import cache
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

_LEVELS: Final = 1 << 16
# Table values are multiples of this, far coarser than what two mathematical libraries may disagree about.
NORMAL_STEP: Final = 2.0**-14


def uniform(rng: np.random.Generator, low: float, high: float, size: int) -> NDArray[np.float32]:
    """``size`` draws from [low, high)."""
    return (low + (high - low) * rng.random(size)).astype(np.float32)


def standard_normal(rng: np.random.Generator, size: int) -> NDArray[np.float32]:
    """``size`` draws from N(0, 1), each one of 65,536 equally likely quantiles."""
    indices = np.frombuffer(rng.bytes(2 * size), dtype="<u2")
    return np.take(_normal_quantiles(), indices)


@cache
def _normal_quantiles() -> NDArray[np.float32]:
    normal = NormalDist()
    upper = np.array([normal.inv_cdf((index + 0.5) / _LEVELS) for index in range(_LEVELS // 2, _LEVELS)])
    upper /= np.sqrt(np.mean(upper**2))  # the variance lost with the tails beyond the last quantile
    upper = np.rint(upper / NORMAL_STEP) * NORMAL_STEP
    table = np.concatenate([-upper[::-1], upper]).astype(np.float32)
    table.setflags(write=False)
    return table
