"""Captions against their twins, against a plain loop."""

from __future__ import annotations

import math

import pytest
import torch

from evidex.losses import twin_loss


def test_each_caption_stands_against_its_own_twin_alone() -> None:
    generator = torch.Generator().manual_seed(0)
    true, twin = (torch.rand(9, generator=generator) * 2 - 1 for _ in range(2))
    total = 0.0
    for right, wrong in zip(true.tolist(), twin.tolist(), strict=True):
        alpha, other = (math.exp(value / 0.1) + 1 for value in (right, wrong))
        total -= math.log(alpha / (alpha + other))
    assert float(twin_loss(true, twin, temperature=0.1)) == pytest.approx(total / 9)


def test_no_twins_teach_nothing() -> None:
    none = torch.zeros(0, requires_grad=True)
    loss = twin_loss(none, none, temperature=0.1)
    loss.backward()
    assert float(loss.detach()) == 0.0
    with pytest.raises(ValueError, match=r"\(3,\) and \(2,\)"):
        twin_loss(torch.zeros(3), torch.zeros(2), temperature=0.1)
