"""Relation learning against a loop over Eqs. 15–17."""

import pytest
import torch
from torch.distributions import Dirichlet, kl_divergence
from torch.nn.functional import normalize

from evidex.losses import relation_loss


def _unit(count: int, dim: int, seed: int) -> torch.Tensor:
    return normalize(torch.randn(count, dim, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)), dim=1)


@pytest.mark.parametrize("temperature", [0.3, 1.0, 10.0])
def test_is_equation_17(temperature: float) -> None:
    student, mentor = _unit(7, 4, 0), _unit(7, 9, 1)
    rows = [
        kl_divergence(
            Dirichlet(torch.stack([(student[i] @ student[j] / temperature).exp() + 1 for j in range(7)])),
            Dirichlet(torch.stack([(mentor[i] @ mentor[j] / temperature).exp() + 1 for j in range(7)])),
        )
        for i in range(7)
    ]
    expected = torch.stack(rows).mean().item()
    assert relation_loss(student, mentor, temperature=temperature).item() == pytest.approx(expected, rel=1e-6)
    single = relation_loss(student.float(), mentor.float(), temperature=temperature).item()
    assert single == pytest.approx(expected, rel=1e-4)


def test_a_rotated_mentor_teaches_nothing() -> None:
    mentor = _unit(6, 5, 0)
    rotation, _ = torch.linalg.qr(torch.randn(5, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(2)))
    assert relation_loss(mentor @ rotation, mentor, temperature=0.5).item() == pytest.approx(0.0, abs=1e-9)


def test_gradient_reaches_the_student_alone() -> None:
    student, mentor = _unit(4, 3, 0).requires_grad_(), _unit(4, 3, 1).requires_grad_()
    assert torch.autograd.gradcheck(lambda s: relation_loss(s, mentor.detach(), temperature=1.0), student)
    relation_loss(student, mentor, temperature=1.0).backward()
    assert mentor.grad is None


def test_row_counts_must_agree() -> None:
    with pytest.raises(ValueError, match=r"as many rows"):
        relation_loss(_unit(3, 2, 0), _unit(4, 2, 0), temperature=1.0)
