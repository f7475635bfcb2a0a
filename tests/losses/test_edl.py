"""EDL and UCL against a loop over Eqs. 5–14 in float64."""

import math

import pytest
import torch
from torch.distributions import Dirichlet, kl_divergence

from evidex.losses import edl_loss, edl_parts, ucl_loss


def _square(count: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.rand(count, count, dtype=dtype, generator=torch.Generator().manual_seed(seed)) * 2 - 1


def _edl_of_rows(similarity: torch.Tensor, temperature: float, kl_weight: float, weighted: bool) -> float:
    count, total = len(similarity), 0.0
    for i, row in enumerate(similarity.double()):
        alpha = [math.exp(s / temperature) + 1 for s in row.tolist()]
        strength = sum(alpha)
        weight = 1 - count / strength if weighted else 1.0
        nll = weight * (math.log(strength) - math.log(alpha[i]))
        misleading = torch.tensor([1.0 if j == i else a for j, a in enumerate(alpha)], dtype=torch.float64)
        kl = kl_divergence(Dirichlet(misleading), Dirichlet(torch.ones(count, dtype=torch.float64))).item()
        total += nll + kl_weight * kl
    return total / count


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("temperature", [0.1, 0.5, 1.0, 10.0])
@pytest.mark.parametrize("count", [2, 9, 64])
def test_edl_is_equations_5_to_10(count: int, temperature: float, weighted: bool) -> None:
    similarity = _square(count)
    expected = _edl_of_rows(similarity, temperature, 0.3, weighted) + _edl_of_rows(
        similarity.T, temperature, 0.3, weighted
    )
    result = edl_loss(similarity, temperature=temperature, kl_weight=0.3, weighted=weighted)
    assert result.item() == pytest.approx(expected, rel=1e-6)
    single = edl_loss(similarity.float(), temperature=temperature, kl_weight=0.3, weighted=weighted)
    assert single.item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("temperature", [0.1, 1.0, 10.0])
def test_ucl_is_equations_12_to_14(temperature: float) -> None:
    similarity = _square(12)
    similarity[:6, :6] += 1.2 * torch.eye(6, dtype=torch.float64)
    expected = 0.0
    for matrix in (similarity, similarity.T):
        for i, row in enumerate(matrix.tolist()):
            u = len(row) / sum(math.exp(s / temperature) + 1 for s in row)
            correct = max(range(len(row)), key=row.__getitem__) == i
            expected -= (math.log(1 - u) if correct else math.log(u)) / len(row)
    assert ucl_loss(similarity, temperature=temperature).item() == pytest.approx(expected, rel=1e-6)


def test_ucl_aligns_belief_when_asked() -> None:
    similarity = torch.tensor([[0.9, 0.1, 0.0], [0.8, 0.2, 0.1], [0.0, 0.1, 0.5]], dtype=torch.float64)
    expected = 0.0
    for matrix in (similarity, similarity.T):
        for i, row in enumerate(matrix.tolist()):
            alpha = [math.exp(s / 0.2) + 1 for s in row]
            belief = max(alpha) / sum(alpha)
            correct = alpha.index(max(alpha)) == i
            expected -= (math.log(belief) if correct else math.log(1 - belief)) / 3
    assert ucl_loss(similarity, temperature=0.2, target="belief").item() == pytest.approx(expected, rel=1e-9)


def test_a_collapsed_batch_is_wrong_everywhere() -> None:
    collapsed = torch.full((4, 4), 0.5, dtype=torch.float64, requires_grad=True)
    loss = ucl_loss(collapsed, temperature=0.1)
    (gradient,) = torch.autograd.grad(loss, collapsed)
    assert (gradient > 0).all()  # less evidence lowers the loss: uncertainty is asked for


@pytest.mark.parametrize("temperature", [0.05, 0.1, 1.0, 10.0])
def test_gradients(temperature: float) -> None:
    similarity = _square(5, seed=3).requires_grad_()
    for function in (
        lambda s: edl_loss(s, temperature=temperature, kl_weight=0.5),
        lambda s: edl_loss(s, temperature=temperature, kl_weight=0.5, weighted=False, kl_reduction="mean"),
        lambda s: ucl_loss(s, temperature=temperature),
        lambda s: ucl_loss(s, temperature=temperature, target="belief"),
    ):
        assert torch.autograd.gradcheck(function, similarity, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("temperature", [0.01, 0.1, 10.0])
@pytest.mark.parametrize("count", [2, 33, 512])
@pytest.mark.parametrize("pattern", ["random", "perfect", "inverted", "constant", "extreme"])
def test_everything_stays_finite(pattern: str, count: int, temperature: float) -> None:
    eye = torch.eye(count)
    similarity = {
        "random": _square(count, dtype=torch.float32),
        "perfect": 2 * eye - 1,
        "inverted": 1 - 2 * eye,
        "constant": torch.zeros(count, count),
        "extreme": torch.ones(count, count),
    }[pattern].requires_grad_()
    loss = edl_loss(similarity, temperature=temperature, kl_weight=1.0) + ucl_loss(similarity, temperature=temperature)
    (gradient,) = torch.autograd.grad(loss, similarity)
    assert torch.isfinite(loss)
    assert torch.isfinite(gradient).all()


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [0.01, 10.0])
def test_a_batch_of_4096_stays_finite(temperature: float) -> None:
    similarity = _square(4096, dtype=torch.float32)
    assert torch.isfinite(edl_loss(similarity, temperature=temperature, kl_weight=1.0))
    assert torch.isfinite(ucl_loss(similarity, temperature=temperature))


def test_a_detached_weight_has_the_value_but_not_the_gradient() -> None:
    similarity = _square(6).requires_grad_()
    literal = edl_loss(similarity, temperature=0.1, kl_weight=0.0)
    detached = edl_loss(similarity, temperature=0.1, kl_weight=0.0, detach_weight=True)
    assert literal.item() == detached.item()
    (with_weight,) = torch.autograd.grad(literal, similarity)
    (without,) = torch.autograd.grad(detached, similarity)
    assert (with_weight - without).abs().max() > 1e-4
    assert without.diagonal().max() < 0  # only the likelihood pulls: each positive is raised


def test_mean_reduction_divides_the_kl_by_the_batch_size() -> None:
    similarity = _square(8)
    summed = edl_parts(similarity, temperature=0.5)
    mean = edl_parts(similarity, temperature=0.5, kl_reduction="mean")
    assert mean.kl.item() == pytest.approx(summed.kl.item() / 8)
    assert mean.likelihood.item() == summed.likelihood.item()


def test_ignored_pairs_bring_neither_evidence_nor_penalty() -> None:
    similarity = _square(5).requires_grad_()
    ignore = torch.zeros(5, 5, dtype=torch.bool)
    ignore[0, 3] = ignore[3, 0] = True
    loss = edl_loss(similarity, temperature=0.1, kl_weight=0.1, ignore=ignore)
    loss = loss + ucl_loss(similarity, temperature=0.1, ignore=ignore)
    (gradient,) = torch.autograd.grad(loss, similarity)
    assert (gradient[ignore] == 0).all()
    assert (gradient[~ignore] != 0).all()


def test_a_batch_of_one_sentence_has_no_negatives_and_no_nan() -> None:
    similarity = _square(3).requires_grad_()
    ignore = ~torch.eye(3, dtype=torch.bool)
    loss = edl_loss(similarity, temperature=0.1, kl_weight=0.1, ignore=ignore)
    (gradient,) = torch.autograd.grad(loss, similarity)
    assert loss.item() == pytest.approx(0.0, abs=1e-12)
    assert torch.isfinite(gradient).all()


def test_a_matrix_that_is_not_square_is_refused() -> None:
    with pytest.raises(ValueError, match=r"square"):
        edl_loss(torch.zeros(3, 4), temperature=0.1, kl_weight=0.0)
