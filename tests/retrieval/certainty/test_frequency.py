from __future__ import annotations

import numpy as np
import pytest

from evidex.retrieval.certainty.frequency import EVEN, fit_frequency
from evidex.retrieval.certainty.logistic import sigmoid


def test_it_finds_the_true_frequency() -> None:
    rng = np.random.default_rng(0)
    doubt = np.concatenate([rng.normal(0.5, 1.0, 8500), rng.uniform(2.0, 8.0, 1500)])
    bend = np.quantile(doubt, 0.85)
    truth = sigmoid(0.3 - np.minimum(doubt, bend) - 0.1 * np.maximum(doubt - bend, 0))
    right = (rng.random(10_000) < truth).astype(np.float64)
    learned = fit_frequency(doubt, right)
    assert np.abs(learned.chances(doubt) - truth).mean() < 0.02
    assert learned.chances(doubt).mean() == pytest.approx(right.mean(), abs=0.002)
    assert np.abs(EVEN.chances(doubt) - truth).mean() > 0.04


@pytest.mark.parametrize("slope", [-1.0, 0.0, 2.0])
def test_more_doubt_never_raises_the_chance(slope: float) -> None:
    rng = np.random.default_rng(1)
    doubt = rng.normal(size=400)
    learned = fit_frequency(doubt, (rng.random(400) < sigmoid(-slope * doubt)).astype(np.float64))
    chances = learned.chances(np.linspace(-50, 50, 2001))
    assert (np.diff(chances) <= 0).all()
    assert learned.chances(np.array([doubt.max() + 30.0]))[0] < 1e-9
    assert learned.chances(np.array([np.inf]))[0] == 0.0


def test_the_even_one_takes_the_doubt_at_its_word() -> None:
    doubt = np.linspace(-5, 5, 11)
    np.testing.assert_allclose(EVEN.chances(doubt), 1 / (1 + np.exp(doubt)), rtol=1e-12)


def test_equal_doubts_give_the_mean() -> None:
    learned = fit_frequency(np.full(50, 1.0), np.arange(50) % 5 == 0)
    assert learned.chances(np.array([1.0]))[0] == pytest.approx(0.2, abs=0.01)
