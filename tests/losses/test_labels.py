"""What labels teach, against plain loops, and what must not be a negative."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from evidex.data.labels import exclusions
from evidex.losses import label_loss

NAMES = ["residential", "dense residential", "sparse residential", "river"]
EXCLUDE = torch.from_numpy(exclusions(NAMES))


def naive(similarity: torch.Tensor, label: list[int], exclude: torch.Tensor, temperature: float) -> float:
    """Eq. 5 picture by picture and text by text."""
    alpha = [[math.exp(float(value) / temperature) + 1 for value in row] for row in similarity]
    total = 0.0
    for picture, own in enumerate(label):
        texts = [alpha[picture][text] for text in range(len(exclude)) if exclude[own, text]]
        pictures = [alpha[other][own] for other in range(len(label)) if exclude[label[other], own]]
        for negatives in (texts, pictures):
            total -= math.log(alpha[picture][own] / (alpha[picture][own] + sum(negatives)))
    return total / len(label)


@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_likelihood_of_the_own_label_among_those_it_excludes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    similarity = torch.from_numpy(rng.uniform(-1, 1, (7, 4)))
    label = rng.integers(0, 4, 7)
    found = label_loss(similarity, torch.from_numpy(label), EXCLUDE, temperature=0.2)
    assert float(found) == pytest.approx(naive(similarity, label.tolist(), EXCLUDE, 0.2))


def test_pictures_of_a_label_and_its_neighbours_do_not_push_each_other() -> None:
    similarity = torch.zeros(4, 4, dtype=torch.float64, requires_grad=True)
    label_loss(similarity, torch.tensor([0, 1, 1, 2]), EXCLUDE, temperature=0.1).backward()
    assert similarity.grad is not None
    pushed = similarity.grad > 0
    assert pushed.tolist() == [
        [False, False, False, True],  # residential: only a river is something else
        [False, False, True, True],
        [False, False, True, True],
        [False, True, False, True],
    ]


def test_a_batch_without_negatives_teaches_nothing_and_stays_finite() -> None:
    similarity = torch.full((2, 2), 0.3, requires_grad=True)
    loss = label_loss(similarity, torch.tensor([0, 1]), torch.zeros(2, 2, dtype=torch.bool), temperature=0.01)
    loss.backward()
    assert float(loss.detach()) == 0.0
    assert similarity.grad is not None
    assert not similarity.grad.any()


def test_shapes_that_do_not_fit_are_named() -> None:
    with pytest.raises(ValueError, match=r"\(3, 2\)"):
        label_loss(torch.zeros(3, 2), torch.zeros(3, dtype=torch.long), EXCLUDE, temperature=0.1)
