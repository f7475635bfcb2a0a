"""The gallery's vectors as the scan reads them: exact, or rounded to read less memory with the head scored exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from evidex.errors import InputError
from evidex.retrieval.scan.quantize import Int8Vectors, quantize_int8, to_bfloat16

Precision = Literal["float32", "bfloat16", "int8"]


@dataclass(frozen=True, eq=False)
class ScanVectors:
    """What is scanned, and for rounded vectors the exact ones that the best rows are scored with again."""

    scanned: NDArray[np.float32] | NDArray[np.uint16] | Int8Vectors
    exact: NDArray[np.float32] | None = None
    ensure: Callable[[int, int], None] | None = None
    """Called with the first and last row of what is read next; raises where that is damaged."""


def checked_precision(name: str) -> Precision:
    """Return ``name`` if it is a precision."""
    if name not in get_args(Precision):
        raise InputError(f"precision '{name}' is unknown; choose {', '.join(get_args(Precision))}")
    return cast(Precision, name)


def scan_vectors(vectors: NDArray[np.float32], precision: Precision) -> ScanVectors:
    """Round ``vectors`` (rows, dim); bfloat16 takes half the memory of the exact ones, int8 a quarter."""
    if checked_precision(precision) == "float32" or len(vectors) == 0:
        return ScanVectors(vectors)
    return ScanVectors(quantize_int8(vectors) if precision == "int8" else to_bfloat16(vectors), vectors)
