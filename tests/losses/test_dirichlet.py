"""The Dirichlet divergence against torch.distributions where that is exact, and high precision where it is not."""

import mpmath
import pytest
import torch
from torch.distributions import Dirichlet, kl_divergence

from evidex.losses import dirichlet_kl


@pytest.mark.parametrize("size", [2, 5, 300])
@pytest.mark.parametrize("largest", [1.0, 20.0, 1e4])
def test_equals_torch_distributions(size: int, largest: float) -> None:
    generator = torch.Generator().manual_seed(size)
    alpha = torch.rand(6, size, dtype=torch.float64, generator=generator) * largest + 0.05
    beta = torch.rand(6, size, dtype=torch.float64, generator=generator) * largest + 0.05
    expected = kl_divergence(Dirichlet(alpha), Dirichlet(beta))
    torch.testing.assert_close(dirichlet_kl(alpha, beta), expected, rtol=1e-8, atol=1e-8)


def test_a_distribution_does_not_diverge_from_itself() -> None:
    alpha = torch.tensor([[1.0, 2.0, 3e30], [1.0, 1.0, 1.0], [0.2, 24.0, 23.999]], dtype=torch.float64)
    torch.testing.assert_close(dirichlet_kl(alpha, alpha), torch.zeros(3, dtype=torch.float64), atol=1e-12, rtol=0)


@pytest.mark.parametrize(
    ("alpha", "beta"),
    [
        ([1.0, 1e20, 3.0], [1.0, 1.0, 1.0]),
        ([2e43, 5.0, 1.0, 1e43], [1.0, 1.0, 1.0, 1.0]),
        ([1e12, 2e12, 5.0], [2e12, 1e12, 7.0]),
        ([23.9, 24.1, 1.0], [24.0, 24.0, 1.5]),
    ],
)
def test_equals_high_precision_where_the_textbook_formula_cancels(alpha: list[float], beta: list[float]) -> None:
    with mpmath.workdps(120):
        a, b = [mpmath.mpf(x) for x in alpha], [mpmath.mpf(x) for x in beta]
        total = mpmath.fsum(a)
        expected = (
            mpmath.loggamma(total)
            - mpmath.loggamma(mpmath.fsum(b))
            - mpmath.fsum(mpmath.loggamma(x) for x in a)
            + mpmath.fsum(mpmath.loggamma(x) for x in b)
            + mpmath.fsum((x - y) * (mpmath.digamma(x) - mpmath.digamma(total)) for x, y in zip(a, b, strict=True))
        )
    result = dirichlet_kl(torch.tensor([alpha], dtype=torch.float64), torch.tensor([beta], dtype=torch.float64))
    assert result.item() == pytest.approx(float(expected), rel=1e-9)


def test_gradient() -> None:
    alpha = torch.tensor([[1.0, 23.99, 24.01, 1e3]], dtype=torch.float64, requires_grad=True)
    beta = torch.tensor([[2.0, 30.0, 1.0, 5.0]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(dirichlet_kl, (alpha, beta), eps=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("alpha", "beta"),
    [
        ([1.0, 1e20, 3.0], [1.0, 1.0, 1.0]),
        ([0.01, 23.999999, 24.0, 2e43], [1.0, 0.5, 1e6, 1e43]),
        ([1.0, 1.0, 1.0], [1.0, 1.0, 1.0]),
        ([5e8, 2.0], [5e8, 3.0]),
    ],
)
def test_gradient_equals_high_precision(alpha: list[float], beta: list[float]) -> None:
    a, b = (torch.tensor([values], dtype=torch.float64, requires_grad=True) for values in (alpha, beta))
    found = torch.autograd.grad(dirichlet_kl(a, b).sum(), (a, b))
    with mpmath.workdps(120):
        x, y = [mpmath.mpf(each) for each in alpha], [mpmath.mpf(each) for each in beta]
        total, other = mpmath.fsum(x), mpmath.fsum(y)
        of_alpha = [
            (p - q) * mpmath.psi(1, p) - (total - other) * mpmath.psi(1, total) for p, q in zip(x, y, strict=True)
        ]
        of_beta = [
            mpmath.psi(0, q) - mpmath.psi(0, other) - mpmath.psi(0, p) + mpmath.psi(0, total)
            for p, q in zip(x, y, strict=True)
        ]
    for each, expected in zip(found, (of_alpha, of_beta), strict=True):
        # The gradient is a difference of two numbers of about 1 or less, each exact to the last digits.
        torch.testing.assert_close(
            each[0], torch.tensor([float(v) for v in expected], dtype=torch.float64), rtol=1e-9, atol=1e-12
        )
