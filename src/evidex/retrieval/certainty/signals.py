"""Signals by which a right answer may be told from a wrong one, read off a finished scan.

All come from the best rows, the log-sum-exp of all rows and the vectors at hand, at the cost of comparing ten rows with
a few hundred past queries. Similarities are in units of the temperature. Sums over the gallery enter as means, so that
a gallery that grows by more of the same keeps its signals, but for the slow growth of the best similarities.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evidex.retrieval.scan.partial import ScanResult

Vectors = NDArray[np.float32]
Numbers = NDArray[np.float64]

FIRST = 10
"""How many of the best rows are looked at."""
_QUERIES_AT_ONCE = 256
_SAME = 1e-4  # rounding splits equal rows by less

SIGNAL_NAMES = (
    "evidence",  # m = log of the mean evidence, of which vacuity is a falling function
    "best",  # highest similarity
    "peak",  # best - evidence: the log of its belief, but for the prior
    "head",  # evidence of the first rows - evidence
    "lead_2",  # best - second
    "lead_5",
    "lead_10",
    "spread",  # standard deviation of the first rows
    "entropy",  # of the softmax over the first rows
    "steps",  # falls among the first rows; equal captions make none
    "specific_best",  # how much closer the best row is to this query than to past ones
    "specific_mean",
    "specific_most",
    "specific_spread",
    "demand",  # evidence that past queries found in the first rows
    "central_query",  # closeness of the query to the middle of the gallery
    "central_best",  # of the best row
    "central_mean",  # of the first rows
    "familiar",  # similarity to the nearest past query
)


@dataclass(frozen=True, eq=False)
class Surroundings:
    """What the signals of a query are read against."""

    queries: Vectors
    """(past queries, dim) of the same kind."""
    middle: Vectors
    """(dim,) mean of the gallery's rows."""


def read_signals(
    result: ScanResult,
    queries: Vectors,
    gallery: Vectors,
    around: Surroundings,
    *,
    own: NDArray[np.bool_] | None = None,
) -> Numbers:
    """The signals (queries, signals) of ``result``, which scanned ``queries`` (queries, dim) over rows of ``gallery``.

    ``own`` (queries, past queries) marks past queries that must not speak about a query: itself, and those that ask for
    the same rows. A query that is no number has signals that are none.
    """
    tau = result.temperature
    scores = np.asarray(result.scores[:, :FIRST], np.float64) / tau
    ids = result.ids[:, :FIRST]
    evidence = result.log_mean_evidence
    best, last = scores[:, 0], scores.shape[1] - 1
    head = _log_sum_exp(scores)
    weight = np.exp(scores - head[:, None])
    rows, place = np.unique(ids, return_inverse=True)
    place = place.reshape(ids.shape)
    vectors = np.asarray(gallery[rows], np.float32)
    central = (vectors @ around.middle / tau).astype(np.float64)[place]
    demand = _demand(vectors @ around.queries.T / tau, place, own)
    specific = scores - demand
    signals = np.stack(
        [
            evidence,
            best,
            best - evidence,
            head - evidence,
            *(best - scores[:, min(rank, last)] for rank in (1, 4, 9)),
            scores.std(axis=1),
            head - (weight * scores).sum(axis=1),
            (np.diff(scores, axis=1) < -_SAME).sum(axis=1),
            specific[:, 0],
            specific.mean(axis=1),
            specific.max(axis=1),
            specific.std(axis=1),
            demand.mean(axis=1),
            queries @ around.middle / tau,
            central[:, 0],
            central.mean(axis=1),
            _nearest(queries @ around.queries.T / tau, own),
        ],
        axis=1,
    )
    return np.asarray(signals, np.float64)


def _demand(similarity: Vectors, place: NDArray[np.intp], own: NDArray[np.bool_] | None) -> Numbers:
    """Log of the mean evidence that past queries find in each of the first rows, without those marked as own."""
    if own is None:
        return np.asarray((_log_sum_exp(similarity) - np.log(similarity.shape[1]))[place])
    parts = []
    for start in range(0, len(place), _QUERIES_AT_ONCE):
        block = slice(start, start + _QUERIES_AT_ONCE)
        left_out = own[block]
        values = np.where(left_out[:, None, :], -np.inf, similarity[place[block]])
        parts.append(_log_sum_exp(values) - np.log((~left_out).sum(axis=1))[:, None])
    return np.concatenate(parts)


def _nearest(similarity: Vectors, own: NDArray[np.bool_] | None) -> Numbers:
    return np.asarray((similarity if own is None else np.where(own, -np.inf, similarity)).max(axis=1), np.float64)


def _log_sum_exp(values: NDArray[np.floating]) -> Numbers:
    top = values.max(axis=-1, keepdims=True)
    return np.asarray(np.log(np.exp(values - top).sum(axis=-1, dtype=np.float64)) + top[..., 0], np.float64)
