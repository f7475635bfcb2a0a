"""Whitened heads: the map against scipy's matrix power, and what must not change."""

import numpy as np
import pytest
import torch
from scipy.linalg import fractional_matrix_power

from evidex.config import EncoderConfig
from evidex.encoders.towers import TowerEncoder, new_compact
from evidex.encoders.whitening import flattening, whitened

DIM = 8
WORDS = ("river", "harbour", "forest", "houses", "planes", "desert", "bridge", "stadium", "field", "road")
TEXTS = [f"{a} near the {b}" for a in WORDS for b in WORDS]


@pytest.fixture
def encoder() -> TowerEncoder:
    torch.manual_seed(0)
    made = new_compact(EncoderConfig(image_size=32, dim=DIM), TEXTS).eval()
    with torch.no_grad():
        made.image_head.bias.add_(0.5)  # a direction that all pictures share
    return made


@pytest.fixture
def pixels() -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    coarse = torch.rand(60, 3, 4, 4, generator=generator)
    return (torch.nn.functional.interpolate(coarse, 32) * 255).to(torch.uint8)


def _oracle(images: np.ndarray, texts: np.ndarray, power: float) -> np.ndarray:
    """The map by another road: the covariance as a loop over rows, its power by Schur decomposition."""
    both = []
    for rows in (images, texts):
        centred = rows - rows.mean(axis=0)
        total = np.zeros((rows.shape[1], rows.shape[1]))
        for row in centred:
            unit = row / np.sqrt((row**2).sum())
            total += np.outer(unit, unit)
        both.append(total / len(rows))
    spread = (both[0] + both[1]) / 2
    return np.asarray(fractional_matrix_power(spread / np.linalg.norm(spread, 2), -power).real)


@pytest.mark.parametrize("power", [0.0, 0.1, 0.37, 0.5, 1.0])
def test_the_map_is_the_negative_power_of_the_common_covariance(power: float) -> None:
    rng = np.random.default_rng(0)
    images = rng.standard_normal((200, DIM)) * np.geomspace(1, 0.1, DIM) + 3.0
    texts = 40.0 * rng.standard_normal((90, DIM)) @ rng.standard_normal((DIM, DIM))
    found = flattening(torch.from_numpy(images), torch.from_numpy(texts), power).numpy()
    np.testing.assert_allclose(found, _oracle(images, texts, power), rtol=1e-8, atol=1e-10)


@torch.no_grad()
@pytest.mark.parametrize("power", [0.0, 0.1, 0.5])
def test_heads_do_what_the_map_says_and_the_rest_stays(
    encoder: TowerEncoder, pixels: torch.Tensor, power: float
) -> None:
    tokens = encoder.tokenize(TEXTS)
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    images, texts = encoder.image_projection(pixels).double(), encoder.text_projection(tokens).double()
    result = whitened(encoder, pixels, tokens, power)
    mapping = torch.from_numpy(_oracle(images.numpy(), texts.numpy(), power))
    for found, plain in ((result.image_projection(pixels), images), (result.text_projection(tokens), texts)):
        expected = (plain - plain.mean(0)) @ mapping
        torch.testing.assert_close(found.double(), expected, rtol=1e-3, atol=1e-4 * float(expected.abs().max()))
    after = encoder.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before), "the encoder itself must not change"
    changed = {name for name, value in result.state_dict().items() if not torch.equal(value, before[name])}
    assert changed == {"image_head.weight", "image_head.bias", "text_head.weight", "text_head.bias"} - (
        {"image_head.weight", "text_head.weight"} if power == 0 else set()
    )
    assert result.spec() == encoder.spec()


@torch.no_grad()
def test_full_whitening_leaves_no_direction_before_another(encoder: TowerEncoder, pixels: torch.Tensor) -> None:
    tokens = encoder.tokenize(TEXTS)
    images, texts = encoder.image_projection(pixels).double(), encoder.text_projection(tokens).double()
    mapping = flattening(images, texts, 0.5)
    units = [torch.nn.functional.normalize(rows - rows.mean(0), dim=-1) @ mapping for rows in (images, texts)]
    spread = torch.stack([rows.T @ rows / len(rows) for rows in units]).mean(0)
    torch.testing.assert_close(spread, torch.eye(DIM).double() * spread[0, 0], rtol=1e-6, atol=1e-9)


@torch.no_grad()
@pytest.mark.parametrize("count", [1, 3])
def test_fewer_pictures_than_dimensions_stay_finite(encoder: TowerEncoder, pixels: torch.Tensor, count: int) -> None:
    result = whitened(encoder, pixels[:count], encoder.tokenize(TEXTS[:count]), 0.5)
    assert torch.isfinite(result.image_features(pixels)).all()


@torch.no_grad()
def test_a_collapsed_encoder_stays_collapsed(encoder: TowerEncoder, pixels: torch.Tensor) -> None:
    """Whatever is asked, every picture is as near as any other: chance, not rounding dressed up as evidence."""
    for head in (encoder.image_head, encoder.text_head):
        head.weight.zero_()
    result = whitened(encoder, pixels, encoder.tokenize(TEXTS), 0.1)
    similarity = result.image_features(pixels) @ result.text_features(encoder.tokenize(TEXTS)).T
    assert similarity.isfinite().all()
    assert (similarity == similarity[0, 0]).all()
