"""A threshold with a guarantee: learn-then-test over calibration queries whose answers are known.

The risk of a threshold t is R(t) = P(wrong | score <= t), the share of wrong answers among those that are given. For
each candidate threshold the hypothesis "R(t) > α" is tested on the calibration queries it would answer, and the
loosest threshold is taken up to which all hypotheses were rejected at level δ (fixed-sequence testing). Then, with
probability at least 1-δ over the calibration queries, R of the chosen threshold is at most α.

Why this is valid. The candidates are fixed before any tested query is looked at: they are given, or come from the
scores of a part of the queries that is then left out of the tests. So the number n of answered queries may be random,
but given n their errors are n independent draws of probability R(t), and the p-value holds for every n, hence
overall. Testing in a fixed order, from the strictest threshold on and stopping at the first failure, accepts a wrong
threshold only if the *first* wrong one in the order is rejected, which has probability at most δ: no correction for
many candidates is needed.

The guarantee is about queries like those of the calibration (independent, same kind, same gallery and model), on
average over them, not about a single query. It says nothing of searches that were not tested: fewer hits, another share
of refined queries, other rows. So it remembers what it was tested for (`Guarantee.holds_for`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evidex.errors import InputError

Scores = NDArray[np.float64]

_CANDIDATES = 50
_SHARE_FOR_CANDIDATES = 0.2


@dataclass(frozen=True)
class Guarantee:
    """Outcome of the tests: a threshold, or none if none achieves the guarantee."""

    alpha: float
    delta: float
    threshold: float | None
    """Answer queries whose score is at most this; None: no threshold achieves the guarantee."""
    tested: int
    """Calibration queries the tests could use."""
    answered: int
    """How many of them the threshold answers."""
    wrong: int
    """How many of those answers are wrong."""
    top: int | None = None
    """A tested answer was right if a relevant row was among so many hits; None: not known, as in older files."""
    refine_ratio: float | None = None
    """The share of queries that was refined before the answers were judged."""
    gallery_size: int | None = None
    """Rows that were searched."""

    @property
    def coverage(self) -> float:
        """Share of queries answered."""
        return self.answered / self.tested if self.tested else 0.0

    def holds_for(self, *, top: int, refine_ratio: float, gallery_size: int) -> bool:
        """Whether answers of ``top`` hits, without filters, are such as were tested: more hits do no harm."""
        if self.threshold is None or self.top is None:
            return False
        return top >= self.top and (refine_ratio, gallery_size) == (self.refine_ratio, self.gallery_size)

    def describe(self) -> str:
        """One sentence for people."""
        wrong = "" if self.top is None else f" (nothing relevant among the first {self.top})"
        wanted = f"at most {self.alpha:.1%} wrong answers{wrong} with confidence {1 - self.delta:.1%}"
        if self.threshold is None:
            return (
                f"no threshold achieves {wanted}, tested on {self.tested} queries;"
                " allow a larger error, accept less confidence, or calibrate with more queries"
            )
        return (
            f"{wanted}: answer up to a score of {self.threshold:.6g}, which is {self.coverage:.1%} of the queries"
            f" ({self.wrong} of {self.answered} answers wrong in calibration)"
        )


def find_threshold(
    scores: Scores,
    correct: NDArray[np.bool_],
    *,
    alpha: float,
    delta: float,
    rng: np.random.Generator | None = None,
    candidates: Scores | None = None,
) -> Guarantee:
    """Find the loosest threshold with at most ``alpha`` wrong among the answered, with confidence 1 - ``delta``.

    ``scores`` (n,) are higher for less certain queries, ``correct`` (n,) says whether the answer was right. Give
    ``candidates`` (chosen without looking at these queries) to test on all of them; otherwise ``rng`` picks a fifth
    of the queries, whose scores place the candidates and whose answers are not used.
    """
    values = np.asarray(scores, np.float64)
    wrong = ~np.asarray(correct, np.bool_)
    _check(values, wrong, alpha, delta)
    if candidates is None:
        if rng is None:
            raise InputError("neither candidate thresholds nor a random generator given; one must place the tests")
        order = rng.permutation(len(values))
        held_out, kept = np.split(order, [round(_SHARE_FOR_CANDIDATES * len(values))])
        candidates = candidate_thresholds(values[held_out], len(kept), alpha, delta)
        values, wrong = values[kept], wrong[kept]
    best = Guarantee(alpha, delta, None, len(values), 0, 0)
    for threshold in np.unique(candidates):
        inside = values <= threshold
        answered, errors = int(inside.sum()), int(wrong[inside].sum())
        if hoeffding_bentkus(errors, answered, alpha) > delta:
            break
        best = Guarantee(alpha, delta, float(threshold), len(values), answered, errors)
    return best


def candidate_thresholds(scores: Scores, tests: int, alpha: float, delta: float) -> Scores:
    """Quantiles of ``scores``, strictest first, for a test on ``tests`` other queries.

    The strictest answers twice as many queries as it takes to reject without a single error, (1-α)ⁿ <= δ: a test on
    fewer can hardly succeed, and the sequence ends at its first failure.
    """
    if len(scores) == 0 or tests == 0:
        return np.empty(0)
    needed = math.log(delta) / math.log1p(-alpha)
    first = min(1.0, 2 * needed / tests)
    return np.asarray(np.quantile(scores, np.linspace(first, 1.0, _CANDIDATES), method="higher"))


def hoeffding_bentkus(errors: int, answered: int, alpha: float) -> float:
    """p-value of "the error rate exceeds ``alpha``" after ``errors`` wrong answers of ``answered``.

    The smaller of Hoeffding's exp(-n h(r, α)) and Bentkus' binomial tail, whose factor e falls away for errors of 0
    or 1.
    """
    if answered == 0:
        return 1.0
    rate = min(errors / answered, alpha)
    divergence = (1 - rate) * math.log((1 - rate) / (1 - alpha))
    if rate > 0:
        divergence += rate * math.log(rate / alpha)
    return min(math.exp(-answered * divergence), _binomial_tail(errors, answered, alpha))


def _binomial_tail(most: int, trials: int, probability: float) -> float:
    """P(X <= most) for X binomial."""
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, trials + 1)))])
    hits = np.arange(most + 1)
    log_choose = log_factorial[trials] - log_factorial[hits] - log_factorial[trials - hits]
    log_terms = log_choose + hits * math.log(probability) + (trials - hits) * math.log1p(-probability)
    return min(1.0, float(np.exp(log_terms).sum()))


def _check(scores: Scores, wrong: NDArray[np.bool_], alpha: float, delta: float) -> None:
    if scores.ndim != 1 or scores.shape != wrong.shape:
        raise InputError(f"scores of shape {scores.shape} and answers of shape {wrong.shape}; give one of each a query")
    if np.isnan(scores).any():
        raise InputError("the scores hold NaN; every calibration query needs a number")
    for name, value in (("alpha", alpha), ("delta", delta)):
        if not 0 < value < 1:
            raise InputError(f"{name} is {value:g}; give a number between 0 and 1")
