"""The towers made for inference: folding in float64, the same features, the plain towers untouched."""

import copy
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

import evidex
from evidex.config import EncoderConfig
from evidex.encoders.image_towers import ConvNet, build_image_tower
from evidex.encoders.inference import InferenceTowers, folded
from evidex.encoders.model import Model, load_model
from evidex.encoders.towers import TowerEncoder, new_compact

TEXTS = ["many planes are parked in an airport .", "a river .", "", "river " * 90]


@pytest.fixture(scope="module")
def shipped() -> TowerEncoder:
    encoder = load_model(device="cpu").encoder
    assert isinstance(encoder, TowerEncoder)
    return encoder


@pytest.fixture(scope="module")
def compact() -> TowerEncoder:
    torch.manual_seed(0)
    return new_compact(EncoderConfig(image_size=32, dim=16), TEXTS)


def _nasty_pictures(size: int) -> torch.Tensor:
    """Return noise, black, white, grey, one colour, stripes, a gradient, a single bright pixel and a checkerboard."""
    rng = np.random.default_rng(3)
    pictures = np.zeros((10, 3, size, size), dtype=np.uint8)
    pictures[0:2] = rng.integers(0, 256, (2, 3, size, size))
    pictures[3] = 255
    pictures[4] = 127
    pictures[5, 1] = 255
    pictures[6, :, ::2] = 255
    pictures[7] = np.linspace(0, 255, size).astype(np.uint8)
    pictures[8, :, size // 2, size // 2] = 255
    pictures[9] = 255 * (np.add.outer(np.arange(size), np.arange(size)) // 16 % 2)
    return torch.from_numpy(pictures)


def _with_random_statistics(tower: nn.Module, generator: torch.Generator) -> None:
    """Give every batch norm statistics of its own, some variances tiny or zero, some scales negative or zero."""
    for norm in tower.modules():
        if isinstance(norm, nn.BatchNorm2d):
            count = norm.num_features
            assert norm.running_mean is not None
            assert norm.running_var is not None
            norm.running_mean.copy_(torch.randn(count, generator=generator))
            norm.running_var.copy_(10.0 ** torch.randint(-9, 2, (count,), generator=generator))
            norm.running_var[::7] = 0
            norm.weight.data.copy_(norm.running_var.sqrt() * torch.randn(count, generator=generator))
            norm.weight.data[::5] = 0
            norm.bias.data.copy_(torch.randn(count, generator=generator))


@pytest.mark.parametrize("name", ["convnet", "resnet50", "efficientnet_lite0"])
def test_folding_changes_nothing(name: str) -> None:
    generator = torch.Generator().manual_seed(1)
    tower = build_image_tower(name).double().eval()
    _with_random_statistics(tower, generator)
    pixels = torch.randn(2, 3, 37, 64, generator=generator, dtype=torch.float64)
    with torch.no_grad():
        expected, found = tower(pixels), folded(tower)(pixels)
    assert not any(isinstance(module, nn.BatchNorm2d) for module in folded(tower).modules())
    assert expected.std() > 0
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10 * expected.abs().max().item())


def test_a_biased_convolution_and_a_plain_norm_fold_too() -> None:
    tower = ConvNet()
    norm = nn.BatchNorm2d(24, affine=False)
    assert norm.running_mean is not None
    assert norm.running_var is not None
    norm.running_mean.uniform_(-3, 3)
    norm.running_var.uniform_(1e-8, 3)
    tower.stem = nn.Sequential(nn.Conv2d(3, 24, 3, 2, 1, bias=True), norm, nn.ReLU())
    tower = tower.double().eval()
    pixels = torch.randn(1, 3, 32, 32, dtype=torch.float64)
    with torch.no_grad():
        torch.testing.assert_close(folded(tower)(pixels), tower(pixels), rtol=1e-10, atol=1e-10)


def test_a_batch_norm_without_its_convolution_is_refused() -> None:
    tower = ConvNet()
    tower.stem = nn.Sequential(nn.BatchNorm2d(3), nn.Conv2d(3, 24, 3, 2, 1))
    with pytest.raises(TypeError, match="does not follow its convolution"):
        folded(tower)
    tower.stem = nn.Sequential(nn.Conv2d(3, 24, 3), nn.BatchNorm2d(24, track_running_stats=False))
    with pytest.raises(TypeError, match="without running statistics"):
        folded(tower)


def test_the_features_are_those_of_the_plain_towers(shipped: TowerEncoder) -> None:
    pixels = _nasty_pictures(shipped.image_size)
    towers = InferenceTowers(shipped)
    tokens = shipped.tokenize(TEXTS)
    with torch.inference_mode():
        torch.testing.assert_close(towers.image_features(pixels), shipped.image_features(pixels), atol=2e-5, rtol=0)
        assert torch.equal(towers.text_features(tokens), shipped.text_features(tokens))


def test_the_batch_a_picture_comes_in_does_not_matter(shipped: TowerEncoder) -> None:
    pixels = _nasty_pictures(shipped.image_size)
    towers = InferenceTowers(shipped)
    with torch.inference_mode():
        together = towers.image_features(pixels)
        assert torch.equal(together, towers.image_features(pixels))
        alone = torch.cat([towers.image_features(picture[None]) for picture in pixels])
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=0)


def test_the_plain_towers_stay_as_they_are_and_can_be_trained(compact: TowerEncoder) -> None:
    encoder = copy.deepcopy(compact).train()
    before = copy.deepcopy(encoder.state_dict())
    towers = InferenceTowers(encoder)
    with torch.inference_mode():
        towers.image_features(torch.zeros(1, 3, 32, 32, dtype=torch.uint8))
        towers.text_features(encoder.tokenize(TEXTS))
    assert all(torch.equal(value, before[name]) for name, value in encoder.state_dict().items())
    assert all(value.dtype == before[name].dtype for name, value in encoder.state_dict().items())
    assert encoder.training
    assert encoder.text_tower.training
    loss = encoder.image_features(torch.randint(0, 256, (4, 3, 32, 32), dtype=torch.uint8)).sum()
    loss = loss + encoder.text_features(encoder.tokenize(TEXTS)).sum()
    loss.backward()
    assert all(parameter.grad is not None for parameter in encoder.parameters())


def test_a_loaded_model_encodes_like_the_plain_one_and_saves_the_same_bytes(tmp_path: Path) -> None:
    image = Image.effect_noise((300, 200), 60).convert("RGB")
    loaded = evidex.load_model(device="cpu")
    plain = Model(loaded.encoder, loaded.temperature, card=loaded.card, domain=loaded.domain)
    assert loaded.fingerprint == plain.fingerprint
    np.testing.assert_allclose(loaded.encode_images([image]), plain.encode_images([image]), atol=1e-5)
    np.testing.assert_array_equal(loaded.encode_texts(TEXTS), plain.encode_texts(TEXTS))
    loaded.save(tmp_path / "loaded.safetensors")
    plain.save(tmp_path / "plain.safetensors")
    assert (tmp_path / "loaded.safetensors").read_bytes() == (tmp_path / "plain.safetensors").read_bytes()
