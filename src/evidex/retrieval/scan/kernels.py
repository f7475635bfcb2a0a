"""Compiled loops of the scan: one pass that keeps the best rows and sums the evidence.

Each kernel works on one block of rows of one shard, in tiles whose scores stay in the cache. It returns the smallest
id of a row whose score is not finite (-1: none) and the largest squared row norm (0 unless ``certify``), from which
the caller bounds the rounding of float32. Kernels release the interpreter lock and touch no global state.

Common arguments are named tuples (`evidex.retrieval.scan.arguments`): the vectors, the rows of them that are scanned,
and what is kept.
"""

from __future__ import annotations

import math

import numpy as np

from evidex.retrieval.scan import register_tiles
from evidex.retrieval.scan.arguments import LANES, TILE, Array, GalleryRows, Int8Queries, Kept, RowSpan, TileSums
from evidex.retrieval.scan.compiled import add_tile, exp, fast, push, strict, widen

_ADDED_AT_ONCE = 16  # terms added in float32 before their sum goes on in float64
QUERY_VERSIONS = 8
"""Ways in which a query is rounded to int8; a tile holds each of them equally often."""


@fast
def _absorb_one(scores: Array, length: int, start: int, span: RowSpan, inverse_temperature: float, kept: Kept) -> int:
    """Take the scores of one tile for one query; returns the id of a row whose score is not finite, or -1."""
    rows, gather, base = span.rows, span.gather, span.base
    heap_scores, heap_rows, sizes = kept.heap_scores, kept.heap_rows, kept.sizes
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
    add_tile(kept.peaks, kept.sums, 0, peak, total, inverse_temperature)
    return -1


@fast
def scan_one(
    query: Array, gallery: GalleryRows, span: RowSpan, inverse_temperature: float, certify: bool, kept: Kept
) -> tuple[int, float]:
    """One query, as fast as the rows can be read."""
    vectors, scales, shift = gallery.vectors, gallery.scales, gallery.shift
    rows, gather = span.rows, span.gather
    dim = vectors.shape[1]
    scores = np.empty(TILE, np.float32)
    longest = np.float32(0.0)
    for start in range(span.first, span.stop, TILE):
        length = min(TILE, span.stop - start)
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
        fault = _absorb_one(scores, length, start, span, inverse_temperature, kept)
        if fault >= 0:
            return fault, float(longest)
    return -1, float(longest)


@fast
def scan_one_int8(
    query: Int8Queries, gallery: GalleryRows, span: RowSpan, inverse_temperature: float, kept: Kept
) -> tuple[int, float]:
    """One query, rounded to two levels of codes (2, padded d), coarse and fine; needs `HAS_INT8_DOT`."""
    codes, scales, shift = gallery.vectors, gallery.scales, gallery.shift
    level_scales, level_bias = query.scales, query.bias
    rows, gather = span.rows, span.gather
    count, dim = codes.shape
    padded = query.codes.shape[1]
    chunks = padded // register_tiles.ROW_CHUNK
    scores = np.empty(TILE, np.float32)
    scratch = np.zeros(padded, np.int8)
    coarse, fine = query.codes[0].ctypes.data, query.codes[1].ctypes.data
    for start in range(span.first, span.stop, TILE):
        length = min(TILE, span.stop - start)
        for i in range(length):
            row = rows[start + i] if gather else start + i
            address = codes.ctypes.data + row * dim
            if row * dim + padded > count * dim:  # the last register would reach beyond the array
                scratch[:dim] = codes[row]
                address = scratch.ctypes.data
            high = np.float32(register_tiles.row_int8(coarse, address, chunks) - level_bias[0])
            low = np.float32(register_tiles.row_int8(fine, address, chunks) - level_bias[1])
            scores[i] = (high * level_scales[0] + low * level_scales[1]) * scales[row] + shift[0]
        fault = _absorb_one(scores, length, start, span, inverse_temperature, kept)
        if fault >= 0:
            return fault, 0.0
    return -1, 0.0


@fast
def _absorb(
    scores: Array, length: int, offset: int, start: int, span: RowSpan, inverse_temperature: float, kept: Kept,
    tile: TileSums,
) -> int:  # fmt: skip
    """Take the scores (rows, lanes) of one tile for the queries from number ``offset`` on."""
    rows, gather, base = span.rows, span.gather, span.base
    heap_scores, heap_rows, sizes = kept.heap_scores, kept.heap_rows, kept.sizes
    tile_peaks, tile_sums, totals = tile.peaks, tile.sums, tile.totals
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
    for lane in range(min(lanes, sizes.size - offset)):
        query = offset + lane
        size = sizes[query]
        if size < capacity or tile_peaks[lane] >= heap_scores[query, 0]:
            for i in range(length):
                if size < capacity or scores[i, lane] >= heap_scores[query, 0]:
                    row = rows[start + i] if gather else start + i
                    size = push(heap_scores[query], heap_rows[query], size, scores[i, lane], base + row)
            sizes[query] = size
        add_tile(kept.peaks, kept.sums, query, tile_peaks[lane], totals[lane], inverse_temperature)
    return -1


@fast
def scan_batch(
    packed: Array,
    gallery: GalleryRows,
    span: RowSpan,
    inverse_temperature: float,
    certify: bool,
    direct: bool,
    kept: Kept,
) -> tuple[int, float]:
    """Many queries, multiplied in float32; ``packed`` is (groups, d, lanes). ``direct``: float32 rows in place."""
    vectors, scales, shift = gallery.vectors, gallery.scales, gallery.shift
    rows, gather = span.rows, span.gather
    groups, dim, lanes = packed.shape
    scores = np.empty((TILE + register_tiles.PADDING, lanes), np.float32)
    tile = TileSums(np.empty(lanes, np.float32), np.empty(lanes, np.float32), np.empty(lanes))
    scratch = np.empty((1 if direct else TILE, dim), np.float32)
    longest = np.float32(0.0)
    for start in range(span.first, span.stop, TILE):
        length = min(TILE, span.stop - start)
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
            if lanes == register_tiles.WIDE:
                for i in range(0, length, register_tiles.WIDE_ROWS):
                    register_tiles.wide_f32(block, source, dim, origin + i, last, out, i)
            else:
                for i in range(0, length, register_tiles.NARROW_ROWS):
                    register_tiles.narrow_f32(block, source, dim, origin + i, last, out, i)
            offset = group * lanes
            if scales.size > 0:
                for i in range(length):
                    for lane in range(lanes):
                        scores[i, lane] += shift[offset + lane]
            fault = _absorb(scores, length, offset, start, span, inverse_temperature, kept, tile)
            if fault >= 0:
                return fault, float(longest)
    return -1, float(longest)


@fast
def scan_batch_int8(
    queries: Int8Queries, gallery: GalleryRows, span: RowSpan, inverse_temperature: float, kept: Kept
) -> tuple[int, float]:
    """Many queries rounded to int8, their codes (versions, groups, ⌈d/4⌉, lanes, 4); needs `HAS_INT8_DOT`.

    Their bias (versions, queries) is 128 times the sum of the codes: what the flipped sign bits add to a product.
    """
    packed, query_scales, query_bias = queries.codes, queries.scales, queries.bias
    codes, scales, shift = gallery.vectors, gallery.scales, gallery.shift
    rows, gather = span.rows, span.gather
    _, groups, steps, lanes, _ = packed.shape
    together = register_tiles.WIDE_ROWS if lanes == register_tiles.WIDE else register_tiles.NARROW_ROWS
    dim = codes.shape[1]
    products = np.empty((TILE + register_tiles.PADDING, lanes), np.int32)
    scores = np.empty((TILE, lanes), np.float32)
    tile = TileSums(np.empty(lanes, np.float32), np.empty(lanes, np.float32), np.empty(lanes))
    direct = not gather and dim == 4 * steps
    scratch = np.zeros((1 if direct else TILE, 4 * steps), np.int8)
    for start in range(span.first, span.stop, TILE):
        length = min(TILE, span.stop - start)
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
                if lanes == register_tiles.WIDE:
                    register_tiles.wide_int8(block, source, steps, origin + i, last, out, i)
                else:
                    register_tiles.narrow_int8(block, source, steps, origin + i, last, out, i)
            offset = group * lanes
            for i in range(length):
                scale = scales[rows[start + i] if gather else start + i]
                version = (i // together) % QUERY_VERSIONS
                for lane in range(lanes):
                    query = offset + lane
                    product = np.float32(products[i, lane] - query_bias[version, query])
                    scores[i, lane] = product * (scale * query_scales[query]) + shift[query]
            fault = _absorb(scores, length, offset, start, span, inverse_temperature, kept, tile)
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
def scan_exactly(query: Array, vectors: Array, span: RowSpan, heap_scores: Array, heap_rows: Array, size: int) -> int:
    """Best rows by float64 scores; returns the size of the heap."""
    sums = np.empty(LANES)
    for i in range(span.first, span.stop):
        row = span.rows[i] if span.gather else i
        size = push(heap_scores, heap_rows, size, _dot64(query, vectors, row, sums), span.base + row)
    return size
