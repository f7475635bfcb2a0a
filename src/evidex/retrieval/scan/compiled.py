"""Small compiled pieces that the scan kernels share: element types, exp, the heap of best rows, the running sum."""

from __future__ import annotations

import hashlib
import math
import pkgutil
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numba import njit, types
from numba.extending import overload

from evidex.retrieval.scan.arguments import Array

_Function = TypeVar("_Function", bound=Callable[..., Any])

# numba caches a function by the content of its own file only, though what it calls is compiled into it.
_COMPILED_IN = ("arguments.py", "compiled.py", "register_tiles.py")
_CONTENT = b"".join(pkgutil.get_data("evidex.retrieval.scan", name) or b"" for name in _COMPILED_IN)
_EDITION = hashlib.sha256(_CONTENT).hexdigest()[:12]


def _compile(function: _Function, **options: Any) -> _Function:
    function.__qualname__ += f"_{_EDITION}"  # becomes part of the name of the cached file
    try:
        compiled: _Function = njit(nogil=True, error_model="numpy", cache=True, **options)(function)
    except RuntimeError:  # no directory for the cache can be written: compile in every process instead
        compiled = njit(nogil=True, error_model="numpy", **options)(function)
    return compiled


def strict(function: _Function) -> _Function:
    return _compile(function)


def fast(function: _Function) -> _Function:
    """Sums may be reordered for vector registers; NaN and infinity keep their meaning, so they can be noticed."""
    return _compile(function, fastmath={"reassoc", "contract", "nsz"})


def widen(value: Any) -> Any:
    """One gallery element as float32, in compiled code only: the overload below gives each element type its own."""
    raise TypeError(f"widen({value!r}) outside compiled code")


@overload(widen, inline="always")  # type: ignore[untyped-decorator]
def _widen_for(value: Any) -> Any:
    def from_bfloat16(value: Any) -> Any:
        return np.uint32(np.uint32(value) << np.uint32(16)).view(np.float32)

    def from_number(value: Any) -> Any:
        return np.float32(value)

    return from_bfloat16 if value == types.uint16 else from_number


@strict
def exp(x: Any) -> Any:
    """exp for x <= 0 in float32, to about 1e-7; branchless, so that loops over it use vector registers."""
    x = max(x, np.float32(-87.0))
    n = np.floor(x * np.float32(1.44269504) + np.float32(0.5))
    r = x - n * np.float32(0.693359375)
    r = r - n * np.float32(-2.12194440e-4)
    p = np.float32(1.9875691500e-4)
    p = p * r + np.float32(1.3981999507e-3)
    p = p * r + np.float32(8.3334519073e-3)
    p = p * r + np.float32(4.1665795894e-2)
    p = p * r + np.float32(1.6666665459e-1)
    p = p * r + np.float32(5.0000001201e-1)
    p = p * (r * r) + r + np.float32(1.0)
    return p * np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)


@strict
def _worse(score: Any, row: int, other_score: Any, other_row: int) -> bool:
    return bool(score < other_score or (score == other_score and row > other_row))


@strict
def push(scores: Array, rows: Array, size: int, score: Any, row: int) -> int:
    """Offer a row to a heap whose root is the worst row kept; return its new size."""
    capacity = scores.shape[0]
    if size < capacity:
        child = size
        while child > 0:
            parent = (child - 1) >> 1
            if not _worse(score, row, scores[parent], rows[parent]):
                break
            scores[child], rows[child] = scores[parent], rows[parent]
            child = parent
        scores[child], rows[child] = score, row
        return size + 1
    if not _worse(scores[0], rows[0], score, row):
        return size
    parent = 0
    while True:
        child = 2 * parent + 1
        if child >= capacity:
            break
        if child + 1 < capacity and _worse(scores[child + 1], rows[child + 1], scores[child], rows[child]):
            child += 1
        if not _worse(scores[child], rows[child], score, row):
            break
        scores[parent], rows[parent] = scores[child], rows[child]
        parent = child
    scores[parent], rows[parent] = score, row
    return size


@strict
def add_tile(peaks: Array, sums: Array, query: int, peak: Any, total: Any, inverse_temperature: float) -> None:
    """Join the sum of a tile to that of the block, in float64 (the running form of log-sum-exp)."""
    if peak > peaks[query]:
        sums[query] = sums[query] * math.exp((peaks[query] - peak) * inverse_temperature) + total
        peaks[query] = peak
    else:
        sums[query] += total * math.exp((peak - peaks[query]) * inverse_temperature)
