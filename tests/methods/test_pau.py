"""PAU's losses and its uncertainty against loops over single numbers."""

import math

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from evidex.config import LossConfig
from evidex.encoders.model import Model
from evidex.encoders.towers import TowerEncoder
from evidex.evaluation.features import Encoded
from evidex.evaluation.judge import Judge, judge_of
from evidex.evaluation.protocol import evaluate_encoded
from evidex.evaluation.selective import selective
from evidex.losses.total import Features
from evidex.methods.pau import METHOD, PauEncoder, ambiguity, diversity_loss, uncertainty_loss
from evidex.methods.protocol import MethodLesson


def test_the_uncertainty_is_one_less_the_mass_without_evidence() -> None:
    # Two prototypes, evidence e⁰ = 1 and e¹: α = 2 and e + 1, so u = 1 − 2/(3 + e).
    assert ambiguity(torch.tensor([[0.0, 5.0]])).item() == pytest.approx(1 - 2 / (3 + math.e))


def _naive_uncertainty(logits: torch.Tensor, prototypes: torch.Tensor) -> float:
    count, width = len(logits), prototypes.shape[1]
    found, target = [], []
    for i in range(count):
        strength = sum(math.exp(float(prototypes[i, k]) / 5) + 1 for k in range(width))
        found.append(1 - width / strength)
        target.append(sum(float(logits[i, j]) for j in range(count) if j != i) / count)
    ratio = (sum(found) / count) / (sum(target) / count)
    return sum((f - ratio * t) ** 2 for f, t in zip(found, target, strict=True)) / count


def test_losses_are_those_of_a_naive_loop() -> None:
    torch.manual_seed(0)
    logits, prototypes = torch.randn(6, 6, dtype=torch.float64) + 5, 3 * torch.randn(6, 4, dtype=torch.float64)
    assert uncertainty_loss(logits, prototypes).item() == pytest.approx(_naive_uncertainty(logits, prototypes))
    square = torch.randn(4, 4, dtype=torch.float64)
    expected = sum(float(square[i, j]) ** 2 for i in range(4) for j in range(4) if i != j) / 16
    assert diversity_loss(square).item() == pytest.approx(expected)


def test_the_whole_loss_weighs_its_parts_and_reaches_the_prototypes(towers: TowerEncoder) -> None:
    torch.manual_seed(0)
    encoder = PauEncoder(towers)
    image, text = (normalize(torch.randn(6, 8), dim=1).requires_grad_() for _ in range(2))
    parts = METHOD.loss(Features(image, text), MethodLesson(LossConfig(), 0.0, torch.tensor(1.0), encoder))
    with torch.no_grad():
        scale = encoder.logit_scale()
        logits = scale * image @ text.T
        unsure = _naive_uncertainty(logits, scale * image @ encoder.prototypes("text").T)
        unsure += _naive_uncertainty(logits.T, scale * text @ encoder.prototypes("image").T)
    assert parts["uncertainty"].item() == pytest.approx(100 * unsure / 2, rel=1e-4)
    torch.stack(list(parts.values())).sum().backward()
    assert all(parameter.grad is not None for parameter in encoder.loss_parameters())
    assert len(encoder.loss_parameters()) == 3


def test_each_modality_is_judged_by_the_prototypes_of_the_other(towers: TowerEncoder) -> None:
    encoder = PauEncoder(towers)
    row = encoder.prototypes("text")[:1].detach()
    assert encoder.own_uncertainty(row, "image") > encoder.own_uncertainty(row, "text")


def test_its_own_uncertainty_stands_beside_the_other_scores(towers: TowerEncoder) -> None:
    model = Model(PauEncoder(towers), 0.1)
    rng = np.random.default_rng(0)
    drawn = (torch.from_numpy(rng.normal(size=(count, 8))) for count in (6, 12, 3))
    images, texts, other = (normalize(rows, dim=1).float().numpy() for rows in drawn)
    texts[:6:2] = images[:3]  # so that some answers are right
    encoded = Encoded(images, texts, np.repeat(np.arange(6), 2), compare=model.similarity)
    found = evaluate_encoded(encoded, judge_of(model), out_of_domain=(other, other))
    for side, rows in (("i2t", images), ("t2i", texts)):
        direction = getattr(found, side)
        own = model.own_uncertainty(rows, "image" if side == "i2t" else "text")
        assert own is not None
        assert direction.quality["own"].error_auroc[1] == selective(own, direction.hits[1]).auroc
        assert direction.quality["own"].out_of_domain_auroc is not None
    assert "own" not in evaluate_encoded(encoded, Judge(0.1)).i2t.quality
