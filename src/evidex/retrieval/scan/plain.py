"""A scan by numpy alone, for so few rows that loading the compiled kernels would take longer, or where none can be.

The scores come from one matrix product. Every row that its rounding may have kept from the head is scored again in
float64, added up in the order of the compiled kernels: ids and scores are theirs to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from evidex.errors import InputError
from evidex.retrieval.scan.arguments import LANES
from evidex.retrieval.scan.partial import Ids, Scores, best_rows, log_sum_exp
from evidex.retrieval.scan.quantize import Floats, from_bfloat16
from evidex.retrieval.scan.shards import Shard

FEW_VALUES = 1 << 23
"""Numbers in few rows: 16,384 of 512 dimensions."""
_SCORES_AT_ONCE = 1 << 24
_LARGEST = float(np.finfo(np.float32).max)


def are_few(rows: int, dim: int) -> bool:
    """Whether so many rows are scanned by numpy, and read into memory rather than mapped."""
    return rows * dim <= FEW_VALUES or not compiles()


@cache
def compiles() -> bool:
    """Whether the compiler is installed, which comes with evidex[fast]: kernels and the guard of maps need it."""
    return find_spec("numba") is not None


def scan_plainly(
    queries: Floats,
    shards: list[Shard],
    selected: Ids | None,
    inverse_temperature: float,
    top: int,
    ensure: Callable[[int, int], None] | None,
) -> tuple[Ids, Scores, Scores]:
    """The ids and scores (q, top) of the best rows, and log Σ exp(s/τ) over all that are selected."""
    ids, values = _selected_values(shards, selected, ensure)
    with np.errstate(over="ignore", invalid="ignore"):
        longest = float(np.sqrt(np.einsum("nd,nd->n", values, values).max()))
    found = []
    together = max(_SCORES_AT_ONCE // len(ids), 1)
    for first in range(0, len(queries), together):
        part = queries[first : first + together]
        with np.errstate(over="ignore", invalid="ignore"):
            # One by one: what a query finds is then the same to the last bit whichever others it is asked with.
            scores = np.stack([values @ query for query in part]).astype(np.float64)
        _check(scores, ids)
        heads = [
            _head(part[n : n + 1], shards, ids, row, bound, top)
            for n, (row, bound) in enumerate(zip(scores, rounding_bound(part, longest), strict=True))
        ]
        best_ids, best_scores = (np.stack(each) for each in zip(*heads, strict=True))
        found.append((best_ids, best_scores, log_sum_exp(scores * inverse_temperature)))
    best_ids, best_scores, evidence = (np.concatenate(each) for each in zip(*found, strict=True))
    return best_ids, best_scores, evidence


def _head(query: Floats, shards: list[Shard], ids: Ids, scores: Scores, bound: float, top: int) -> tuple[Ids, Scores]:
    """The best rows by exact scores, which also replace the rough ones in ``scores``.

    They are the largest terms, hence most of what the rounding of the scores can do to the sum.
    """
    last = np.partition(scores, -top)[-top] if top < len(scores) else -np.inf
    near = np.flatnonzero(scores >= last - 2 * bound)
    scores[near] = _exact_scores(query, shards, ids[near])
    return best_rows(ids[near], scores[near], top)


def rounding_bound(queries: Floats, longest: float) -> Scores:
    """How far the float32 product of each query and a row can be off, where no row is longer than ``longest``.

    A dot product of d terms is off by at most γ |q| |v| with γ = (d+1)·2⁻²⁴, in whatever order it was summed.
    """
    dim = queries.shape[1]
    lengths = np.sqrt((queries.astype(np.float64) ** 2).sum(axis=1))
    # One per cent more covers the rounding of the norms themselves; the constant, products that underflow.
    return np.asarray(1.01 * (dim + 1) * 2.0**-24 * lengths * longest + dim * 2.0**-149)


def _exact_scores(query: Floats, shards: list[Shard], ids: Ids) -> Scores:
    """Scores in float64 of the query (1, d) with the rows ``ids``, as `score_rows` gives them."""
    scores = np.empty(len(ids))
    for shard in shards:
        inside = np.flatnonzero((ids >= shard.base) & (ids < shard.base + len(shard)))
        rows = ids[inside] - shard.base
        scores[inside] = _dot64(query[0], _widened(shard, rows))
        if shard.is_int8:
            scores[inside] = scores[inside] * shard.scales[rows].astype(np.float64) + shard.shifts(query)[0]
    return scores


def _dot64(query: Floats, rows: Floats) -> Scores:
    """What the kernels' function of this name adds up, in its order."""
    sums = np.zeros((len(rows), LANES))
    for start in range(0, len(query), LANES):
        products = rows[:, start : start + LANES].astype(np.float64) * query[start : start + LANES]
        sums[:, : products.shape[1]] += products
    while sums.shape[1] > 1:
        half = sums.shape[1] // 2
        sums = sums[:, :half] + sums[:, half:]
    return sums[:, 0]


def _selected_values(
    shards: list[Shard], selected: Ids | None, ensure: Callable[[int, int], None] | None
) -> tuple[Ids, NDArray[np.floating]]:
    """The ids of the rows and the rows themselves; float32 rows that lie together are not copied."""
    ids, parts = [], []
    for shard in shards:
        stop = shard.base + len(shard)
        inside = np.arange(shard.base, stop)
        rows: slice | Ids = slice(None)
        if selected is not None:
            inside = selected[slice(*np.searchsorted(selected, [shard.base, stop]))]
            rows = inside - shard.base
        if not len(inside):
            continue
        if ensure is not None:
            ensure(int(inside[0]), int(inside[-1]) + 1)
        ids.append(inside)
        parts.append(_decoded(shard, rows))
    return (ids[0], parts[0]) if len(parts) == 1 else (np.concatenate(ids), np.concatenate(parts))


def _decoded(shard: Shard, rows: slice | Ids) -> NDArray[np.floating]:
    values = _widened(shard, rows)
    return values * shard.scales[rows, None].astype(np.float64) + shard.offset if shard.is_int8 else values


def _widened(shard: Shard, rows: slice | Ids) -> Floats:
    values = shard.values[rows]
    if shard.is_float32:
        return values
    return values.astype(np.float32) if shard.is_int8 else from_bfloat16(values)


def _check(scores: Scores, ids: Ids) -> None:
    finite = (np.abs(scores) <= _LARGEST).all(axis=0)
    if not finite.all():
        row = int(ids[~finite].min())
        raise InputError(f"row {row} of the gallery is not finite or too large to compare; encode that item again")
