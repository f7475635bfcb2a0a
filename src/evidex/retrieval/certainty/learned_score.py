"""How likely is it that an answer is right? Learned from queries whose answers are known.

No single score sees everything. Vacuity notices that content is absent, but hardly that an answer is wrong: it is a
mean over the gallery that one good match barely moves. Where the evidence sits (the best match against the rest, and
against what other queries find in the same rows) tells right from wrong, but not absent from present. So the two are
learned apart and multiplied:

    P(right) = P(right | at home, signals) · P(at home)

The first factor is a ridge logistic regression on the signals (`evidex.retrieval.certainty.signals`), held within their
range among the known queries, since nothing was learned beyond it. The second says whether the query is one of the
kind that was learned from: it falls from 1 to 0 where a query finds less evidence than nearly all known ones (the
content is not there) or is unlike all of them (a query out of domain), and goes on falling however far it is, so that
such queries stand apart from merely difficult ones.

The product orders queries: its log-odds are the doubt. Known queries are all at home, so among them the second factor
is too strict; how often answers of some doubt are right is read off known queries that were held out for that
(`evidex.retrieval.certainty.frequency`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evidex.errors import InputError
from evidex.retrieval.certainty.frequency import EVEN, Frequency, fit_frequency
from evidex.retrieval.certainty.logistic import Logistic, fit_logistic
from evidex.retrieval.certainty.signals import SIGNAL_NAMES, Numbers, Surroundings, Vectors, read_signals
from evidex.retrieval.scan.partial import ScanResult

LEARNED = "learned"
"""Name of the score: the log-odds of a wrong answer."""
LEAST_OF_EACH = 10
"""Right and wrong answers that are needed to learn from."""
MOST_PAST_QUERIES = 512
_RIDGE = 200.0
_TRIMMED = 0.005  # share of the known queries beyond either end of a signal's range
# A query is at home until a signal lies so many spreads below its median; there it is with chance 1/2, which then falls
# by e^-4 a spread. A spread is the way from the median to the 16th percentile: the standard deviation of a normal one.
_HOME = {"evidence": 1.75, "familiar": 2.5}
_FALL = 4.0
_LEAST_SPREAD = 0.05
HOME_NAMES = tuple(_HOME)
_HOME_SIGNALS = [SIGNAL_NAMES.index(name) for name in HOME_NAMES]
_BORDERS = np.array(list(_HOME.values()))
LEARNED_NAMES = tuple(name for name in SIGNAL_NAMES if name != "familiar")
_LEARNED = [SIGNAL_NAMES.index(name) for name in LEARNED_NAMES]

Groups = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Known:
    """Queries with known answers, as they were found."""

    result: ScanResult
    queries: Vectors
    """(queries, dim)"""
    right: Numbers
    """(queries,) whether a relevant row is among the first; a chance in [0, 1] where ties leave it open."""
    groups: Groups
    """(queries,) equal numbers for queries that ask for the same rows: they are right or wrong together."""

    def part(self, chosen: NDArray[np.bool_]) -> Known:
        result = self.result
        return Known(
            ScanResult(
                result.ids[chosen],
                result.scores[chosen],
                result.log_sum_exp[chosen],
                result.count,
                result.temperature,
            ),
            self.queries[chosen],
            self.right[chosen],
            self.groups[chosen],
        )

    @property
    def teaches(self) -> bool:
        """Whether there are right and wrong answers enough to learn from, to questions for more than one thing."""
        enough = min(self.right.sum(), (1.0 - self.right).sum()) >= LEAST_OF_EACH
        return bool(enough and len(np.unique(self.groups)) > 1)


@dataclass(frozen=True, eq=False)
class LearnedScore:
    """The learned chance that an answer is right, for queries of one kind against one gallery."""

    around: Surroundings
    low: Numbers
    high: Numbers
    """Range of each signal that is learned from."""
    mean: Numbers
    scale: Numbers
    logistic: Logistic
    usual: Numbers
    spread: Numbers
    """Median and spread of each signal by which a query is at home."""
    frequency: Frequency
    top: int = 10
    """An answer was right if a relevant row was among so many hits."""

    def doubt(self, result: ScanResult, queries: Vectors, gallery: Vectors) -> Numbers:
        """Log-odds that each answer is wrong; ``result`` must hold the first ten rows where there are so many."""
        return self.doubt_of(read_signals(result, queries, gallery, self.around))

    def doubt_of(self, signals: Numbers) -> Numbers:
        """The same from signals that were read already; infinite where one of them is, or is no number."""
        readable = np.isfinite(signals).all(axis=1)
        doubt = np.full(len(signals), np.inf)
        doubt[readable] = self._doubt(signals[readable])
        return doubt

    def _doubt(self, signals: Numbers) -> Numbers:
        held = np.clip(signals[:, _LEARNED], self.low, self.high)
        log_odds = self.logistic.log_odds((held - self.mean) / self.scale)
        below = (self.usual - signals[:, _HOME_SIGNALS]) / self.spread
        log_at_home = -np.logaddexp(0.0, _FALL * (below - _BORDERS)).sum(axis=1)
        log_right = log_at_home - np.logaddexp(0.0, -log_odds)
        # Both logarithms at once: either the chance or its complement may be too small for a float.
        return np.asarray(np.log(-np.expm1(log_right)) - log_right)

    def chances(self, doubt: Numbers) -> Numbers:
        """The probability that answers of such doubt are right, as often as they were among the known queries."""
        return self.frequency.chances(doubt)


def fit_learned_score(
    known: Known, gallery: Vectors, middle: Vectors, rng: np.random.Generator, *, top: int = 10
) -> LearnedScore:
    """Learn from ``known`` queries over rows of ``gallery``, whose mean is ``middle``; ``rng`` picks past queries."""
    if not known.teaches:
        right = known.right.sum()
        raise InputError(
            f"{right:.0f} right and {len(known.right) - right:.0f} wrong answers to questions for "
            f"{len(np.unique(known.groups))} things are too few to learn from; "
            f"give queries with at least {LEAST_OF_EACH} of each, for at least two things"
        )
    ordering = _fit_order(known, gallery, middle, rng, top)
    half = halves(known.groups, rng)
    parts = known.part(half), known.part(~half)
    if all(part.teaches for part in parts):
        taught = [_fit_order(part, gallery, middle, rng, top) for part in parts]
        judged = list(zip(taught, reversed(parts), strict=True))
    else:  # too few to hold any out: the curve is then a little too good
        judged = [(ordering, known)]
    doubt = np.concatenate([judge.doubt(part.result, part.queries, gallery) for judge, part in judged])
    right = np.concatenate([part.right for _, part in judged])
    return replace(ordering, frequency=fit_frequency(doubt, right))


def halves(groups: Groups, rng: np.random.Generator) -> NDArray[np.bool_]:
    """One half of the queries, such that no group is in both."""
    names = np.unique(groups)
    return np.isin(groups, rng.permutation(names)[: len(names) // 2])


def _fit_order(known: Known, gallery: Vectors, middle: Vectors, rng: np.random.Generator, top: int) -> LearnedScore:
    chosen = _past_queries(known.groups, rng)
    # As they will be stored, so that a stored learned score gives the very same numbers.
    past = known.queries[chosen].astype(np.float16).astype(np.float32)
    around = Surroundings(past, np.asarray(middle, np.float32))
    own = known.groups[:, None] == known.groups[chosen]
    signals = read_signals(known.result, known.queries, gallery, around, own=own)
    if not np.isfinite(signals).all():
        raise InputError("the known queries have signals that are infinite or no number; check the encoder's output")
    low, high = np.quantile(signals[:, _LEARNED], [_TRIMMED, 1 - _TRIMMED], axis=0)
    held = np.clip(signals[:, _LEARNED], low, high)
    mean, scale = held.mean(axis=0), held.std(axis=0)
    scale[scale < 1e-9] = 1.0
    usual, low_side = np.quantile(signals[:, _HOME_SIGNALS], [0.5, 0.16], axis=0)
    return LearnedScore(
        around,
        low,
        high,
        mean,
        scale,
        fit_logistic((held - mean) / scale, known.right, _RIDGE),
        usual,
        np.maximum(usual - low_side, _LEAST_SPREAD),
        EVEN,
        top,
    )


def _past_queries(groups: Groups, rng: np.random.Generator) -> NDArray[np.intp]:
    """A bounded number of queries, one of each group."""
    order = rng.permutation(len(groups))
    first = np.unique(groups[order], return_index=True)[1]
    one_each = order[np.sort(first)]
    return np.sort(one_each[:MOST_PAST_QUERIES])
