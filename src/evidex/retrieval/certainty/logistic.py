"""Logistic regression with a ridge, by Newton's method."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evidex.errors import InputError

Numbers = NDArray[np.float64]

_MOST_STEPS = 100
_MOST_HALVINGS = 40
_TOLERANCE = 1e-10


@dataclass(frozen=True, eq=False)
class Logistic:
    """Log-odds of success = inputs · weights + intercept."""

    weights: Numbers
    intercept: float

    def log_odds(self, inputs: Numbers) -> Numbers:
        return np.asarray(inputs @ self.weights + self.intercept)


def fit_logistic(inputs: Numbers, success: Numbers, ridge: float) -> Logistic:
    """Minimise the cross-entropy of ``success`` (n,), in [0, 1], plus ridge/2 · |weights|²; the intercept is free.

    The loss is strictly convex where both outcomes occur, so there is one minimum and Newton's steps, halved where they
    overshoot, find it from anywhere.
    """
    if inputs.ndim != 2 or success.shape != inputs.shape[:1]:
        raise InputError(f"inputs of shape {inputs.shape} for {success.shape} outcomes; give a row for each outcome")
    if not (np.isfinite(inputs).all() and np.isfinite(success).all()):
        raise InputError("inputs or outcomes are infinite or no number; leave such queries out")
    if not (np.isfinite(ridge) and ridge > 0):
        raise InputError(f"ridge {ridge:g} is no positive number")
    rate = float(success.mean()) if len(success) else 0.0
    if success.min(initial=0) < 0 or success.max(initial=1) > 1 or not 0 < rate < 1:
        raise InputError("the outcomes are all alike or none; both right and wrong answers are needed to learn from")
    design = np.hstack([inputs, np.ones((len(inputs), 1))])
    penalty = np.full(design.shape[1], ridge)
    penalty[-1] = 0.0
    solution = np.zeros(design.shape[1])
    solution[-1] = np.log(rate) - np.log1p(-rate)
    loss = _loss(design, success, penalty, solution)
    for _ in range(_MOST_STEPS):
        chance = sigmoid(design @ solution)
        gradient = design.T @ (chance - success) + penalty * solution
        curvature = (design * (chance * (1 - chance))[:, None]).T @ design + np.diag(penalty)
        step = np.linalg.solve(curvature, gradient)
        if np.abs(step).max() < _TOLERANCE:
            break
        for _ in range(_MOST_HALVINGS):
            trial = _loss(design, success, penalty, solution - step)
            if trial <= loss:
                break
            step /= 2
        else:
            break
        solution, loss = solution - step, trial
    return Logistic(solution[:-1], float(solution[-1]))


def sigmoid(values: Numbers) -> Numbers:
    """1/(1 + exp(-x)) without overflow."""
    return np.asarray(np.exp(-np.logaddexp(0.0, -values)))


def _loss(design: Numbers, success: Numbers, penalty: Numbers, solution: Numbers) -> float:
    log_odds = design @ solution
    return float((np.logaddexp(0.0, log_odds) - success * log_odds).sum() + (penalty * solution**2).sum() / 2)
