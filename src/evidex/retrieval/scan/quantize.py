"""Smaller forms of gallery vectors: bfloat16 (half the bytes) and int8 (a quarter)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evidex.errors import InputError
from evidex.retrieval.scan.aligned import empty_aligned

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Int8Vectors:
    """Rows ``offset + scales[i] * codes[i]``.

    The offset (normally the mean row) takes out what all rows share, so the codes spend their 8 bits on the differences
    and an error in rounding the *query* to 8 bits does not shift all scores of the gallery together.
    """

    codes: NDArray[np.int8]
    """(n, d)"""
    scales: Floats
    """(n,)"""
    offset: Floats
    """(d,)"""

    def __post_init__(self) -> None:
        rows, dim = _shape(self.codes, np.int8, "int8 codes")
        if self.scales.shape != (rows,) or self.offset.shape != (dim,):
            raise InputError(
                f"int8 codes of shape {self.codes.shape} need {rows} scales and an offset of {dim},"
                f" got {self.scales.shape} and {self.offset.shape}; store all three together"
            )

    @property
    def shape(self) -> tuple[int, int]:
        rows, dim = self.codes.shape
        return rows, dim

    def decode(self) -> Floats:
        return self.offset + self.scales[:, None] * self.codes.astype(np.float32)


def quantize_int8(vectors: Floats, offset: Floats | None = None, *, block_rows: int = 16384) -> Int8Vectors:
    """Round float32 rows to int8, each with its own scale; ``offset`` defaults to the mean row.

    To append to a stored gallery, pass the offset it was made with.
    """
    rows, dim = _shape(vectors, np.float32, "vectors")
    if offset is None:
        total = np.zeros(dim)
        for start in range(0, rows, block_rows):
            total += vectors[start : start + block_rows].sum(axis=0, dtype=np.float64)
        offset = (total / max(rows, 1)).astype(np.float32)
    codes = empty_aligned((rows, dim), np.int8)
    scales = np.empty(rows, np.float32)
    for start in range(0, rows, block_rows):
        part = slice(start, start + block_rows)
        centred = vectors[part] - offset
        largest = np.abs(centred).max(axis=1, initial=0.0)
        if not np.isfinite(largest).all():
            row = start + int(np.flatnonzero(~np.isfinite(largest))[0])
            raise InputError(f"row {row} is not finite and cannot be rounded to int8; encode that item again")
        # A row equal to the offset has only zero codes, whatever its scale.
        scales[part] = np.where(largest > 0, largest / 127, 1)
        codes[part] = np.rint(centred / scales[part, None]).clip(-127, 127)
    return Int8Vectors(codes, scales, offset)


def to_bfloat16(vectors: Floats) -> NDArray[np.uint16]:
    """Round float32 to the nearest bfloat16 (ties to even), kept as its upper 16 bits."""
    bits = np.ascontiguousarray(vectors, np.float32).view(np.uint32)
    rounded = ((bits + (0x7FFF + ((bits >> 16) & 1))) >> 16).astype(np.uint16)
    # Rounding up the payload of a NaN could carry into infinity or into the sign.
    return np.where(np.isnan(vectors), np.uint16(0x7FC0), rounded)


def from_bfloat16(bits: NDArray[np.uint16]) -> Floats:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def _shape(array: NDArray[np.generic], dtype: type[np.generic], what: str) -> tuple[int, int]:
    if array.ndim != 2 or array.dtype != dtype:
        raise InputError(f"{what} must be a {np.dtype(dtype)} array of rows, got {array.dtype} of shape {array.shape}")
    rows, dim = array.shape
    return rows, dim
