"""SIRS compares at four scales: its rows and its loss against loops over the definition."""

import pytest
import torch
from torch.nn.functional import cosine_similarity, normalize

from evidex.config import LossConfig
from evidex.encoders.towers import TowerEncoder
from evidex.losses.total import Features
from evidex.methods.protocol import MethodLesson
from evidex.methods.sirs import METHOD, SirsEncoder
from tests.methods.conftest import TEXTS


@torch.no_grad()
def test_rows_give_the_mean_cosine_of_four_scales(towers: TowerEncoder, pixels: torch.Tensor) -> None:
    encoder = METHOD.wrap(towers, []).eval()
    assert isinstance(encoder, SirsEncoder)
    tokens = encoder.tokenize(TEXTS)
    images, texts = encoder.image_features(pixels), encoder.text_features(tokens)
    torch.testing.assert_close(images.norm(dim=1), torch.ones(len(images)))
    torch.testing.assert_close(texts.norm(dim=1), torch.ones(len(texts)))
    grids, words = towers.image_pyramid(pixels), towers.text_places(tokens)
    scales = list(encoder.head["scales"].children())
    assert len(scales) == len(grids) == 4
    for i in range(len(images)):
        for j in range(len(texts)):
            text = encoder.head["text"](words.rows[j][words.mask[j]].mean(0)).clamp(min=0)
            each = [
                float(cosine_similarity(layer(grid[i].flatten(1).mean(1)), text, dim=0))
                for layer, grid in zip(scales, grids, strict=True)
            ]
            assert float(images[i] @ texts[j]) == pytest.approx(sum(each) / 4, abs=1e-5)
    trained = encoder.image_outputs(pixels) @ encoder.text_outputs(tokens).T
    torch.testing.assert_close(trained, images @ texts.T)


def test_the_loss_is_the_mean_hinge_of_all_negatives(towers: TowerEncoder) -> None:
    torch.manual_seed(0)
    image, text = (normalize(torch.randn(5, 8), dim=1) for _ in range(2))
    lesson = MethodLesson(LossConfig(mask_equal_captions=False), 0.0, torch.tensor(1.0), towers)
    similarity = (image @ text.T).tolist()
    pairs = [(i, j) for i in range(5) for j in range(5) if i != j]
    hinges = [max(0.2 + similarity[i][j] - similarity[i][i], 0.0) for i, j in pairs]
    hinges += [max(0.2 + similarity[j][i] - similarity[i][i], 0.0) for i, j in pairs]
    found = METHOD.loss(Features(image, text), lesson)
    assert float(found["triplet"]) == pytest.approx(20 * sum(hinges) / len(hinges), rel=1e-5)


def test_scales_that_agree_have_a_gradient(towers: TowerEncoder, pixels: torch.Tensor) -> None:
    encoder = SirsEncoder(towers)
    with torch.no_grad():
        for layer in encoder.head["scales"].children():
            assert isinstance(layer, torch.nn.Linear)
            layer.weight.zero_()
            layer.bias.fill_(1.0)
    encoder.image_outputs(pixels)[:, 0].sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in encoder.head["scales"].parameters() if p.grad is not None)
