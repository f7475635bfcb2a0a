"""AMFMN's similarity and attention against loops over single pairs and numbers."""

import math

import numpy as np
import pytest
import torch

from evidex.encoders.model import Model
from evidex.encoders.towers import TowerEncoder
from evidex.errors import InputError, ModelError
from evidex.evaluation.deferral import Refinements
from evidex.evaluation.features import match
from evidex.evaluation.protocol import evaluate
from evidex.losses import all_triplets_loss
from evidex.methods.amfmn import METHOD, AmfmnEncoder, VisualSelfAttention
from evidex.retrieval.gallery import Gallery
from tests.methods.conftest import TEXTS


@pytest.fixture
def encoder(towers: TowerEncoder) -> AmfmnEncoder:
    found = METHOD.wrap(towers, [])
    assert isinstance(found, AmfmnEncoder)
    return found.eval()


def test_the_similarity_is_the_cosine_of_a_picture_and_the_text_it_gates() -> None:
    rng = np.random.default_rng(0)
    v, g, t = rng.normal(size=(3, 4)), rng.uniform(size=(3, 4)), np.abs(rng.normal(size=(5, 4)))
    images = np.concatenate([v * g / np.linalg.norm(v, axis=1, keepdims=True), g**2], 1)
    texts = np.concatenate([t, t**2], 1)
    found = AmfmnEncoder.similarity(None, torch.from_numpy(images), torch.from_numpy(texts))  # type: ignore[arg-type]
    for i in range(3):
        for j in range(5):
            gated = [g[i, k] * t[j, k] for k in range(4)]
            dot = sum(v[i, k] * gated[k] for k in range(4))
            expected = dot / math.sqrt(sum(x * x for x in v[i])) / math.sqrt(sum(x * x for x in gated))
            assert found[i, j].item() == pytest.approx(expected, rel=1e-5)


def test_attention_is_that_of_a_naive_loop() -> None:
    torch.manual_seed(0)
    module = VisualSelfAttention([2, 3, 4, 5], [8, 4, 2, 1], 6).double()
    grids = [torch.randn(1, c, s, s, dtype=torch.float64) for c, s in ((2, 8), (3, 4), (4, 2), (5, 1))]
    with torch.no_grad():
        found = module(grids)[0]
        state = module.state_dict()
        seen = []
        for y in range(2):
            for x in range(2):
                low = state["low.bias"].clone()
                for dy in range(3):
                    for dx in range(3):
                        place = torch.cat([grids[0][0, :, 4 * y + dy, 4 * x + dx],
                                           grids[1][0, :, (4 * y + dy) // 2, (4 * x + dx) // 2]])  # fmt: skip
                        low += state["low.weight"][:, :, dy, dx] @ place
                deep = torch.cat([grids[2][0, :, y, x], grids[3][0, :, 0, 0]])
                high = state["high.bias"] + state["high.weight"][:, :, 0, 0] @ deep
                both = torch.cat([low, high]) + high.mean()
                main = state["main.weight"][0, :, 0, 0] @ both + state["main.bias"][0]
                heed = state["attention.weight"][0, :, 0, 0] @ both + state["attention.bias"][0]
                seen.append(main / (1 + torch.exp(-heed)))
        gate = torch.sigmoid(state["gate.weight"] @ torch.stack(seen) + state["gate.bias"])
        solo = state["solo.weight"] @ grids[3][0, :, 0, 0] + state["solo.bias"]
    torch.testing.assert_close(found, solo * gate)


def test_the_loss_sums_every_hinge() -> None:
    similarity = torch.tensor([[0.5, 0.4, 0.1], [0.2, 0.6, 0.9], [0.0, 0.1, 0.3]], dtype=torch.float64)
    rows = sum(
        max(0.2 + similarity[i, j].item() - similarity[i, i].item(), 0) for i in range(3) for j in range(3) if i != j
    )
    columns = sum(
        max(0.2 + similarity[i, j].item() - similarity[j, j].item(), 0) for i in range(3) for j in range(3) if i != j
    )
    assert all_triplets_loss(similarity).item() == pytest.approx(rows + columns)


def test_a_model_that_compares_pairs_is_measured_but_not_put_into_a_gallery(
    encoder: AmfmnEncoder, pixels: torch.Tensor, tmp_path: object
) -> None:
    model = Model(encoder, 0.1)
    images, texts = model.encode_pixels(pixels.numpy()), model.encode_texts(TEXTS)
    assert images.shape[1] == texts.shape[1] == model.dim
    matching = match(images, texts, model.similarity)
    assert np.abs(matching.similarity).max() <= 1.0001
    with pytest.raises(ModelError, match="pair by pair"):
        Gallery.create(f"{tmp_path}/gallery", model)
    with pytest.raises(InputError, match="--defer"):
        evaluate(model, None, refinements=Refinements((0.1,)))  # type: ignore[arg-type]
