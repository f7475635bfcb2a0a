"""Which kernel scans a block for a batch of queries, and the queries in the form it wants."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from evidex.retrieval.scan import kernels, register_tiles
from evidex.retrieval.scan.aligned import aligned, empty_aligned
from evidex.retrieval.scan.arguments import GalleryRows, Int8Queries, Kept
from evidex.retrieval.scan.quantize import Floats
from evidex.retrieval.scan.shards import Block, Shard

RunBlock = Callable[[Block, Kept], tuple[int, float]]
_MOST_INT8_DIMENSIONS = 65536  # products up to 255·127 still add up within 32 bits


def choose_kernel(queries: Floats, shards: list[Shard], inverse_temperature: float) -> RunBlock:
    """Return ``run(block, kept)``, safe to call from several threads."""
    count, dim = queries.shape
    lanes = register_tiles.NARROW if count <= register_tiles.NARROW else register_tiles.WIDE
    packed = None if count == 1 else _pack(queries, lanes)
    shifts = {shard.base: _shifts(queries, shard, lanes) for shard in shards}
    use_codes = register_tiles.HAS_INT8_DOT and dim <= _MOST_INT8_DIMENSIONS and any(shard.is_int8 for shard in shards)
    levels = _int8_levels(queries[0]) if use_codes and count == 1 else None
    versions = _int8_versions(queries, lanes) if use_codes and count > 1 else None

    def run(block: Block, kept: Kept) -> tuple[int, float]:
        shard, span = block.shard, block.arguments
        gallery = GalleryRows(shard.values, shard.scales, shifts[shard.base])
        if shard.is_int8 and levels is not None:
            return kernels.scan_one_int8(levels, gallery, span, inverse_temperature, kept)
        if shard.is_int8 and versions is not None:
            return kernels.scan_batch_int8(versions, gallery, span, inverse_temperature, kept)
        if packed is None:
            return kernels.scan_one(queries[0], gallery, span, inverse_temperature, shard.is_float32, kept)
        direct = shard.is_float32 and not block.gather
        return kernels.scan_batch(packed, gallery, span, inverse_temperature, shard.is_float32, direct, kept)

    return run


def _int8_levels(query: Floats) -> Int8Queries:
    """One query as the sum of a coarse and a fine row of int8 codes: as good as 15 bits."""
    coarse_scale = float(np.abs(query).max()) / 127 or 1.0
    scales = np.array([coarse_scale, coarse_scale / 254], np.float32)
    codes = empty_aligned((2, _padded(len(query), register_tiles.ROW_CHUNK)), np.int8)
    codes[:, len(query) :] = 0
    exact = query / scales[0]
    codes[0, : len(query)] = np.rint(exact).clip(-127, 127)
    rest = (exact - codes[0, : len(query)]) * 254
    codes[1, : len(query)] = np.rint(rest).clip(-127, 127)
    return Int8Queries(codes, scales, 128 * codes.sum(axis=1, dtype=np.int64))


def _int8_versions(queries: Floats, lanes: int) -> Int8Queries:
    """Queries rounded to int8 in several ways, four dimensions side by side as the instruction takes them.

    One rounding would err in the same direction for every row, and a gallery of similar rows would shift the evidence
    with it. Version ``p`` rounds up from a different fraction, so over neighbouring rows the errors average out.
    """
    count, dim = queries.shape
    largest = np.abs(queries).max(axis=1)
    scales = np.zeros(_padded(count, lanes), np.float32)
    scales[:count] = np.where(largest > 0, largest / 127, 1)
    steps, groups = -(-dim // 4), len(scales) // lanes
    versions = kernels.QUERY_VERSIONS
    codes = np.zeros((versions, groups * lanes, 4 * steps), np.int8)
    thresholds = (np.arange(versions, dtype=np.float32) + np.float32(0.5)) / versions
    exact = queries / scales[:count, None]
    codes[:, :count, :dim] = np.floor(exact + thresholds[:, None, None]).clip(-127, 127)
    quads = codes.reshape(versions, groups, lanes, steps, 4)
    packed = aligned(quads.transpose(0, 1, 3, 2, 4))
    return Int8Queries(packed, scales, 128 * codes.sum(axis=2, dtype=np.int32))


def _pack(queries: Floats, lanes: int) -> Floats:
    """(groups, d, lanes), the last group filled up with zeros."""
    count, dim = queries.shape
    padded = np.zeros((_padded(count, lanes), dim), np.float32)
    padded[:count] = queries
    return aligned(padded.reshape(-1, lanes, dim).transpose(0, 2, 1))


def _shifts(queries: Floats, shard: Shard, lanes: int) -> Floats:
    shifts = np.zeros(_padded(len(queries), lanes), np.float32)
    shifts[: len(queries)] = shard.shifts(queries)
    return shifts


def _padded(count: int, lanes: int) -> int:
    return -(-count // lanes) * lanes
