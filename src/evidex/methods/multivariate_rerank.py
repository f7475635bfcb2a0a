"""GaLR's second ranking: the first answers of a query, weighed by how well they ask for it in turn (Yuan et al., 2022).

It needs all queries at once, and so is for measurements, not for a search.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_CANDIDATES = 30
_SALIENCE, _REVERSE = 0.3, 1.1  # weights of the authors for RSICD; the first ranking has 1
_DECAY = 0.05


def multivariate_rerank(scores: NDArray[np.floating]) -> NDArray[np.float64]:
    """Rank the first 30 answers of each query again; ``scores`` (queries, answers), answers beyond them get 0.

    An answer's new score adds up its share in the similarities of all queries to it, its place among the query's
    answers, and its place when these are ordered by how early each finds the query among all queries.
    """
    scores = np.asarray(scores, np.float64)
    queries, answers = scores.shape
    candidates = np.argsort(-scores, axis=1, kind="stable")[:, : min(_CANDIDATES, answers)]
    found_at = np.empty((queries, answers), np.int32)
    by_answer = np.argsort(-scores, axis=0, kind="stable")
    np.put_along_axis(found_at, by_answer, np.arange(queries, dtype=np.int32)[:, None], axis=0)
    reverse = np.take_along_axis(found_at, candidates, 1)
    turn = np.argsort(np.argsort(reverse, axis=1, kind="stable"), axis=1, kind="stable")
    total = scores.sum(0)
    share = np.divide(scores, total, out=np.zeros_like(scores), where=total != 0)
    new = _SALIENCE * np.take_along_axis(share, candidates, 1)
    new = new + _decayed(np.arange(candidates.shape[1])) + _REVERSE * _decayed(turn)
    again = np.zeros_like(scores)
    np.put_along_axis(again, candidates, new, 1)
    return again


def _decayed(place: NDArray[np.integer]) -> NDArray[np.float64]:
    return np.asarray(np.exp(-_DECAY * (place + 1.0)), np.float64)
