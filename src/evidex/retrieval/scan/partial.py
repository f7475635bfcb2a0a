"""What a scan knows about a query after any part of the gallery, and how two such parts become one.

Blocks, threads, files and machines all hand back the same small type. The head is ordered by score, ties by the smaller
row id, so it is the same whichever way the gallery was cut and in whichever order the parts are merged; the log-sum-exp
is associative up to the rounding of float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evidex.errors import InputError

Ids = NDArray[np.int64]
Scores = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Partial:
    """One query against ``count`` gallery rows: the best rows, and the evidence of all of them."""

    ids: Ids
    """Row ids of the best rows, best first; fewer than asked for only if there are fewer rows."""
    scores: Scores
    """Their similarities."""
    log_sum_exp: float
    """log Σ exp(s/τ) over all ``count`` rows; -inf for none."""
    count: int
    temperature: float

    @property
    def log_mean_evidence(self) -> float:
        """m = log(mean exp(s/τ)): unlike S it does not grow with the gallery. -inf without rows."""
        return float(log_mean_evidence(self.log_sum_exp, self.count))

    @property
    def uncertainty(self) -> float:
        """u = K/S = 1/(1 + mean exp(s/τ)); 1 without rows."""
        return float(uncertainty_of(self.log_mean_evidence))

    @property
    def best_belief(self) -> float:
        """Expected probability α_max/S of the best row under the Dirichlet; 0 without rows."""
        if self.count == 0:
            return 0.0
        return float(expected_belief(self.scores[0], self.log_sum_exp, self.count, self.temperature))


@dataclass(frozen=True, eq=False)
class ScanResult:
    """A batch of queries against the same rows; item ``i`` is the `Partial` of query ``i``."""

    ids: Ids
    """(queries, min(top, count))"""
    scores: Scores
    """(queries, min(top, count))"""
    log_sum_exp: Scores
    """(queries,)"""
    count: int
    temperature: float

    def __len__(self) -> int:
        return len(self.log_sum_exp)

    def __getitem__(self, query: int) -> Partial:
        return Partial(
            self.ids[query], self.scores[query], float(self.log_sum_exp[query]), self.count, self.temperature
        )

    def __iter__(self) -> Iterator[Partial]:
        return (self[query] for query in range(len(self)))

    @property
    def log_mean_evidence(self) -> Scores:
        return log_mean_evidence(self.log_sum_exp, self.count)

    @property
    def uncertainty(self) -> Scores:
        return uncertainty_of(self.log_mean_evidence)

    @property
    def best_belief(self) -> Scores:
        if self.count == 0:
            return np.zeros(len(self))
        return expected_belief(self.scores[:, 0], self.log_sum_exp, self.count, self.temperature)


def log_sum_exp(x: Scores) -> Scores:
    """log Σ exp(x) of each row, without overflow."""
    peak = x.max(axis=1, keepdims=True)
    return np.asarray(np.log(np.exp(x - peak).sum(axis=1)) + peak[:, 0])


def log_mean_evidence(log_sum_exp: Scores | float, count: int) -> Scores:
    """log(Σ exp(s/τ) / K)."""
    return np.asarray(log_sum_exp, dtype=np.float64) - (np.log(count) if count else 0.0)


def uncertainty_of(mean_log_evidence: Scores | float) -> Scores:
    """sigmoid(-m), without overflow for any m."""
    return np.asarray(np.exp(-np.logaddexp(0.0, mean_log_evidence)))


def expected_belief(best: Scores | float, log_sum_exp: Scores | float, count: int, temperature: float) -> Scores:
    """α_max / S with α = exp(s/τ) + 1 and S = Σ α."""
    log_alpha = np.logaddexp(np.asarray(best, dtype=np.float64) / temperature, 0.0)
    # At most 1 even if the rounding of the two logarithms differs.
    return np.asarray(np.exp(np.minimum(log_alpha - np.logaddexp(log_sum_exp, np.log(count)), 0.0)))


def empty(temperature: float) -> Partial:
    """The partial result of no rows: merging it changes nothing."""
    return Partial(np.empty(0, np.int64), np.empty(0), -np.inf, 0, temperature)


def merge(a: Partial, b: Partial, top: int) -> Partial:
    """Join the results of two disjoint sets of rows; exact if each kept at least ``top`` rows (or all)."""
    _check_same_temperature(a.temperature, b.temperature)
    ids, scores = best_rows(np.concatenate([a.ids, b.ids]), np.concatenate([a.scores, b.scores]), top)
    log_sum_exp = float(np.logaddexp(a.log_sum_exp, b.log_sum_exp))
    return Partial(ids, scores, log_sum_exp, a.count + b.count, a.temperature)


def merge_results(a: ScanResult, b: ScanResult, top: int) -> ScanResult:
    """`merge` for every query of a batch."""
    _check_same_temperature(a.temperature, b.temperature)
    if len(a) != len(b):
        raise InputError(
            f"results of {len(a)} and of {len(b)} queries cannot be merged; scan the same batch in every part"
        )
    ids, scores = best_rows(np.hstack([a.ids, b.ids]), np.hstack([a.scores, b.scores]), top)
    return ScanResult(ids, scores, np.logaddexp(a.log_sum_exp, b.log_sum_exp), a.count + b.count, a.temperature)


def best_rows(ids: Ids, scores: Scores, top: int) -> tuple[Ids, Scores]:
    """The ``top`` best along the last axis: higher score first, ties by the smaller id."""
    order = np.lexsort((ids, -scores), axis=-1)[..., :top]
    return np.take_along_axis(ids, order, axis=-1), np.take_along_axis(scores, order, axis=-1)


def _check_same_temperature(a: float, b: float) -> None:
    if a != b:
        raise InputError(f"results at temperatures {a:g} and {b:g} cannot be merged; scan every part at the same one")
