from __future__ import annotations

import math
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.special import softmax
from scipy.stats import entropy

from evidex.errors import InputError
from evidex.evaluation import uncertainty_scores
from evidex.evaluation.query_uncertainty import SCORE_NAMES
from evidex.evidence import uncertainty


def exact_evidence(similarity: NDArray[Any], temperature: float) -> list[Decimal]:
    return [(Decimal(float(s)) / Decimal(temperature)).exp() for s in similarity]


def naive_dissonance(similarity: NDArray[Any], temperature: float) -> float:
    """Jøsang's definition over all pairs, in so many digits that nothing cancels."""
    with localcontext(prec=200):
        evidence = exact_evidence(similarity, temperature)
        strength = sum(evidence) + len(evidence)
        belief = [e / strength for e in evidence]
        total = Decimal(0)
        for k, b_k in enumerate(belief):
            others = [b for j, b in enumerate(belief) if j != k]
            if others:
                total += b_k * sum(b * (1 - abs(b - b_k) / (b + b_k)) for b in others) / sum(others)
        return float(total)


def naive_belief(similarity: NDArray[Any], temperature: float) -> tuple[float, float]:
    """Vacuity K/S and 1 - α_max/S."""
    with localcontext(prec=200):
        alpha = [e + 1 for e in exact_evidence(similarity, temperature)]
        return float(len(alpha) / sum(alpha)), float(1 - max(alpha) / sum(alpha))


@pytest.mark.parametrize("temperature", [0.01, 0.05, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("gallery", [1, 2, 3, 25])
def test_evidential_scores_equal_their_definitions(temperature: float, gallery: int) -> None:
    rng = np.random.default_rng(gallery)
    similarity = rng.uniform(-1, 1, size=(5, gallery))
    similarity[1] = 0.25
    similarity[2, gallery // 2 :] = similarity[2].max()
    got = uncertainty_scores(similarity, temperature)
    for i, row in enumerate(similarity):
        vacuity, doubt = naive_belief(row, temperature)
        assert got.vacuity[i] == pytest.approx(vacuity, rel=1e-12)
        assert got.belief[i] == pytest.approx(doubt, rel=1e-12, abs=1e-300)
        assert got.dissonance[i] == pytest.approx(naive_dissonance(row, temperature), rel=1e-11, abs=1e-300)


@pytest.mark.parametrize("temperature", [0.01, 0.1, 1.0])
def test_vacuity_is_the_uncertainty_of_the_model(temperature: float) -> None:
    similarity = torch.rand(6, 50, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 2 - 1
    expected = uncertainty(similarity, temperature).numpy()
    np.testing.assert_allclose(uncertainty_scores(similarity, temperature).vacuity, expected, rtol=1e-12)


def test_similarity_scores_equal_scipy_and_sorting() -> None:
    similarity = np.random.default_rng(0).uniform(-1, 1, size=(8, 40))
    got = uncertainty_scores(similarity, 0.07)
    ordered = np.sort(similarity, axis=1)
    np.testing.assert_allclose(got.max_similarity, -ordered[:, -1])
    np.testing.assert_allclose(got.margin, ordered[:, -2] - ordered[:, -1])
    np.testing.assert_allclose(got.entropy, entropy(softmax(similarity / 0.07, axis=1), axis=1), rtol=1e-12)


@pytest.mark.parametrize("temperature", [1e-4, 0.01, 1.0, 1e4])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 100.0])
def test_finite_for_any_finite_input(temperature: float, scale: float) -> None:
    rng = np.random.default_rng(0)
    rows = [rng.uniform(-1, 1, 30), np.full(30, 1.0), np.full(30, -1.0), np.eye(30)[0], -np.eye(30)[0]]
    got = uncertainty_scores(scale * np.stack(rows), temperature)
    for name in SCORE_NAMES:
        assert np.isfinite(got[name]).all(), name
    for name in ("vacuity", "belief", "dissonance"):
        assert (got[name] >= 0).all(), name
        assert (got[name] <= 1 + 1e-12).all(), name


def test_scores_know_their_extremes() -> None:
    certain, torn, empty = np.eye(20)[0], np.eye(20)[0] + np.eye(20)[1], np.full(20, -1.0)
    got = uncertainty_scores(np.stack([certain, torn, empty]), 0.05)
    assert got.dissonance[1] > 0.9
    assert got.dissonance[0] < 0.01
    assert got.vacuity[2] == pytest.approx(1.0)
    assert got.belief[0] < 1e-6
    assert got.belief[1] == pytest.approx(0.5, abs=1e-6)
    assert got.margin[1] == 0.0
    assert got.entropy[1] == pytest.approx(math.log(2), abs=1e-6)


def test_the_margin_skips_copies_of_one_sentence() -> None:
    similarity = np.array([[0.9, 0.9, 0.4], [0.2, 0.2, 0.7]])
    assert uncertainty_scores(similarity, 0.1).margin[0] == 0.0
    np.testing.assert_allclose(uncertainty_scores(similarity, 0.1, identity=np.array([4, 4, 1])).margin, [-0.5, -0.5])


def test_blocks_and_tensors_do_not_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    similarity = np.random.default_rng(3).uniform(-1, 1, size=(17, 33)).astype(np.float32)
    whole = uncertainty_scores(similarity, 0.1)
    monkeypatch.setattr("evidex.evaluation.query_uncertainty._BLOCK_ELEMENTS", 100)
    parts = uncertainty_scores(torch.from_numpy(similarity), 0.1)
    for name in SCORE_NAMES:
        np.testing.assert_allclose(parts[name], whole[name], rtol=1e-13)


def test_the_order_of_the_gallery_does_not_matter() -> None:
    rng = np.random.default_rng(4)
    similarity = rng.choice(rng.uniform(-1, 1, size=9), size=(6, 50))
    first, second = (uncertainty_scores(s, 0.1) for s in (similarity, similarity[:, rng.permutation(50)]))
    for name in SCORE_NAMES:
        np.testing.assert_allclose(first[name], second[name], rtol=1e-12)


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.nan, math.inf])
def test_bad_temperatures_are_refused(temperature: float) -> None:
    with pytest.raises(InputError, match="temperature"):
        uncertainty_scores(np.zeros((2, 2)), temperature)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_similarities_that_are_not_finite_are_refused(value: float) -> None:
    with pytest.raises(InputError, match="similarity"):
        uncertainty_scores(np.array([[0.1, value]]), 0.1)
