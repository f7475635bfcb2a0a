"""Poly's parts against loops: where it rests if all pairs are alike, and its start with all negatives."""

import pytest
import torch
from torch.nn.functional import normalize

from evidex.config import LossConfig
from evidex.encoders.towers import TowerEncoder
from evidex.losses import polynomial_loss
from evidex.losses.total import Features
from evidex.methods.poly import METHOD
from evidex.methods.protocol import MethodLesson


@pytest.mark.parametrize(("epoch", "polynomial"), [(0.0, False), (1.4, False), (1.5, True)])
def test_it_can_begin_with_all_negatives(epoch: float, polynomial: bool, towers: TowerEncoder) -> None:
    torch.manual_seed(0)
    image, text = (normalize(torch.randn(5, 8), dim=1) for _ in range(2))
    similarity = (image @ text.T).tolist()
    pairs = [(i, j) for i in range(5) for j in range(5) if i != j]
    hinges = sum(max(0.2 + similarity[i][j] - similarity[i][i], 0.0) for i, j in pairs)
    hinges += sum(max(0.2 + similarity[j][i] - similarity[i][i], 0.0) for i, j in pairs)
    config = LossConfig(mask_equal_captions=False, all_negatives_epochs=1.5)
    found = METHOD.loss(Features(image, text), MethodLesson(config, epoch, torch.tensor(1.0), towers))["poly"]
    expected = float(polynomial_loss(image @ text.T)) if polynomial else hinges / 5
    assert float(found) == pytest.approx(expected, rel=1e-5)


def test_pairs_that_are_all_alike_rest_at_a_half() -> None:
    """The derivatives of its polynomials, .4 s − .7 and 1.8 s − .4, cancel at .5: why its start matters."""
    for value, sign in ((0.4, -1), (0.5, 0), (0.6, 1)):
        alike = torch.tensor(value, dtype=torch.float64, requires_grad=True)
        polynomial_loss(alike.expand(4, 4)).backward()
        assert alike.grad is not None
        assert float(alike.grad) == pytest.approx(2 * (2.2 * value - 1.1), abs=1e-9)
        assert sign == (alike.grad > 1e-9).int() - (alike.grad < -1e-9).int()
