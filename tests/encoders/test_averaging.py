"""The mean of several runs' weights."""

from __future__ import annotations

import pytest
import torch

from evidex.config import EncoderConfig
from evidex.encoders.averaging import averaged
from evidex.encoders.towers import TowerEncoder, new_compact
from evidex.errors import ModelError


def _encoder(seed: int, dim: int = 8) -> TowerEncoder:
    torch.manual_seed(seed)
    encoder = new_compact(EncoderConfig(image_size=32, dim=dim), ["a river .", "two bridges ."] * 2)
    for module in encoder.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            assert module.running_mean is not None
            module.running_mean.normal_()
    return encoder


def test_every_weight_is_the_mean() -> None:
    members = [_encoder(seed) for seed in range(3)]
    before = [{name: value.clone() for name, value in member.state_dict().items()} for member in members]
    mean = averaged(members).state_dict()
    for name, value in mean.items():
        if value.is_floating_point():
            expected = sum(state[name].double() for state in before) / 3
            torch.testing.assert_close(value.double(), expected, rtol=1e-6, atol=1e-7)
    for member, state in zip(members, before, strict=True):  # and the members stay as they are
        assert all(torch.equal(value, state[name]) for name, value in member.state_dict().items())


def test_the_mean_of_one_is_itself() -> None:
    one = _encoder(1)
    assert all(torch.equal(value, one.state_dict()[name]) for name, value in averaged([one]).state_dict().items())


def test_models_of_different_shapes_have_no_mean() -> None:
    with pytest.raises(ModelError, match="different shapes"):
        averaged([_encoder(0), _encoder(0, dim=16)])
    with pytest.raises(ModelError, match="no models"):
        averaged([])


def test_dropout_is_no_part_of_the_shape() -> None:
    one = _encoder(1)
    other = TowerEncoder({**one.spec(), "dropout": 0.3})
    other.load_state_dict(one.state_dict())
    assert all(
        torch.equal(value, one.state_dict()[name]) for name, value in averaged([one, other]).state_dict().items()
    )
