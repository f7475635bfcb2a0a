"""Compiled loops of the scan: one pass that keeps the best rows and sums the evidence.

Each kernel works on one block of rows of one shard, in tiles whose scores stay in the cache. It returns the smallest
id of a row whose score is not finite (-1: none) and the largest squared row norm (0 unless ``certify``), from which
the caller bounds the rounding of float32. Kernels release the interpreter lock and touch no global state.

Common arguments: ``vectors`` (n, d) in float32, bfloat16 bits (uint16) or int8; ``scales`` (n,) or empty; ``shift``
is added to the scores; ``rows`` the selected rows if ``gather``, then ``first`` and ``stop`` index it, otherwise the
rows; ``base`` the id of row 0; ``heap_*`` the best rows so far, changed in place; ``peaks`` and ``sums`` receive, for
the block, the largest score and Σ exp((s - peak)/τ).
"""

from __future__ import annotations

import math

import numpy as np

from evidex.retrieval.scan import tiles
from evidex.retrieval.scan.compiled import Array, add_tile, exp, fast, push, strict, widen
from evidex.retrieval.scan.shards import LANES, TILE

_ADDED_AT_ONCE = 16  # terms added in float32 before their sum goes on in float64
QUERY_VERSIONS = 8
"""Ways in which a query is rounded to int8; a tile holds each of them equally often."""


@fast
def _absorb_one(
    scores: Array, length: int, rows: Array, gather: bool, start: int, base: int, inverse_temperature: float,
    heap_scores: Array, heap_rows: Array, sizes: Array, peaks: Array, sums: Array,
) -> int:  # fmt: skip
    """Take the scores of one tile for one query; returns the id of a row whose score is not finite, or -1."""
    inverse = np.float32(inverse_temperature)
    peak = scores[0]
    zero = np.float32(0.0)
    for i in range(length):
        peak = max(peak, scores[i])
        zero += scores[i] * np.float32(0.0)
    if zero != 0:  # NaN, from any score that is not finite
        for i in range(length):
            if not math.isfinite(scores[i]):
                return int(base + (rows[start + i] if gather else start + i))
    size, capacity = sizes[0], heap_scores.shape[1]
    if size < capacity or peak >= heap_scores[0, 0]:
        for i in range(length):
            if size < capacity or scores[i] >= heap_scores[0, 0]:
                row = rows[start + i] if gather else start + i
                size = push(heap_scores[0], heap_rows[0], size, scores[i], base + row)
        sizes[0] = size
    total = np.float32(0.0)
    for i in range(length):
        total += exp((scores[i] - peak) * inverse)
    add_tile(peaks, sums, 0, peak, total, inverse_temperature)
    return -1


@fast
def scan_one(
    query: Array, vectors: Array, scales: Array, shift: Array, rows: Array, gather: bool, first: int, stop: int,
    base: int, inverse_temperature: float, certify: bool, heap_scores: Array, heap_rows: Array, sizes: Array,
    peaks: Array, sums: Array,
) -> tuple[int, float]:  # fmt: skip
    """One query, as fast as the rows can be read."""
    dim = vectors.shape[1]
    scores = np.empty(TILE, np.float32)
    longest = np.float32(0.0)
    for start in range(first, stop, TILE):
        length = min(TILE, stop - start)
        for i in range(length):
            row = rows[start + i] if gather else start + i
            score = np.float32(0.0)
            if certify:
                norm = np.float32(0.0)
                for k in range(dim):
                    value = widen(vectors[row, k])
                    score += query[k] * value
                    norm += value * value
                longest = max(longest, norm)
            else:
                for k in range(dim):
                    score += query[k] * widen(vectors[row, k])
            if scales.size > 0:
                score = score * scales[row] + shift[0]
            scores[i] = score
        fault = _absorb_one(
            scores, length, rows, gather, start, base, inverse_temperature, heap_scores, heap_rows, sizes, peaks, sums
        )
        if fault >= 0:
            return fault, float(longest)
    return -1, float(longest)


@fast
def scan_one_int8(
    levels: Array, level_scales: Array, level_bias: Array, codes: Array, scales: Array, shift: Array, rows: Array,
    gather: bool, first: int, stop: int, base: int, inverse_temperature: float, heap_scores: Array, heap_rows: Array,
    sizes: Array, peaks: Array, sums: Array,
) -> tuple[int, float]:  # fmt: skip
    """One query, rounded to two ``levels`` of codes (2, padded d), coarse and fine; needs `tiles.HAS_INT8_DOT`."""
    count, dim = codes.shape
    padded = levels.shape[1]
    chunks = padded // tiles.ROW_CHUNK
    scores = np.empty(TILE, np.float32)
    scratch = np.zeros(padded, np.int8)
    coarse, fine = levels[0].ctypes.data, levels[1].ctypes.data
    for start in range(first, stop, TILE):
        length = min(TILE, stop - start)
        for i in range(length):
            row = rows[start + i] if gather else start + i
            address = codes.ctypes.data + row * dim
            if row * dim + padded > count * dim:  # the last register would reach beyond the array
                scratch[:dim] = codes[row]
                address = scratch.ctypes.data
            high = np.float32(tiles.row_int8(coarse, address, chunks) - level_bias[0])
            low = np.float32(tiles.row_int8(fine, address, chunks) - level_bias[1])
            scores[i] = (high * level_scales[0] + low * level_scales[1]) * scales[row] + shift[0]
        fault = _absorb_one(
            scores, length, rows, gather, start, base, inverse_temperature, heap_scores, heap_rows, sizes, peaks, sums
        )
        if fault >= 0:
            return fault, 0.0
    return -1, 0.0


@fast
def _absorb(
    scores: Array, length: int, offset: int, queries: int, rows: Array, gather: bool, start: int, base: int,
    inverse_temperature: float, heap_scores: Array, heap_rows: Array, sizes: Array, peaks: Array, sums: Array,
    tile_peaks: Array, tile_sums: Array, totals: Array,
) -> int:  # fmt: skip
    """Take the scores (rows, lanes) of one tile for ``queries`` queries from number ``offset`` on."""
    lanes = scores.shape[1]
    inverse = np.float32(inverse_temperature)
    tile_peaks[:lanes] = scores[0]
    zero = np.float32(0.0)
    for i in range(length):
        for lane in range(lanes):
            tile_peaks[lane] = max(tile_peaks[lane], scores[i, lane])
            zero += scores[i, lane] * np.float32(0.0)
    if zero != 0:  # NaN, from any score that is not finite
        for i in range(length):
            for lane in range(lanes):
                if not math.isfinite(scores[i, lane]):
                    return int(base + (rows[start + i] if gather else start + i))
    totals[:lanes] = 0
    for chunk in range(0, length, _ADDED_AT_ONCE):
        tile_sums[:lanes] = 0
        for i in range(chunk, min(chunk + _ADDED_AT_ONCE, length)):
            for lane in range(lanes):
                tile_sums[lane] += exp((scores[i, lane] - tile_peaks[lane]) * inverse)
        for lane in range(lanes):
            totals[lane] += tile_sums[lane]
    capacity = heap_scores.shape[1]
    for lane in range(queries):
        query = offset + lane
        size = sizes[query]
        if size < capacity or tile_peaks[lane] >= heap_scores[query, 0]:
            for i in range(length):
                if size < capacity or scores[i, lane] >= heap_scores[query, 0]:
                    row = rows[start + i] if gather else start + i
                    size = push(heap_scores[query], heap_rows[query], size, scores[i, lane], base + row)
            sizes[query] = size
        add_tile(peaks, sums, query, tile_peaks[lane], totals[lane], inverse_temperature)
    return -1


@fast
def scan_batch(
    packed: Array, vectors: Array, scales: Array, shift: Array, rows: Array, gather: bool, first: int, stop: int,
    base: int, inverse_temperature: float, certify: bool, direct: bool, heap_scores: Array, heap_rows: Array,
    sizes: Array, peaks: Array, sums: Array,
) -> tuple[int, float]:  # fmt: skip
    """Many queries, multiplied in float32; ``packed`` is (groups, d, lanes). ``direct``: float32 rows in place."""
    groups, dim, lanes = packed.shape
    scores = np.empty((TILE + tiles.PADDING, lanes), np.float32)
    tile_peaks, tile_sums, totals = np.empty(lanes, np.float32), np.empty(lanes, np.float32), np.empty(lanes)
    scratch = np.empty((1 if direct else TILE, dim), np.float32)
    longest = np.float32(0.0)
    for start in range(first, stop, TILE):
        length = min(TILE, stop - start)
        source, origin = vectors.ctypes.data, start
        if not direct:
            source, origin = scratch.ctypes.data, 0
            for i in range(length):
                row = rows[start + i] if gather else start + i
                scale = scales[row] if scales.size > 0 else np.float32(1.0)
                for k in range(dim):
                    scratch[i, k] = widen(vectors[row, k]) * scale
        if certify:
            for i in range(length):
                row = rows[start + i] if gather else start + i
                norm = np.float32(0.0)
                for k in range(dim):
                    norm += widen(vectors[row, k]) * widen(vectors[row, k])
                longest = max(longest, norm)
        last = origin + length - 1
        for group in range(groups):
            block, out = packed[group].ctypes.data, scores.ctypes.data
            if lanes == tiles.WIDE:
                for i in range(0, length, tiles.WIDE_ROWS):
                    tiles.wide_f32(block, source, dim, dim, origin + i, last, out, i)
            else:
                for i in range(0, length, tiles.NARROW_ROWS):
                    tiles.narrow_f32(block, source, dim, dim, origin + i, last, out, i)
            offset = group * lanes
            if scales.size > 0:
                for i in range(length):
                    for lane in range(lanes):
                        scores[i, lane] += shift[offset + lane]
            fault = _absorb(
                scores, length, offset, min(lanes, sizes.size - offset), rows, gather, start, base, inverse_temperature,
                heap_scores, heap_rows, sizes, peaks, sums, tile_peaks, tile_sums, totals,
            )  # fmt: skip
            if fault >= 0:
                return fault, float(longest)
    return -1, float(longest)


@fast
def scan_batch_int8(
    packed: Array, query_scales: Array, query_bias: Array, codes: Array, scales: Array, shift: Array, rows: Array,
    gather: bool, first: int, stop: int, base: int, inverse_temperature: float, heap_scores: Array, heap_rows: Array,
    sizes: Array, peaks: Array, sums: Array,
) -> tuple[int, float]:  # fmt: skip
    """Many queries rounded to int8, ``packed`` (versions, groups, ⌈d/4⌉, lanes, 4); needs `tiles.HAS_INT8_DOT`.

    ``query_bias`` (versions, queries) is 128 times the sum of the codes: what the flipped sign bits add to a product.
    """
    _, groups, steps, lanes, _ = packed.shape
    together = tiles.WIDE_ROWS if lanes == tiles.WIDE else tiles.NARROW_ROWS
    dim = codes.shape[1]
    products = np.empty((TILE + tiles.PADDING, lanes), np.int32)
    scores = np.empty((TILE, lanes), np.float32)
    tile_peaks, tile_sums, totals = np.empty(lanes, np.float32), np.empty(lanes, np.float32), np.empty(lanes)
    direct = not gather and dim == 4 * steps
    scratch = np.zeros((1 if direct else TILE, 4 * steps), np.int8)
    for start in range(first, stop, TILE):
        length = min(TILE, stop - start)
        source, origin = codes.ctypes.data, start
        if not direct:
            source, origin = scratch.ctypes.data, 0
            for i in range(length):
                scratch[i, :dim] = codes[rows[start + i] if gather else start + i]
        last = origin + length - 1
        for group in range(groups):
            out = products.ctypes.data
            for i in range(0, length, together):
                block = packed[(i // together) % QUERY_VERSIONS, group].ctypes.data
                if lanes == tiles.WIDE:
                    tiles.wide_int8(block, source, steps, steps, origin + i, last, out, i)
                else:
                    tiles.narrow_int8(block, source, steps, steps, origin + i, last, out, i)
            offset = group * lanes
            for i in range(length):
                scale = scales[rows[start + i] if gather else start + i]
                version = (i // together) % QUERY_VERSIONS
                for lane in range(lanes):
                    query = offset + lane
                    product = np.float32(products[i, lane] - query_bias[version, query])
                    scores[i, lane] = product * (scale * query_scales[query]) + shift[query]
            fault = _absorb(
                scores, length, offset, min(lanes, sizes.size - offset), rows, gather, start, base, inverse_temperature,
                heap_scores, heap_rows, sizes, peaks, sums, tile_peaks, tile_sums, totals,
            )  # fmt: skip
            if fault >= 0:
                return fault, 0.0
    return -1, 0.0


@strict
def _dot64(query: Array, vectors: Array, row: int, sums: Array) -> float:
    """Added up in the order of the dimensions, in `LANES` sums: products of float32 are exact, so only that matters."""
    dim = vectors.shape[1]
    sums[:] = 0
    for start in range(0, dim, LANES):
        for lane in range(min(LANES, dim - start)):
            sums[lane] += np.float64(query[start + lane]) * np.float64(widen(vectors[row, start + lane]))
    half = LANES // 2
    while half > 0:
        for lane in range(half):
            sums[lane] += sums[lane + half]
        half //= 2
    return float(sums[0])


@strict
def rescore(queries: Array, vectors: Array, scales: Array, shift: Array, base: int, ids: Array, out: Array) -> None:
    """Scores in float64 of the rows ``ids`` (q, m) that lie in this shard: the same for a row whatever surrounds it."""
    sums = np.empty(LANES)
    for query in range(ids.shape[0]):
        for i in range(ids.shape[1]):
            row = ids[query, i] - base
            if 0 <= row < vectors.shape[0]:
                scale = np.float64(scales[row]) if scales.size > 0 else 1.0
                out[query, i] = _dot64(queries[query], vectors, row, sums) * scale + shift[query]


@strict
def scan_exactly(
    query: Array, vectors: Array, rows: Array, gather: bool, first: int, stop: int, base: int, heap_scores: Array,
    heap_rows: Array, size: int,
) -> int:  # fmt: skip
    """Best rows by float64 scores; returns the size of the heap."""
    sums = np.empty(LANES)
    for i in range(first, stop):
        row = rows[i] if gather else i
        size = push(heap_scores, heap_rows, size, _dot64(query, vectors, row, sums), base + row)
    return size
