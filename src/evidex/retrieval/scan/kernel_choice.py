"""Which kernel scans a block for a batch of queries, and the queries in the form it wants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evidex.retrieval.scan import kernels, register_tiles
from evidex.retrieval.scan.quantize import Floats
from evidex.retrieval.scan.shards import Block, Shard

RunBlock = Callable[..., tuple[int, float]]
_MOST_INT8_DIMENSIONS = 65536  # products up to 255·127 still add up within 32 bits


def choose_kernel(queries: Floats, shards: list[Shard], inverse_temperature: float) -> RunBlock:
    """Return ``run(block, heap_scores, heap_rows, sizes, peaks, sums)``, safe to call from several threads."""
    count, dim = queries.shape
    lanes = register_tiles.NARROW if count <= register_tiles.NARROW else register_tiles.WIDE
    packed = None if count == 1 else _pack(queries, lanes)
    shifts = {shard.base: _shifts(queries, shard, lanes) for shard in shards}
    use_codes = register_tiles.HAS_INT8_DOT and dim <= _MOST_INT8_DIMENSIONS and any(shard.is_int8 for shard in shards)
    levels = _Int8Levels(queries[0]) if use_codes and count == 1 else None
    versions = _Int8Versions(queries, lanes) if use_codes and count > 1 else None

    def run(block: Block, *outputs: NDArray[Any]) -> tuple[int, float]:
        shard = block.shard
        where: tuple[Any, ...] = (block.rows, block.gather, block.first, block.stop, shard.base, inverse_temperature)
        gallery: tuple[Any, ...] = (shard.values, shard.scales, shifts[shard.base])
        if shard.is_int8 and levels is not None:
            return kernels.scan_one_int8(levels.codes, levels.scales, levels.bias, *gallery, *where, *outputs)
        if shard.is_int8 and versions is not None:
            return kernels.scan_batch_int8(versions.packed, versions.scales, versions.bias, *gallery, *where, *outputs)
        if packed is None:
            return kernels.scan_one(queries[0], *gallery, *where, *(shard.is_float32, *outputs))
        direct = shard.is_float32 and not block.gather
        return kernels.scan_batch(packed, *gallery, *where, *(shard.is_float32, direct, *outputs))

    return run


class _Int8Levels:
    """One query as the sum of a coarse and a fine row of int8 codes: as good as 15 bits."""

    def __init__(self, query: Floats) -> None:
        coarse_scale = float(np.abs(query).max()) / 127 or 1.0
        self.scales = np.array([coarse_scale, coarse_scale / 254], np.float32)
        self.codes = np.zeros((2, -(-len(query) // register_tiles.ROW_CHUNK) * register_tiles.ROW_CHUNK), np.int8)
        exact = query / self.scales[0]
        self.codes[0, : len(query)] = np.rint(exact).clip(-127, 127)
        rest = (exact - self.codes[0, : len(query)]) * 254
        self.codes[1, : len(query)] = np.rint(rest).clip(-127, 127)
        self.bias = 128 * self.codes.sum(axis=1, dtype=np.int64)


class _Int8Versions:
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
