"""Which kernel scans a block for a batch of queries, and the queries in the form it wants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evidex.retrieval import kernels, tiles
from evidex.retrieval.quantize import Floats
from evidex.retrieval.shards import Block, Shard

RunBlock = Callable[..., tuple[int, float]]
_MOST_INT8_DIMENSIONS = 65536  # products up to 255·127 still add up within 32 bits


def plan(queries: Floats, shards: list[Shard], inverse_temperature: float) -> RunBlock:
    """Return ``run(block, heap_scores, heap_rows, sizes, peaks, sums)``, safe to call from several threads."""
    count, dim = queries.shape
    lanes = tiles.NARROW if count <= tiles.NARROW else tiles.WIDE
    packed = None if count == 1 else _pack(queries, lanes)
    shifts = {shard.base: _shifts(queries, shard, lanes) for shard in shards}
    codes = _Int8Queries(queries, lanes) if count > 1 and tiles.HAS_INT8_DOT and dim <= _MOST_INT8_DIMENSIONS else None

    def run(block: Block, *outputs: NDArray[Any]) -> tuple[int, float]:
        shard = block.shard
        where = (block.rows, block.gather, block.first, block.stop, shard.base, inverse_temperature)
        shift = shifts[shard.base]
        if packed is None:
            return kernels.scan_one(queries[0], shard.values, shard.scales, shift, *where, shard.is_float32, *outputs)
        if codes is not None and shard.values.dtype == np.int8:
            return kernels.scan_batch_int8(
                codes.packed, codes.scales, codes.bias, shard.values, shard.scales, shift, *where, *outputs
            )
        direct = shard.is_float32 and not block.gather
        exactly = shard.is_float32
        return kernels.scan_batch(packed, shard.values, shard.scales, shift, *where, exactly, direct, *outputs)

    return run


class _Int8Queries:
    """Queries rounded to int8 in several ways, four dimensions side by side as the instruction takes them.

    One rounding would err in the same direction for every row, and a gallery of similar rows would shift the evidence
    with it. Version ``p`` rounds up from a different fraction, so over neighbouring rows the errors average out.
    """

    def __init__(self, queries: Floats, lanes: int) -> None:
        count, dim = queries.shape
        largest = np.abs(queries).max(axis=1)
        self.scales = np.zeros(_padded(count, lanes), np.float32)
        self.scales[:count] = np.where(largest > 0, largest / 127, 1)
        steps, groups = -(-dim // 4), len(self.scales) // lanes
        versions = kernels.QUERY_VERSIONS
        codes = np.zeros((versions, groups * lanes, 4 * steps), np.int8)
        thresholds = (np.arange(versions, dtype=np.float32) + np.float32(0.5)) / versions
        exact = queries / self.scales[:count, None]
        codes[:, :count, :dim] = np.floor(exact + thresholds[:, None, None]).clip(-127, 127)
        self.bias = 128 * codes.sum(axis=2, dtype=np.int32)
        quads = codes.reshape(versions, groups, lanes, steps, 4)
        self.packed = np.ascontiguousarray(quads.transpose(0, 1, 3, 2, 4))


def _pack(queries: Floats, lanes: int) -> Floats:
    """(groups, d, lanes), the last group filled up with zeros."""
    count, dim = queries.shape
    padded = np.zeros((_padded(count, lanes), dim), np.float32)
    padded[:count] = queries
    return np.ascontiguousarray(padded.reshape(-1, lanes, dim).transpose(0, 2, 1))


def _shifts(queries: Floats, shard: Shard, lanes: int) -> Floats:
    shifts = np.zeros(_padded(len(queries), lanes), np.float32)
    shifts[: len(queries)] = shard.shifts(queries)
    return shifts


def _padded(count: int, lanes: int) -> int:
    return -(-count // lanes) * lanes
