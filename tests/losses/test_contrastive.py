"""The compared losses against loops over their definitions."""

import math

import pytest
import torch

from evidex.losses import hardest_triplet_loss, info_nce_loss, polynomial_loss, triplet_loss


def _square(count: int) -> torch.Tensor:
    return torch.rand(count, count, dtype=torch.float64, generator=torch.Generator().manual_seed(count)) * 2 - 1


def test_info_nce_is_symmetric_cross_entropy() -> None:
    similarity = _square(6)
    total = 0.0
    for matrix in (similarity, similarity.T):
        for i, row in enumerate(matrix.tolist()):
            total -= math.log(math.exp(14 * row[i]) / sum(math.exp(14 * s) for s in row))
    assert info_nce_loss(similarity, scale=14.0).item() == pytest.approx(total / 12)


def test_info_nce_leaves_ignored_pairs_out() -> None:
    similarity = _square(4)
    ignore = torch.zeros(4, 4, dtype=torch.bool)
    ignore[0, 1] = ignore[1, 0] = True
    changed = similarity.clone()
    changed[0, 1] = changed[1, 0] = 0.99
    first = info_nce_loss(similarity, scale=10.0, ignore=ignore)
    assert torch.equal(first, info_nce_loss(changed, scale=10.0, ignore=ignore))
    assert not torch.equal(first, info_nce_loss(similarity, scale=10.0))


def test_hardest_triplet_is_vsepp() -> None:
    similarity = _square(7)
    total = 0.0
    for matrix in (similarity.tolist(), similarity.T.tolist()):
        for i, row in enumerate(matrix):
            total += max(max(0.2 + row[j] - row[i], 0.0) for j in range(7) if j != i)
    assert hardest_triplet_loss(similarity).item() == pytest.approx(total / 7)


@pytest.mark.parametrize("hardest", [False, True])
def test_a_triplet_loss_takes_all_negatives_or_the_hardest_alone(hardest: bool) -> None:
    similarity = _square(6)
    ignore = torch.zeros(6, 6, dtype=torch.bool)
    ignore[2, 4] = ignore[4, 2] = True
    total = 0.0
    for matrix in (similarity.tolist(), similarity.T.tolist()):
        for i, row in enumerate(matrix):
            hinges = [max(0.3 + row[j] - row[i], 0.0) for j in range(6) if j != i and not ignore[i, j]]
            total += max(hinges) if hardest else sum(hinges)
    found = triplet_loss(similarity, hardest=hardest, margin=0.3, ignore=ignore)
    assert found.item() == pytest.approx(total / 6)


def test_polynomial_is_the_published_form_on_informative_pairs() -> None:
    similarity = torch.tensor([[0.9, 0.1, 0.8], [0.2, 0.3, 0.4], [0.0, 0.1, 0.95]], dtype=torch.float64)
    total = 0.0
    for matrix in (similarity.tolist(), similarity.T.tolist()):
        for i, row in enumerate(matrix):
            hardest = max(row[j] for j in range(3) if j != i)
            if hardest > row[i] - 0.2:
                # polyloss.py of the authors' repository PolyLoss: each part held at 0, the sum over both directions / K
                total += max(0.2 * row[i] ** 2 - 0.7 * row[i] + 0.5, 0.0)
                total += max(0.9 * hardest**2 - 0.4 * hardest + 0.03, 0.0)
    assert polynomial_loss(similarity).item() == pytest.approx(total / 3)


@pytest.mark.parametrize("loss", [hardest_triplet_loss, polynomial_loss])
def test_a_perfect_batch_costs_nothing(loss) -> None:  # type: ignore[no-untyped-def]
    assert loss(2 * torch.eye(5) - 1).item() == 0.0
