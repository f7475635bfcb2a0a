"""Evidence against the definitions, in float64 and on nasty input."""

import math

import numpy as np
import pytest
import torch

from evidex.evidence import (
    concentration,
    evidence,
    expected_probability,
    log_concentration,
    log_mean_evidence,
    uncertainty,
)


@pytest.mark.parametrize("temperature", [0.05, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("count", [2, 7, 1024])
def test_concentration_and_uncertainty_are_the_definitions(temperature: float, count: int) -> None:
    similarity = torch.rand(5, count, generator=torch.Generator().manual_seed(count)) * 2 - 1
    alpha = np.exp(similarity.double().numpy() / temperature) + 1
    np.testing.assert_allclose(concentration(similarity, temperature).numpy(), alpha, rtol=1e-5)
    np.testing.assert_allclose(uncertainty(similarity, temperature).numpy(), count / alpha.sum(1), rtol=3e-5)
    np.testing.assert_allclose(
        expected_probability(similarity.double(), temperature).numpy(), alpha / alpha.sum(1, keepdims=True), rtol=1e-10
    )
    np.testing.assert_allclose(
        log_concentration(similarity.double(), temperature).numpy(),
        np.log1p(np.exp(similarity.double().numpy() / temperature)),
        rtol=1e-9,
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_any_finite_input_gives_finite_results(dtype: torch.dtype) -> None:
    similarity = torch.tensor([[1.0, -1.0, 0.0], [500.0, -500.0, 0.0]], dtype=dtype)
    for temperature in (0.01, 0.1, 10.0):
        assert torch.isfinite(concentration(similarity, temperature)).all()
        assert torch.isfinite(evidence(similarity, temperature)).all()
        u = uncertainty(similarity, temperature)
        assert torch.isfinite(u).all()
        assert ((u >= 0) & (u <= 1)).all()


def test_the_gradient_is_finite_where_evidence_is_cut_off() -> None:
    similarity = torch.tensor([[1.0, 0.2]], requires_grad=True)
    concentration(similarity, 0.01).sum().backward()
    assert similarity.grad is not None
    assert torch.isfinite(similarity.grad).all()


def test_no_evidence_is_total_uncertainty() -> None:
    assert uncertainty(torch.full((1, 4), -50.0), 0.1).item() == pytest.approx(1.0)


def test_mean_evidence_of_kept_entries_is_that_of_the_subset() -> None:
    similarity = torch.tensor([[0.1, 0.9, -0.3, 0.5]], dtype=torch.float64)
    keep = torch.tensor([[True, False, True, True]])
    expected = math.log(np.exp(np.array([0.1, -0.3, 0.5]) / 0.1).mean())
    assert log_mean_evidence(similarity, 0.1, keep).item() == pytest.approx(expected)


def test_uncertainty_does_not_depend_on_repeating_the_gallery() -> None:
    similarity = torch.rand(3, 11, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(uncertainty(similarity, 0.1), uncertainty(similarity.repeat(1, 5), 0.1), rtol=1e-6)
