from __future__ import annotations

import numpy as np
import pytest
from mapie.risk_control.fwer_control import FWERFixedSequenceTesting, control_fwer
from mapie.risk_control.methods import compute_hoeffding_bentkus_p_value
from numpy.typing import NDArray
from scipy.stats import binom

from evidex.errors import InputError
from evidex.retrieval.certainty.guarantee import candidate_thresholds, find_threshold, hoeffding_bentkus


def sample(rng: np.random.Generator, count: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Scores uniform in [0, 1]; a query is wrong with probability score²/2, so R(t) = t²/6."""
    scores = rng.random(count)
    return scores, rng.random(count) >= scores**2 / 2


def test_p_values_equal_those_of_mapie() -> None:
    answered = np.array([1, 5, 20, 100, 100, 400, 1000, 5000])
    errors = np.array([0, 0, 1, 3, 30, 20, 90, 600])
    for alpha in (0.01, 0.05, 0.1, 0.3):
        want = compute_hoeffding_bentkus_p_value(errors / answered, answered, alpha, binary=True)[:, 0]
        got = [hoeffding_bentkus(int(e), int(n), alpha) for e, n in zip(errors, answered, strict=True)]
        # MAPIE rounds n·(errors/n) up, which can be one more than the errors.
        exact = np.ceil(errors / answered * answered) == errors
        np.testing.assert_allclose(np.array(got)[exact], want[exact], rtol=1e-9, atol=1e-300)
        assert exact.sum() >= 6


def test_p_values_are_never_below_the_probability_of_so_few_errors() -> None:
    for answered in (1, 7, 50, 3000):
        for errors in {0, 1, answered // 20, answered // 3, answered}:
            tail = binom.cdf(errors, answered, 0.1)
            assert hoeffding_bentkus(errors, answered, 0.1) >= tail * (1 - 1e-9)
    assert hoeffding_bentkus(0, 0, 0.1) == 1.0


@pytest.mark.parametrize("seed", range(12))
def test_the_threshold_is_that_of_mapies_procedure(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores, correct = sample(rng, 800)
    candidates = np.linspace(0.15, 1, 40)
    got = find_threshold(scores, correct, alpha=0.06, delta=0.1, candidates=candidates)
    answered = np.array([(scores <= t).sum() for t in candidates])
    errors = np.array([(~correct & (scores <= t)).sum() for t in candidates])
    # A hair less than the rate keeps MAPIE from rounding the count up.
    rates = np.maximum(errors / answered - 1e-12, 0)
    p_values = compute_hoeffding_bentkus_p_value(rates, answered, 0.06, binary=True)[:, 0]
    rejected = control_fwer(p_values, 0.1, FWERFixedSequenceTesting())
    if len(rejected) == 0:
        assert got.threshold is None
    else:
        assert got.threshold == candidates[rejected.max()]
        assert got.answered == answered[rejected.max()]
        assert got.wrong == errors[rejected.max()]


def test_the_guarantee_is_kept_and_is_worth_something() -> None:
    alpha, delta, trials = 0.05, 0.1, 1500
    rng = np.random.default_rng(7)
    broken, coverage = 0, []
    for _ in range(trials):
        scores, correct = sample(rng, 600)
        found = find_threshold(scores, correct, alpha=alpha, delta=delta, rng=rng)
        if found.threshold is not None:
            broken += found.threshold**2 / 6 > alpha
            coverage.append(found.threshold)
    # Three standard deviations of the simulation itself above delta.
    assert broken / trials <= delta + 3 * np.sqrt(delta * (1 - delta) / trials)
    # The best threshold would be sqrt(6 alpha) = 0.548; a method that never answered would keep its guarantee too.
    assert len(coverage) > 0.8 * trials
    assert np.median(coverage) > 0.35


def test_the_guarantee_holds_at_its_hardest() -> None:
    """Every query is wrong with a probability just above alpha: any threshold at all breaks the guarantee."""
    alpha, delta, trials = 0.1, 0.2, 1500
    rng = np.random.default_rng(8)
    answered = 0
    for _ in range(trials):
        scores, correct = rng.random(400), rng.random(400) >= 0.1001
        answered += find_threshold(scores, correct, alpha=alpha, delta=delta, rng=rng).threshold is not None
    assert answered / trials <= delta + 3 * np.sqrt(delta * (1 - delta) / trials)
    assert answered > 0


def test_it_says_so_when_no_threshold_achieves_it() -> None:
    rng = np.random.default_rng(9)
    scores = rng.random(500)
    found = find_threshold(scores, rng.random(500) < 0.5, alpha=0.05, delta=0.1, rng=rng)
    assert (found.threshold, found.answered, found.coverage) == (None, 0, 0.0)
    assert "no threshold achieves at most 5.0% wrong answers with confidence 90.0%" in found.describe()
    few = find_threshold(scores[:8], np.ones(8, np.bool_), alpha=0.05, delta=0.1, rng=rng)
    assert few.threshold is None


def test_a_perfect_ranking_is_answered_entirely() -> None:
    rng = np.random.default_rng(10)
    found = find_threshold(rng.random(500), np.ones(500, np.bool_), alpha=0.05, delta=0.1, rng=rng)
    assert found.coverage > 0.95
    assert found.wrong == 0
    assert "0 of" in found.describe()


def test_candidates_run_from_strict_to_loose_and_leave_enough_to_test() -> None:
    scores = np.random.default_rng(11).random(2000)
    candidates = candidate_thresholds(scores, 2000, 0.05, 0.1)
    assert (np.diff(candidates) >= 0).all()
    assert candidates[-1] == scores.max()
    assert (1 - 0.05) ** (scores <= candidates[0]).sum() <= 0.1


def test_bad_input_is_refused() -> None:
    scores, correct = np.array([0.1, 0.2]), np.array([True, False])
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="alpha is 0"):
        find_threshold(scores, correct, alpha=0, delta=0.1, rng=rng)
    with pytest.raises(InputError, match="delta is 1"):
        find_threshold(scores, correct, alpha=0.1, delta=1, rng=rng)
    with pytest.raises(InputError, match=r"\(2,\) and answers of shape \(1,\)"):
        find_threshold(scores, correct[:1], alpha=0.1, delta=0.1, rng=rng)
    with pytest.raises(InputError, match="NaN"):
        find_threshold(scores * np.nan, correct, alpha=0.1, delta=0.1, rng=rng)
    with pytest.raises(InputError, match="one must place the tests"):
        find_threshold(scores, correct, alpha=0.1, delta=0.1)


def test_queries_that_place_the_candidates_are_not_tested() -> None:
    """A wrong answer to one of them changes nothing; to any other that is answered, it is one error."""
    scores = np.random.default_rng(12).random(100)

    def wrong(*places: int) -> int:
        correct = ~np.isin(np.arange(100), places)
        found = find_threshold(scores, correct, alpha=0.3, delta=0.1, rng=np.random.default_rng(0))
        assert found.tested == 80
        assert found.threshold is not None
        return found.wrong

    errors = sum(wrong(place) for place in range(100))
    sure = find_threshold(scores, np.ones(100, np.bool_), alpha=0.3, delta=0.1, rng=np.random.default_rng(0))
    assert errors == sure.answered
    assert 70 < sure.answered <= 80
