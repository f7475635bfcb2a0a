"""A gallery as a row of shards, cut into blocks of rows for the scan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evidex.errors import InputError
from evidex.retrieval.scan.arguments import TILE, RowSpan
from evidex.retrieval.scan.partial import Ids, Scores
from evidex.retrieval.scan.quantize import Floats, Int8Vectors

Vectors = Floats | NDArray[np.uint16] | Int8Vectors

_BLOCK_VALUES = 1 << 22
_NO_SCALES = np.empty(0, np.float32)
_NO_ROWS = np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class Shard:
    """Rows that lie together; row 0 has the id ``base``."""

    values: NDArray[Any]
    """(n, d) float32, bfloat16 bits or int8 codes; contiguous and read-only."""
    scales: Floats
    """(n,) of int8 rows, otherwise empty."""
    offset: Floats
    """(d,) of int8 rows, otherwise empty."""
    base: int

    def __len__(self) -> int:
        return len(self.values)

    @property
    def is_float32(self) -> bool:
        return self.values.dtype == np.float32

    @property
    def is_int8(self) -> bool:
        return self.values.dtype == np.int8

    def shifts(self, queries: Floats) -> Scores:
        """What the offset adds to every score of each query."""
        if self.offset.size == 0:
            return np.zeros(len(queries))
        return np.asarray((queries.astype(np.float64) * self.offset).sum(axis=1))


@dataclass(frozen=True, eq=False)
class Block:
    """Rows ``first`` to ``stop`` of a shard or, if ``gather``, those that ``rows[first:stop]`` names."""

    shard: Shard
    first: int
    stop: int
    rows: Ids
    gather: bool

    @property
    def arguments(self) -> RowSpan:
        """As the kernels take it."""
        return RowSpan(self.rows, self.gather, self.first, self.stop, self.shard.base)

    @property
    def span(self) -> tuple[int, int]:
        """The first id and the one after the last."""
        first, last = (self.first, self.stop - 1)
        if self.gather:
            first, last = int(self.rows[first]), int(self.rows[last])
        return self.shard.base + first, self.shard.base + last + 1


def as_shards(vectors: Vectors | Sequence[Vectors], dim: int) -> list[Shard]:
    """Check and number the shards. An array whose rows do not lie one after the other in memory is copied."""
    parts = [vectors] if isinstance(vectors, (np.ndarray, Int8Vectors)) else list(vectors)
    shards = []
    base = 0
    for part in parts:
        if len(part.shape) != 2 or part.shape[1] != dim:
            raise InputError(f"gallery vectors of shape {part.shape} do not fit queries of {dim} dimensions")
        if isinstance(part, Int8Vectors):
            shard = Shard(_read_only(part.codes), _read_only(part.scales), _read_only(part.offset), base)
        elif part.dtype in (np.float32, np.uint16):
            shard = Shard(_read_only(part), _NO_SCALES, _NO_SCALES, base)
        else:
            raise InputError(f"gallery vectors are {part.dtype}; give float32, bfloat16 bits (uint16) or Int8Vectors")
        if len(shard):
            shards.append(shard)
        base += len(shard)
    return shards


def selected_rows(rows: NDArray[np.bool_] | Ids, total: int) -> Ids:
    """Sorted ids from a mask or from sorted ids."""
    if rows.dtype == np.bool_:
        if rows.shape != (total,):
            raise InputError(f"a mask of shape {rows.shape} does not fit {total} rows; give one value for each row")
        return np.flatnonzero(rows)
    if rows.ndim != 1 or not np.issubdtype(rows.dtype, np.integer):
        raise InputError(f"rows are {rows.dtype} of shape {rows.shape}; give a mask or a list of row ids")
    ids = rows.astype(np.int64)
    if len(ids) and (ids[0] < 0 or ids[-1] >= total or (np.diff(ids) <= 0).any()):
        raise InputError(f"row ids must be sorted, each once, within 0 to {total - 1}")
    return ids


def cut_into_blocks(shards: list[Shard], selected: Ids | None) -> list[Block]:
    """A fixed partition: it depends on the gallery and the selection, not on the threads that will work on it.

    Blocks are rounded up to whole tiles of the kernels.
    """
    blocks: list[Block] = []
    for shard in shards:
        first, stop, rows, gather = 0, len(shard), _NO_ROWS, False
        if selected is not None:
            start, end = np.searchsorted(selected, [shard.base, shard.base + len(shard)])
            if start == end:
                continue
            rows = selected[start:end] - shard.base
            gather = bool(rows[-1] - rows[0] + 1 != len(rows))
            first, stop = (0, len(rows)) if gather else (int(rows[0]), int(rows[-1]) + 1)
        size = max(_BLOCK_VALUES // shard.values.shape[1], 1)
        size = -(-size // TILE) * TILE
        blocks += [Block(shard, i, min(i + size, stop), rows, gather) for i in range(first, stop, size)]
    return blocks


def score_rows(queries: Floats, shards: list[Shard], ids: Ids) -> Scores:
    """Scores in float64 of each query with its own rows, ``ids`` (q, m)."""
    from evidex.retrieval.scan.kernels import rescore

    scores = np.empty(ids.shape)
    for shard in shards:
        rescore(queries, shard.values, shard.scales, shard.shifts(queries), shard.base, ids, scores)
    return scores


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    # One kind of array (plain, contiguous, read-only) means one compiled kernel for each element type.
    plain = np.ascontiguousarray(array).view()
    plain.flags.writeable = False
    return plain
