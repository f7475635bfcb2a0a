from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from evidex.errors import InputError
from evidex.evaluation import auroc, selective
from evidex.evaluation.selective import auroc_error


def enumerated_aurc(uncertainty: NDArray[Any], correct: NDArray[Any]) -> float:
    """Mean risk over coverages, averaged over every order that sorts the uncertainty."""
    areas = []
    for order in itertools.permutations(range(len(uncertainty))):
        if all(uncertainty[a] <= uncertainty[b] for a, b in itertools.pairwise(order)):
            wrong = [1 - float(correct[i]) for i in order]
            areas.append(sum(sum(wrong[:n]) / n for n in range(1, len(wrong) + 1)) / len(wrong))
    return sum(areas) / len(areas)


@pytest.mark.parametrize("levels", [2, 5, 1000])
@pytest.mark.parametrize("seed", range(4))
def test_auroc_equals_scikit_learn(seed: int, levels: int) -> None:
    rng = np.random.default_rng(seed)
    uncertainty = rng.integers(0, levels, size=200) / levels
    correct = rng.random(200) < 0.3
    assert selective(uncertainty, correct).auroc == pytest.approx(roc_auc_score(~correct, uncertainty), rel=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_chances_of_being_right_act_as_weights(seed: int) -> None:
    rng = np.random.default_rng(seed)
    uncertainty = rng.integers(0, 20, size=150).astype(float)
    correct = np.where(rng.random(150) < 0.5, rng.random(150), rng.integers(0, 2, size=150))
    expected = roc_auc_score(
        np.repeat([1, 0], 150), np.tile(uncertainty, 2), sample_weight=np.concatenate([1 - correct, correct])
    )
    assert selective(uncertainty, correct).auroc == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_aurc_is_the_mean_over_all_orders_of_ties(seed: int) -> None:
    rng = np.random.default_rng(seed)
    uncertainty = rng.integers(0, 3, size=7)
    correct = rng.random(7) if seed % 2 else rng.integers(0, 2, size=7)
    assert selective(uncertainty, correct).aurc == pytest.approx(enumerated_aurc(uncertainty, correct), rel=1e-12)


def test_a_perfect_order_has_no_excess_and_a_reversed_one_the_most() -> None:
    correct = np.array([True, True, True, False, False])
    perfect = selective([0.1, 0.2, 0.3, 0.4, 0.5], correct)
    reverse = selective([0.5, 0.4, 0.3, 0.2, 0.1], correct)
    assert perfect.auroc == 1.0
    assert perfect.excess_aurc == 0.0
    assert perfect.aurc == pytest.approx((0 + 0 + 0 + 1 / 4 + 2 / 5) / 5)
    assert reverse.auroc == 0.0
    assert reverse.aurc == pytest.approx((1 + 1 + 2 / 3 + 2 / 4 + 2 / 5) / 5)


def test_a_constant_uncertainty_is_worth_nothing() -> None:
    correct = np.array([True, False, True, True])
    got = selective(np.full(4, 0.7), correct)
    assert got.auroc == 0.5
    assert got.aurc == pytest.approx(0.25)
    np.testing.assert_allclose(got.risk, 0.25)


def test_the_curve_ends_at_the_overall_risk() -> None:
    rng = np.random.default_rng(0)
    correct = rng.random(50) < 0.6
    got = selective(rng.random(50), correct)
    assert got.coverage[-1] == 1.0
    assert got.coverage[0] == pytest.approx(1 / 50)
    assert got.risk[-1] == pytest.approx(1 - correct.mean())


@pytest.mark.parametrize(("correct", "risk"), [([True] * 3, 0.0), ([False] * 3, 1.0)])
def test_nothing_to_tell_apart_gives_nan(correct: list[bool], risk: float) -> None:
    got = selective([1.0, 2.0, 2.0], correct)
    assert math.isnan(got.auroc)
    assert got.aurc == risk
    assert got.excess_aurc == 0.0


def test_only_the_order_of_uncertainties_matters() -> None:
    rng = np.random.default_rng(2)
    uncertainty, correct = rng.integers(0, 9, size=80).astype(float), rng.random(80)
    stretched = np.where(uncertainty == 8, np.inf, np.exp(uncertainty))
    assert selective(uncertainty, correct).aurc == selective(stretched, correct).aurc
    assert selective(uncertainty, correct).auroc == selective(stretched, correct).auroc


def test_tensors_are_welcome() -> None:
    got = selective(torch.tensor([0.1, 0.9]), torch.tensor([True, False]))
    assert got.auroc == 1.0


def test_two_groups() -> None:
    rng = np.random.default_rng(7)
    high, low = rng.integers(0, 9, size=40), rng.integers(0, 7, size=60)
    naive = np.mean([(a > b) + 0.5 * (a == b) for a in high for b in low])
    assert auroc(high, low) == pytest.approx(naive, rel=1e-13)
    assert math.isnan(auroc([], low))


def test_the_error_of_an_area_is_what_it_strays_by() -> None:
    """Against many draws; where five answers are right or wrong together, and their scores are, it strays further."""
    rng = np.random.default_rng(8)
    for same in (1, 5):
        areas, errors = [], []
        for _ in range(400):
            right = np.repeat(rng.random(120 // same) < 0.6, same)
            score = np.repeat(rng.normal(size=120 // same), same) - 0.8 * right + 0.1 * rng.normal(size=120)
            areas.append(selective(score, right).auroc)
            errors.append(auroc_error(score, right, np.repeat(np.arange(120 // same), same)))
        assert np.mean(errors) == pytest.approx(np.std(areas), rel=0.2)
    assert auroc_error([0.1, 0.2, 0.3], [1, 1, 0], [0, 1, 2]) == pytest.approx(math.sqrt(4 / 24))
    assert math.isnan(auroc_error([0.1, 0.2], [1, 1], [0, 1]))


@pytest.mark.parametrize("groups", [25, 50, 100])
@pytest.mark.parametrize("wrong", [2, 5, 10])
@pytest.mark.parametrize("alike", [1.0, 0.7])
def test_a_worthless_score_seldom_seems_better_than_chance(groups: int, wrong: int, alike: float) -> None:
    """However few groups of five answers are wrong, in whole or in part, and though their scores are alike."""
    rng = np.random.default_rng(groups + wrong)
    same, passed = np.repeat(np.arange(groups), 5), 0
    for _ in range(1500):
        right = np.ones(5 * groups)
        right[: 5 * wrong] = rng.random(5 * wrong) < 0.3
        right[0] = 0.0
        score = alike * rng.normal(size=groups)[same] + math.sqrt(1 - alike**2) * rng.normal(size=5 * groups)
        passed += selective(score, right).auroc - 1.645 * auroc_error(score, right, same) > 0.5
    assert passed <= 0.07 * 1500


@pytest.mark.parametrize(
    ("uncertainty", "correct", "words"),
    [
        ([0.1, math.nan], [1, 0], "uncertainty is NaN for query 1"),
        ([0.1, 0.2], [1, math.nan], "correct is NaN for query 1"),
        ([0.1], [1, 0], "1 uncertainties for 2 answers"),
        ([], [], "non-empty"),
        ([[0.1]], [[1]], "one value a query"),
        ([0.1, 0.2], [0, 2], "chances from 0 to 1"),
        ([0.1, 0.2], [-0.1, 0], "chances from 0 to 1"),
    ],
)
def test_bad_input_is_refused_in_words(uncertainty: Any, correct: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        selective(uncertainty, correct)
