"""The loss as a whole: its parts, its switches, its schedules."""

import dataclasses
from typing import Any

import pytest
import torch
from torch.nn.functional import normalize

from evidex.checked import parse, to_table
from evidex.config import LossConfig
from evidex.losses import Features, edl_loss, relation_loss, total_loss, ucl_loss
from evidex.losses.total import annealed, ucl_ramp

PAPER = LossConfig(temperature=0.5, detach_weight=False, kl_reduction="sum", mask_equal_captions=False)


def _features(count: int = 6) -> Features:
    generator = torch.Generator().manual_seed(0)

    def unit(dim: int) -> torch.Tensor:
        return normalize(torch.randn(count, dim, generator=generator), dim=1)

    return Features(unit(8), unit(8), unit(5), unit(7), torch.arange(count))


def _total(config: LossConfig, features: Features, epoch: float = 10.0) -> float:
    return total_loss(features, config, epoch=epoch).total.item()


def test_the_whole_is_equation_19() -> None:
    features = _features()
    similarity = features.image @ features.text.T
    assert features.image_mentor is not None
    assert features.text_mentor is not None
    expected = (
        edl_loss(similarity, temperature=0.5, kl_weight=10 / 40)
        + 1.0 * ucl_loss(similarity, temperature=0.5)
        + 1.0
        * (
            relation_loss(features.image, features.image_mentor, temperature=1.0)
            + relation_loss(features.text, features.text_mentor, temperature=1.0)
        )
    )
    assert _total(PAPER, features) == pytest.approx(expected.item(), rel=1e-6)


@pytest.mark.parametrize(("switch", "part"), [("kl", "kl"), ("ucl", "ucl"), ("relation", "relation")])
def test_each_switch_removes_its_part(switch: str, part: str) -> None:
    features = _features()
    full = total_loss(features, PAPER, epoch=10.0)
    without = total_loss(features, parse(LossConfig, {**to_table(PAPER), switch: False}, "test"), epoch=10.0)
    assert part in full.parts
    assert part not in without.parts
    assert full.total.item() - without.total.item() == pytest.approx(full.parts[part].item(), rel=1e-5)


def test_kl_grows_with_the_epoch() -> None:
    features = _features()
    parts = [total_loss(features, PAPER, epoch=epoch).parts["kl"].item() for epoch in (0.0, 20.0, 40.0)]
    assert parts[0] == 0.0
    assert parts[2] == pytest.approx(2 * parts[1])


@pytest.mark.parametrize(
    ("epoch", "share"), [(0.0, 0.0), (7.9, 0.0), (8.0, 0.0), (10.5, 0.5), (13.0, 1.0), (99.0, 1.0)]
)
def test_ucl_is_phased_in(epoch: float, share: float) -> None:
    config = LossConfig(ucl_start_epoch=8.0, ucl_ramp_epochs=5.0)
    assert ucl_ramp(config, epoch) == pytest.approx(share)


def test_ucl_from_the_first_step_is_the_literal_reading() -> None:
    assert ucl_ramp(LossConfig(), 0.0) == 1.0


def test_equal_captions_are_no_negatives_unless_asked() -> None:
    features = dataclasses.replace(_features(), caption_ids=torch.tensor([0, 1, 0, 3, 4, 5]))
    masked = dataclasses.replace(PAPER, mask_equal_captions=True)
    assert _total(masked, features) != pytest.approx(_total(PAPER, features), rel=1e-9)
    assert _total(masked, _features()) == pytest.approx(_total(PAPER, _features()), rel=1e-12)


def test_a_right_batch_costs_less_than_a_shuffled_one() -> None:
    features = _features(8)
    config = dataclasses.replace(PAPER, relation=False)
    right = dataclasses.replace(features, text=features.image)
    wrong = dataclasses.replace(features, text=features.image.roll(1, 0))
    assert _total(config, right) < _total(config, wrong)


@pytest.mark.parametrize(("name", "part"), [("b2", "ucl"), ("b3", "relation")])
def test_each_weight_scales_its_own_part_and_no_other(name: str, part: str) -> None:
    """Eq. 19: exchanged or dropped, b2 and b3 would scale the wrong part or none."""
    features = _features()
    plain = total_loss(features, PAPER, epoch=10.0)
    weighed = total_loss(features, dataclasses.replace(PAPER, **{name: 2.5}), epoch=10.0)  # type: ignore[arg-type]
    for key, value in plain.parts.items():
        factor = 2.5 if key == part else 1.0
        assert weighed.parts[key].item() == pytest.approx(factor * value.item(), rel=1e-9), key
        assert value.item() != 0
    assert weighed.total.item() == pytest.approx(sum(each.item() for each in weighed.parts.values()))


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("ucl", {"ucl_target": "belief"}),
        ("kl", {"kl_reduction": "mean"}),
        ("kl", {"b1": 10.0}),
        ("edl", {"uncertainty_weighting": False}),
        ("edl", {"temperature": 0.3}),
        ("relation", {"relation_temperature": 0.5}),
    ],
)
def test_each_setting_reaches_its_part(part: str, change: dict[str, Any]) -> None:
    features = _features()
    plain, changed = (total_loss(features, dataclasses.replace(PAPER, **each), epoch=10.0) for each in ({}, change))
    assert changed.parts[part].item() != pytest.approx(plain.parts[part].item(), rel=1e-3)


def test_ucl_aligns_what_it_is_told_to() -> None:
    features, config = _features(), dataclasses.replace(PAPER, ucl_target="belief")
    expected = ucl_loss(features.similarity(), temperature=0.5, target="belief")
    assert total_loss(features, config, epoch=10.0).parts["ucl"].item() == pytest.approx(expected.item(), rel=1e-6)


def test_a_detached_weight_changes_the_gradient_alone() -> None:
    """Eq. 5 differentiates 1 − u as well."""
    gradients, values = [], []
    for detached in (False, True):
        image = _features().image.requires_grad_()
        config = dataclasses.replace(PAPER, detach_weight=detached)
        total = total_loss(dataclasses.replace(_features(), image=image), config, epoch=10.0).total
        gradients.append(torch.autograd.grad(total, image)[0])
        values.append(total.item())
    assert values[0] == pytest.approx(values[1], rel=1e-9)
    assert not torch.allclose(gradients[0], gradients[1], rtol=1e-3)


@pytest.mark.parametrize(("epoch", "step", "number"), [(0.0, 0.0, 1), (0.5, 0.5, 1), (1.0, 1.0, 2), (39.9, 39.9, 40)])
def test_the_annealing_counts_steps_or_epochs(epoch: float, step: float, number: int) -> None:
    assert annealed(LossConfig(b1=40.0), epoch) == pytest.approx(step / 40)
    assert annealed(LossConfig(b1=40.0, annealing="epoch"), epoch) == pytest.approx(number / 40)
