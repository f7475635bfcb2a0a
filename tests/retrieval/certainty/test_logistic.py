from __future__ import annotations

import numpy as np
import pytest

from evidex.errors import InputError
from evidex.retrieval.certainty.logistic import fit_logistic, sigmoid


def _data(rows: int, columns: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    inputs = rng.normal(size=(rows, columns))
    return inputs, (rng.random(rows) < sigmoid(inputs[:, 0] * 2 - 0.5)).astype(np.float64)


@pytest.mark.parametrize("ridge", [0.1, 5.0, 500.0])
def test_it_agrees_with_an_independent_solver(ridge: float) -> None:
    linear_model = pytest.importorskip("sklearn.linear_model", reason="scikit-learn is not installed")
    inputs, right = _data(300, 6, 0)
    oracle = linear_model.LogisticRegression(C=1 / ridge, tol=1e-12, max_iter=10_000).fit(inputs, right)
    got = fit_logistic(inputs, right, ridge)
    np.testing.assert_allclose(got.weights, oracle.coef_[0], atol=1e-5)
    assert got.intercept == pytest.approx(oracle.intercept_[0], abs=1e-5)
    np.testing.assert_allclose(got.log_odds(inputs), oracle.decision_function(inputs), atol=1e-4)


def test_no_nearby_point_has_a_smaller_loss() -> None:
    rng = np.random.default_rng(1)
    inputs, right = rng.normal(size=(80, 3)), rng.random(80)  # chances, not outcomes

    def loss(weights: np.ndarray, intercept: float) -> float:
        chance = 1 / (1 + np.exp(-(inputs @ weights + intercept)))
        return float(-(right * np.log(chance) + (1 - right) * np.log(1 - chance)).sum() + 3.0 * (weights**2).sum() / 2)

    got = fit_logistic(inputs, right, 3.0)
    least = loss(got.weights, got.intercept)
    for _ in range(200):
        step = rng.normal(scale=10.0 ** rng.uniform(-4, 0), size=4)
        assert loss(got.weights + step[:3], got.intercept + step[3]) >= least


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e3])
def test_separable_and_badly_scaled_inputs_still_have_a_minimum(scale: float) -> None:
    inputs = np.linspace(-1, 1, 50)[:, None] * scale
    got = fit_logistic(inputs, (inputs[:, 0] > 0).astype(np.float64), 1.0)
    gradient = inputs.T @ (sigmoid(got.log_odds(inputs)) - (inputs[:, 0] > 0)) + got.weights
    assert np.isfinite(got.intercept)
    assert abs(gradient[0]) < 1e-6 * max(scale, 1.0)


def test_constant_columns_carry_no_weight() -> None:
    inputs, right = _data(100, 2, 2)
    got = fit_logistic(np.hstack([inputs, np.zeros((100, 1))]), right, 1.0)
    assert got.weights[2] == 0.0
    np.testing.assert_allclose(got.weights[:2], fit_logistic(inputs, right, 1.0).weights, atol=1e-9)


@pytest.mark.parametrize("right", [np.zeros(10), np.ones(10), np.empty(0), np.full(10, np.nan), np.full(10, 2.0)])
def test_one_kind_of_outcome_or_none_is_refused(right: np.ndarray) -> None:
    with pytest.raises(InputError):
        fit_logistic(np.ones((len(right), 2)), right, 1.0)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_inputs_that_are_no_numbers_are_refused(value: float) -> None:
    inputs, right = _data(10, 2, 3)
    inputs[4, 1] = value
    with pytest.raises(InputError, match="infinite or no number"):
        fit_logistic(inputs, right, 1.0)
    with pytest.raises(InputError, match="shape"):
        fit_logistic(inputs[:5], right, 1.0)
    with pytest.raises(InputError, match="ridge"):
        fit_logistic(np.ones((10, 1)), right, value)


def test_the_sigmoid_neither_overflows_nor_cancels() -> None:
    with np.errstate(over="raise"):
        got = sigmoid(np.array([-1e4, -40.0, 0.0, 40.0, 1e4]))
    np.testing.assert_allclose(got, [0.0, np.exp(-40.0), 0.5, 1.0, 1.0], rtol=1e-12)
