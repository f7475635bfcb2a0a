"""One pass over the gallery: the exact best rows *and* log Σ exp(s/τ) over all rows, for one query or many.

The pass itself works in float32 (or in int8) and keeps a few more rows than asked for. These are then scored again in
float64 against the best vectors there are, so ids and scores do not depend on block size, threads or the kernel used.
For float32 galleries a bound on the rounding proves that no other row can belong to the head; where rows lie too
close for the proof (many duplicates, say), the query is scanned once more in float64. The result is then exact, ties
by smaller id. A few rows are scanned without the compiled kernels (`plain`), with the same result.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count as counter
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from evidex.errors import InputError
from evidex.retrieval.scan.aligned import aligned
from evidex.retrieval.scan.arguments import Kept
from evidex.retrieval.scan.partial import Ids, ScanResult, Scores, best_rows, log_sum_exp
from evidex.retrieval.scan.plain import are_few, rounding_bound, scan_plainly
from evidex.retrieval.scan.quantize import Floats
from evidex.retrieval.scan.shards import Block, Shard, Vectors, as_shards, cut_into_blocks, score_rows, selected_rows

_T = TypeVar("_T")


def scan(
    queries: Floats,
    vectors: Vectors | Sequence[Vectors],
    *,
    temperature: float,
    top: int,
    threads: int | None = None,
    rows: NDArray[np.bool_] | Ids | None = None,
    exact: Floats | Sequence[Floats] | None = None,
    ensure: Callable[[int, int], None] | None = None,
) -> ScanResult:
    """Compare (q, d) float32 queries with all rows of a gallery, or with the selected ``rows``.

    ``vectors`` are (n, d) rows in float32, in bfloat16 (as uint16 bits) or `Int8Vectors`, or a list of such shards; ids
    count through all shards. Memory-mapped arrays are read in place. ``rows`` is a mask over all rows, or sorted ids.
    ``exact`` gives the float32 vectors of the same rows, to score the head of a smaller form again. ``ensure`` is
    called with the first id and the one after the last of what is read next, from several threads; it may raise.
    """
    query_rows = _checked_queries(queries, temperature, top)
    dim = query_rows.shape[1]
    shards = as_shards(vectors, dim)
    total = sum(len(shard) for shard in shards)
    judges = shards if exact is None else as_shards(exact, dim)
    if sum(len(shard) for shard in judges) != total:
        raise InputError(
            f"the exact vectors are {sum(map(len, judges))} rows, the gallery {total}; give one for each row"
        )
    selected = None if rows is None else selected_rows(rows, total)
    found = total if selected is None else len(selected)
    if found == 0 or len(query_rows) == 0:
        nothing, size = np.full(len(query_rows), -np.inf), min(top, found)
        shape = (len(query_rows), size)
        return ScanResult(np.empty(shape, np.int64), np.empty(shape), nothing, found, temperature)

    blocks = cut_into_blocks(shards, selected)
    workers = _thread_count(threads, len(blocks))
    if are_few(found, dim):
        found_here = scan_plainly(query_rows, judges, selected, 1 / temperature, min(top, found), ensure)
        return ScanResult(*found_here, found, temperature)
    work = _Work(
        query_rows, shards, blocks, 1 / temperature, min(4 * top + 64, found), workers, ensure,
    )  # fmt: skip
    sweep = _sweep(work)
    ids = sweep.head_rows
    scores = score_rows(query_rows, judges, ids)
    evidence = _corrected(sweep, scores, temperature, found)
    best_ids, best_scores = best_rows(ids, scores, top)
    if exact is None and sweep.head_scores.shape[1] < found and all(shard.is_float32 for shard in shards):
        for query in _unproven(query_rows, sweep, best_scores[:, -1]):
            best_ids[query], best_scores[query] = _scan_exactly(work, query, best_ids.shape[1])
    return ScanResult(best_ids, best_scores, evidence, found, temperature)


@dataclass(frozen=True)
class _Work:
    queries: Floats
    shards: list[Shard]
    blocks: list[Block]
    inverse_temperature: float
    capacity: int
    threads: int
    ensure: Callable[[int, int], None] | None


@dataclass(frozen=True)
class _Sweep:
    """What one pass in low precision finds."""

    head_rows: Ids
    head_scores: Scores
    log_sum_exp: Scores
    longest: float
    """The largest norm of a row."""


def _sweep(work: _Work) -> _Sweep:
    from evidex.retrieval.scan.kernel_choice import choose_kernel

    queries = len(work.queries)
    run_block = choose_kernel(work.queries, work.shards, work.inverse_temperature)
    peaks = np.full((len(work.blocks), queries), -np.inf)
    sums = np.zeros((len(work.blocks), queries))
    faults = np.full(len(work.blocks), -1)
    norms = np.zeros(len(work.blocks))

    def worker(take: Callable[[], int]) -> tuple[Floats, Ids]:
        heap_scores = np.full((queries, work.capacity), -np.inf, np.float32)
        heap_rows = np.full((queries, work.capacity), -1)
        sizes = np.zeros(queries, np.int64)
        while (number := take()) < len(work.blocks):
            if work.ensure is not None:
                work.ensure(*work.blocks[number].span)
            kept = Kept(heap_scores, heap_rows, sizes, peaks[number], sums[number])
            faults[number], norms[number] = run_block(work.blocks[number], kept)
        return heap_scores, heap_rows

    heaps = _in_threads(worker, work.threads)
    if (faults >= 0).any():
        row = int(faults[faults >= 0].min())
        raise InputError(f"row {row} of the gallery is not finite or too large to compare; encode that item again")
    rows = np.concatenate([heap_rows for _, heap_rows in heaps], axis=1)
    scores = np.concatenate([heap_scores for heap_scores, _ in heaps], axis=1)
    # Free places hold -inf and sort last.
    head_rows, head_scores = best_rows(rows, scores.astype(np.float64), work.capacity)
    # The sums are joined in the order of the blocks, whichever thread finished first.
    peak = peaks.max(axis=0)
    total = (sums * np.exp((peaks - peak) * work.inverse_temperature)).sum(axis=0)
    evidence = peak * work.inverse_temperature + np.log(total)
    return _Sweep(head_rows, head_scores, evidence, float(np.sqrt(norms.max())))


def _corrected(sweep: _Sweep, scores: Scores, temperature: float, found: int) -> Scores:
    """Log-sum-exp with the head's terms replaced by those of its float64 scores.

    The head holds the largest terms, hence most of what the rounding of the scores can do to the sum.
    """
    exact_terms = log_sum_exp(scores / temperature)
    if scores.shape[1] == found:
        return exact_terms
    rough_share = np.exp(log_sum_exp(sweep.head_scores / temperature) - sweep.log_sum_exp)
    tail = np.log(np.clip(1 - rough_share, np.finfo(np.float64).tiny, None))
    return np.asarray(np.logaddexp(sweep.log_sum_exp + tail, exact_terms))


def _unproven(queries: Floats, sweep: _Sweep, worst_kept: Scores) -> Ids:
    """Queries for which a row outside the head might still beat the last row kept."""
    return np.flatnonzero(~(worst_kept > sweep.head_scores[:, -1] + rounding_bound(queries, sweep.longest)))


def _scan_exactly(work: _Work, query: int, top: int) -> tuple[Ids, Scores]:
    from evidex.retrieval.scan.kernels import scan_exactly

    def worker(take: Callable[[], int]) -> tuple[Scores, Ids]:
        scores, rows, size = np.full(top, -np.inf), np.full(top, -1), 0
        while (number := take()) < len(work.blocks):
            block = work.blocks[number]
            size = scan_exactly(work.queries[query], block.shard.values, block.arguments, scores, rows, size)
        return scores, rows

    heaps = _in_threads(worker, work.threads)
    return best_rows(np.concatenate([rows for _, rows in heaps]), np.concatenate([scores for scores, _ in heaps]), top)


def _in_threads(worker: Callable[[Callable[[], int]], _T], threads: int) -> list[_T]:
    """Run ``worker`` in each thread; it takes block numbers until none are left."""
    numbers = counter()
    take = numbers.__next__
    if threads == 1:
        return [worker(take)]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(worker, [take] * threads))


def _thread_count(threads: int | None, blocks: int) -> int:
    if threads is not None and threads < 1:
        raise InputError(f"threads is {threads}; give at least 1")
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(threads or available, blocks)


def _checked_queries(queries: Floats, temperature: float, top: int) -> Floats:
    if queries.ndim != 2 or queries.dtype != np.float32 or queries.shape[1] == 0:
        raise InputError(f"queries must be float32 rows, got {queries.dtype} of shape {queries.shape}")
    if not np.isfinite(queries).all():
        row = int(np.flatnonzero(~np.isfinite(queries).all(axis=1))[0])
        raise InputError(f"query {row} is not finite; encode it again")
    if not 1e-6 <= temperature <= 1e6:
        raise InputError(f"temperature is {temperature:g}; give a number from 1e-6 to 1e6")
    if top < 1:
        raise InputError(f"top is {top}; give at least 1")
    # One kind of array means one compiled kernel: what comes from another process is read-only, say.
    return aligned(queries)
