"""What the scan kernels take together; to numba a named tuple is its fields, so grouping costs nothing."""

from __future__ import annotations

from typing import Any, NamedTuple

TILE = 192
"""Rows whose scores a kernel holds at a time; blocks begin at multiples of it, so how blocks are cut changes no
rounding."""
LANES = 16
"""Sums that a float64 score is added up in; a power of two."""
Array = Any  # numba specialises every kernel for the element types it is called with


class GalleryRows(NamedTuple):
    """The vectors of one shard."""

    vectors: Array
    """(n, d) in float32, bfloat16 bits (uint16) or int8."""
    scales: Array
    """(n,) or empty."""
    shift: Array
    """(queries,) what is added to the scores."""


class RowSpan(NamedTuple):
    """The rows of one block: ``first`` to ``stop``, or, if ``gather``, those that ``rows[first:stop]`` names."""

    rows: Array
    gather: bool
    first: int
    stop: int
    base: int
    """The id of row 0."""


class Kept(NamedTuple):
    """What a pass leaves, changed in place."""

    heap_scores: Array
    """(queries, capacity) the best rows so far, with `heap_rows` and `sizes`."""
    heap_rows: Array
    sizes: Array
    peaks: Array
    """(queries,) for the block, the largest score."""
    sums: Array
    """(queries,) for the block, Σ exp((s - peak)/τ)."""


class Int8Queries(NamedTuple):
    """Queries rounded to int8; see the kernels for the shapes."""

    codes: Array
    scales: Array
    bias: Array


class TileSums(NamedTuple):
    """Places for the sums of one tile, a lane each."""

    peaks: Array
    sums: Array
    totals: Array
