"""CLIP's image tower against transformers' own, and its positions at other sizes."""

import pytest
import torch
from transformers import CLIPVisionConfig, CLIPVisionModelWithProjection

from evidex.encoders.clip.image_tower import ClipImageTower
from evidex.errors import ModelError


@pytest.fixture(scope="module")
def published() -> CLIPVisionModelWithProjection:
    torch.manual_seed(0)
    config = CLIPVisionConfig(
        hidden_size=768, intermediate_size=3072, num_hidden_layers=12, num_attention_heads=12, patch_size=16,
        image_size=32, projection_dim=512, hidden_act="quick_gelu", layer_norm_eps=1e-5,
    )  # fmt: skip
    return CLIPVisionModelWithProjection(config).eval()


def _loaded(published: CLIPVisionModelWithProjection, pooling: str) -> ClipImageTower:
    tower = ClipImageTower(pooling, image_size=32).eval()  # type: ignore[arg-type]
    state = {name.removeprefix("vision_model."): value for name, value in published.state_dict().items()}
    tower.load_state_dict({name: state[name] for name in tower.state_dict()})
    return tower


def test_it_is_the_published_network(published: CLIPVisionModelWithProjection) -> None:
    pixels = torch.randn(3, 3, 32, 32)
    with torch.no_grad():
        output = published(pixel_values=pixels)
        torch.testing.assert_close(_loaded(published, "projected")(pixels), output.image_embeds)
        hidden = output.last_hidden_state
        norm = published.vision_model.post_layernorm
        parts = torch.cat([norm(hidden[:, 0]), norm(hidden[:, 1:].mean(1))], -1)
        torch.testing.assert_close(_loaded(published, "cls_mean")(pixels), parts)
        torch.testing.assert_close(_loaded(published, "cls")(pixels), parts[:, :768])
        torch.testing.assert_close(_loaded(published, "mean")(pixels), parts[:, 768:])


def test_pixels_are_normalised_as_clip_does() -> None:
    white = torch.full((1, 3, 2, 2), 255, dtype=torch.uint8)
    expected = [(1 - 0.48145466) / 0.26862954, (1 - 0.4578275) / 0.26130258, (1 - 0.40821073) / 0.27577711]
    torch.testing.assert_close(ClipImageTower(image_size=16).normalise(white)[0, :, 0, 0], torch.tensor(expected))


def test_positions_are_stretched_in_place_not_in_order() -> None:
    """A ramp over the grid stays that ramp on a finer grid; the class token keeps its own position."""
    side, finer = 8, 16
    down, across = torch.meshgrid(torch.arange(side) + 0.5, torch.arange(side) + 0.5, indexing="ij")
    learned = torch.zeros(1 + side * side, 768)
    learned[0] = 7.0
    learned[1:, 0], learned[1:, 1] = down.flatten() / side, across.flatten() / side
    tower = ClipImageTower(image_size=16 * finer)
    fitted = tower.fit("embeddings.position_embedding.weight", learned)
    assert fitted.shape == (1 + finer * finer, 768)
    assert torch.equal(fitted[0], learned[0])
    inner = slice(4, finer - 4)  # away from the edge; torch's cubic follows a ramp to a third of a step
    expected = (torch.arange(finer) + 0.5)[inner] / finer
    torch.testing.assert_close(fitted[1:, 0].reshape(finer, finer)[inner, 5], expected, atol=0.02, rtol=0)
    torch.testing.assert_close(fitted[1:, 1].reshape(finer, finer)[5, inner], expected, atol=0.02, rtol=0)
    same = ClipImageTower(image_size=16 * side)
    assert same.fit("embeddings.position_embedding.weight", learned) is learned


def test_sizes_and_poolings_it_cannot_have_are_refused() -> None:
    with pytest.raises(ModelError, match="230 pixels do not divide into patches of 16"):
        ClipImageTower(image_size=230)
    with pytest.raises(ModelError, match="unknown pooling 'mean_max'"):
        ClipImageTower("mean_max")  # type: ignore[arg-type]
