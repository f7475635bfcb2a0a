"""How well an uncertainty tells wrong answers from right ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evidex.errors import InputError


@dataclass(frozen=True)
class Selective:
    """Quality of an uncertainty as a reason to withhold answers.

    ``auroc`` is the chance that a wrong answer is more uncertain than a right one, ties counting one half; NaN if all
    answers are right or all are wrong, since there is nothing to tell apart. ``aurc`` is the mean over all coverages
    of the risk (share of wrong answers) among the most certain queries; lower is better. ``excess_aurc`` is what of
    it a perfect order would save. ``risk[n-1]`` is the risk if only the ``n`` most certain queries are answered, and
    ``coverage[n-1]`` their share.
    """

    auroc: float
    aurc: float
    excess_aurc: float
    coverage: NDArray[np.float64]
    risk: NDArray[np.float64]


def selective(uncertainty: ArrayLike, correct: ArrayLike) -> Selective:
    """Rank queries by ``uncertainty`` (queries,) and compare with ``correct`` (queries,).

    ``correct`` is boolean, or the chance in [0, 1] that the answer is right where tied gallery items leave it open. A
    query that is right with chance c then counts as a right answer of weight c and a wrong one of weight 1 - c.
    Queries of equal uncertainty are taken in random order, in expectation.
    """
    score = _scores(uncertainty, "uncertainty")
    right = _scores(correct, "correct")
    if score.shape != right.shape:
        raise InputError(f"{score.size} uncertainties for {right.size} answers; give one a query")
    if right.min() < 0 or right.max() > 1:
        raise InputError(f"correct runs from {right.min():g} to {right.max():g}; use booleans or chances from 0 to 1")
    wrong = 1.0 - right
    risk = _risk(score, wrong)
    aurc = math.fsum(risk) / len(risk)
    best = _risk(wrong, wrong)
    return Selective(
        auroc=weighted_auroc(score, positive=wrong, negative=right),
        aurc=aurc,
        excess_aurc=aurc - math.fsum(best) / len(best),
        coverage=np.arange(1, len(score) + 1) / len(score),
        risk=risk,
    )


def auroc(high: ArrayLike, low: ArrayLike) -> float:
    """Chance that a value of ``high`` exceeds a value of ``low``, ties counting one half; NaN if either is empty."""
    above, below = np.asarray(high, dtype=np.float64).ravel(), np.asarray(low, dtype=np.float64).ravel()
    if not above.size or not below.size:
        return math.nan
    score = _scores(np.concatenate([above, below]), "score")
    positive = np.concatenate([np.ones(above.size), np.zeros(below.size)])
    return weighted_auroc(score, positive=positive, negative=1.0 - positive)


def weighted_auroc(
    score: NDArray[np.float64], *, positive: NDArray[np.float64], negative: NDArray[np.float64]
) -> float:
    """AUROC where item ``i`` is a positive of weight ``positive[i]`` and a negative of weight ``negative[i]``."""
    total = positive.sum() * negative.sum()
    if total <= 0:
        return math.nan
    _, group = np.unique(score, return_inverse=True)
    above = np.bincount(group, weights=positive)
    below = np.bincount(group, weights=negative)
    beaten = np.cumsum(below) - below / 2
    return float(min(1.0, max(0.0, np.dot(above, beaten) / total)))


def auroc_error(uncertainty: ArrayLike, correct: ArrayLike, groups: ArrayLike) -> float:
    """Standard error of `selective`'s AUROC: the larger of that of a worthless score and that of these scores.

    The answers of one of ``groups`` (queries,) are right or wrong together, and scored more or less alike. The first is
    that of p wrong answers and n right ones, sqrt((p + n + 1) / 12pn), which holds however few are wrong; answers of
    one group count as the fewer the more alike their scores are, down to one. The second is DeLong's, whose parts are
    summed within groups.
    """
    score, right = _scores(uncertainty, "uncertainty"), _scores(correct, "correct")
    wrong = 1.0 - right
    positives, negatives = wrong.sum(), right.sum()
    if positives * negatives <= 0:
        return math.nan
    _, tied = np.unique(score, return_inverse=True)
    above, below = np.bincount(tied, weights=wrong), np.bincount(tied, weights=right)
    beaten = (np.cumsum(below) - below / 2)[tied] / negatives
    beats_it = 1.0 - (np.cumsum(above) - above / 2)[tied] / positives
    area = float(np.dot(wrong, beaten) / positives)
    parts = wrong * (beaten - area) / positives + right * (beats_it - area) / negatives
    _, group = np.unique(np.asarray(groups), return_inverse=True)
    sums = np.bincount(group, weights=parts)
    spread = float(np.dot(sums, sums)) * len(sums) / max(len(sums) - 1, 1)
    ranks = (np.cumsum(above + below) - (above + below) / 2)[tied]
    alike = _alikeness(ranks, group)
    p, n = (_independent(np.bincount(group, weights=weight), alike) for weight in (wrong, right))
    return math.sqrt(max((p + n + 1) / (12 * p * n), spread))


def _alikeness(values: NDArray[np.float64], group: NDArray[np.intp]) -> float:
    """Correlation of values of one group, 0 to 1, by analysis of variance; 0 where all groups are single."""
    sizes = np.bincount(group).astype(np.float64)
    total, count = len(values), len(sizes)
    if count == total:
        return 0.0
    if count == 1:
        return 1.0
    means = np.bincount(group, weights=values) / sizes
    within = float(((values - means[group]) ** 2).sum()) / (total - count)
    between = float(np.dot(sizes, (means - values.mean()) ** 2)) / (count - 1)
    usual = (total - np.dot(sizes, sizes) / total) / (count - 1)
    whole = between + (usual - 1) * within
    return min(1.0, max(0.0, float((between - within) / whole))) if whole > 0 else 0.0


def _independent(sizes: NDArray[Any], alike: float) -> float:
    """As how many values of their own those of groups of such ``sizes`` count (Kish's effective sample size)."""
    return float(sizes.sum() ** 2 / np.dot(sizes, 1 + np.maximum(sizes - 1, 0) * alike))


def _risk(score: NDArray[np.float64], wrong: NDArray[np.float64]) -> NDArray[np.float64]:
    """Risk among the n most certain, n = 1, 2, ...; in a random order of ties each place holds their mean error."""
    order = np.argsort(score, kind="stable")
    _, group, size = np.unique(score[order], return_inverse=True, return_counts=True)
    mean_error = np.bincount(group, weights=wrong[order]) / size
    risk: NDArray[np.float64] = np.cumsum(mean_error[group]) / np.arange(1, len(score) + 1)
    return np.clip(risk, 0.0, 1.0)


def _scores(values: Any, name: str) -> NDArray[np.float64]:
    if hasattr(values, "detach"):
        values = values.detach().cpu().double().numpy()
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not array.size:
        raise InputError(f"{name} has shape {array.shape}; pass one value a query in a non-empty vector")
    if np.isnan(array).any():
        raise InputError(f"{name} is NaN for query {int(np.flatnonzero(np.isnan(array))[0])}; leave such queries out")
    return array
