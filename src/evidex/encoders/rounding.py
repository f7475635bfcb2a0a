"""Weights of one byte each: a matrix as whole numbers of -127 to 127, and a scale for each of its rows.

A model that is rounded so *is* its rounded numbers: every engine computes with whole number × scale, and so does the
fingerprint.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from evidex.errors import ModelError

LARGEST = 127
_TEXT_LAYERS = "text_tower.encoder.layer."
_DROPPED_BITS = 8


class RoundedTensor:
    """A matrix in bytes; numpy makes float32 of it where an array is wanted."""

    dtype = np.dtype(np.float32)

    def __init__(self, whole: Any, scales: Any) -> None:
        """``whole`` (rows, columns) and ``scales`` (rows) are arrays, or tensors of a file; ValueError otherwise."""
        if whole.dtype != np.int8 or scales.dtype != np.float32 or len(whole.shape) != 2:
            raise ValueError(f"rounded weights of {whole.dtype} with scales of {scales.dtype}")
        if scales.shape != whole.shape[:1]:
            raise ValueError(f"{scales.shape} scales for rounded weights of {whole.shape}")
        self.whole, self.scales = whole, scales
        self.shape: tuple[int, ...] = whole.shape

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        values: NDArray[Any] = np.asarray(self.whole).astype(np.float32) * np.asarray(self.scales)[:, None]
        return values if dtype is None else values.astype(dtype, copy=False)


def rounded(weight: NDArray[Any]) -> RoundedTensor:
    """The nearest matrix in bytes; one that was rounded already stays what it is."""
    values = np.asarray(weight, np.float32)
    if not np.isfinite(values).all():
        raise ModelError("the model's weights are not all numbers; fetch or train it again")
    scales = _short(np.abs(values).max(1) / np.float32(LARGEST))
    return RoundedTensor(np.rint(values / scales[:, None]).astype(np.int8), scales)


def with_text_in_bytes(weights: Mapping[str, Any]) -> dict[str, Any]:
    """``weights`` with the matrices of the text tower's layers rounded; ModelError where there are none.

    Its word table stays as it is, a text reads a few rows of it; the image tower's convolutions wait for arithmetic.
    """
    names = [name for name, value in weights.items() if name.startswith(_TEXT_LAYERS) and len(value.shape) == 2]
    if not names:
        raise ModelError("this model has no text tower of evidex's own; save it without bytes")
    return {**weights, **{name: rounded(np.asarray(weights[name])) for name in names}}


def _short(scales: NDArray[np.float32]) -> NDArray[np.float32]:
    """``scales`` with the last bits dropped, upwards: then 127 times each is exact, and gives it again when divided."""
    bits = np.maximum(scales, np.finfo(np.float32).tiny).view(np.uint32)
    kept = (bits.astype(np.uint64) + (1 << _DROPPED_BITS) - 1) >> _DROPPED_BITS << _DROPPED_BITS
    return kept.astype(np.uint32).view(np.float32)


def still_rounded(weights: Mapping[str, Any], before: Mapping[str, RoundedTensor]) -> dict[str, Any]:
    """``weights`` with those in bytes that are what they were ``before``: torch computes with floats alike."""
    same = {
        name: each
        for name, each in before.items()
        if name in weights and np.array_equal(np.asarray(weights[name]), np.asarray(each))
    }
    return {**weights, **same}
