"""How often answers of some doubt are right: a falling curve of two straight pieces in log-odds.

Among known queries success falls with the doubt, and more slowly from some point on, where the doubt comes from queries
that are hardly at home rather than from difficult ones. Beyond nearly all known queries next to nothing was seen; from
there on the log-odds fall as fast as the doubt rises, as they do for queries that are not at home.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evidex.retrieval.certainty.logistic import Numbers, fit_logistic, sigmoid

_BEND, _LAST = 0.85, 0.98  # shares of the known queries up to the bend, and up to what counts as seen
_RIDGE = 1.0


@dataclass(frozen=True)
class Frequency:
    """Log-odds of a right answer = intercept - before · min(d, bend) - after · (d - bend)₊, and -1 a unit past last."""

    intercept: float
    before: float
    after: float
    bend: float
    last: float

    def chances(self, doubt: Numbers) -> Numbers:
        seen = np.minimum(doubt, self.last)
        fall = self.before * np.minimum(seen, self.bend) + self.after * np.maximum(seen - self.bend, 0.0)
        return sigmoid(self.intercept - fall - np.maximum(doubt - self.last, 0.0))


EVEN = Frequency(0.0, 1.0, 1.0, 0.0, np.inf)
"""Takes the doubt for the log-odds that it is."""


def fit_frequency(doubt: Numbers, right: Numbers) -> Frequency:
    """Learn the curve from known queries; a piece that would rise is made flat: doubt must never raise a chance."""
    bend = float(np.quantile(doubt, _BEND))
    pieces = np.stack([-np.minimum(doubt, bend), -np.maximum(doubt - bend, 0.0)], axis=1)
    used = np.array([True, True])
    while True:
        fitted = fit_logistic(pieces[:, used], right, _RIDGE)
        if not used.any() or (fitted.weights >= 0).all():
            break
        used[np.flatnonzero(used)[fitted.weights < 0]] = False
    slopes = np.zeros(2)
    slopes[used] = fitted.weights
    last = float(np.quantile(doubt, _LAST))
    return Frequency(fitted.intercept, float(slopes[0]), float(slopes[1]), bend, last)
