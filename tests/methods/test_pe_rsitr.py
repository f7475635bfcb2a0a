"""Adapters begin as nothing, add what their definition says, and leave the towers as they are."""

import copy

import pytest
import torch
from torch import nn
from torch.nn.functional import normalize

from evidex.config import LossConfig
from evidex.encoders.clip.image_tower import ClipImageTower
from evidex.encoders.towers import TowerEncoder
from evidex.losses.contrastive import all_triplets_loss, hardest_triplet_loss
from evidex.losses.total import Features
from evidex.methods.adapters import AdapterBeside, spot_of
from evidex.methods.pe_rsitr import METHOD, PeRsitrEncoder, SharedAdapter
from evidex.methods.protocol import MethodLesson
from tests.methods.conftest import TEXTS


def test_an_adapter_is_down_relu_up_with_a_shared_end() -> None:
    torch.manual_seed(0)
    shared = nn.Linear(64, 5)
    adapter = SharedAdapter(12, shared).eval()
    for layer in (adapter.up, shared):
        nn.init.normal_(layer.weight)
    row = torch.randn(12)
    down = adapter.down.weight.tolist()
    narrow = [max(sum(w * x for w, x in zip(down[i], row.tolist(), strict=True)), 0.0) for i in range(64)]
    expected = [sum(w * n for w, n in zip(adapter.up.weight[i].tolist(), narrow, strict=True)) for i in range(7)]
    expected += [sum(w * n for w, n in zip(shared.weight[i].tolist(), narrow, strict=True)) for i in range(5)]
    torch.testing.assert_close(adapter(row), torch.tensor(expected), rtol=1e-4, atol=1e-4)


def test_at_the_start_the_towers_are_as_they_were(towers: TowerEncoder, pixels: torch.Tensor) -> None:
    tokens = towers.tokenize(TEXTS)
    image, text = towers.image_features(pixels), towers.text_features(tokens)
    encoder = PeRsitrEncoder(towers).eval()
    torch.testing.assert_close(encoder.image_features(pixels), image)
    torch.testing.assert_close(encoder.text_features(tokens), text)


def test_only_adapters_and_new_heads_learn(towers: TowerEncoder, pixels: torch.Tensor) -> None:
    encoder = PeRsitrEncoder(towers).train()
    learning = {name.split(".")[1] for name, p in encoder.named_parameters() if p.requires_grad and "base" in name}
    assert learning == {"image_head", "text_head"}
    with torch.no_grad():
        for parameter in encoder.head.parameters():
            parameter.normal_(std=0.2)
    statistics = {name: value.clone() for name, value in towers.state_dict().items() if "running" in name}
    row = encoder.image_outputs(pixels)
    assert row.shape == (len(TEXTS), 16)
    assert not torch.allclose(row[:, :8], row[:, 8:])  # the second half saw dropped tokens
    assert all(torch.equal(value, towers.state_dict()[name]) for name, value in statistics.items())


def test_a_copy_has_adapters_of_its_own(towers: TowerEncoder) -> None:
    encoder = PeRsitrEncoder(towers).eval()
    tokens = encoder.tokenize(TEXTS)
    kept = copy.deepcopy(encoder)
    before = kept.text_features(tokens)
    with torch.no_grad():
        for parameter in encoder.head.parameters():
            parameter.normal_()
    assert not torch.allclose(encoder.text_features(tokens), before)
    torch.testing.assert_close(kept.text_features(tokens), before)


def test_in_a_transformer_the_adapter_stands_beside_the_feed_forward_part() -> None:
    layer = ClipImageTower().encoder.layers[0].eval()
    parts = dict(layer.named_children())
    tokens = torch.randn(1, 3, 768)
    inner = tokens + parts["self_attn"](parts["layer_norm1"](tokens))
    expected = inner + parts["mlp"](parts["layer_norm2"](inner)) + 0.5 * inner
    half = nn.Linear(768, 768, bias=False)
    with torch.no_grad():
        half.weight.copy_(0.5 * torch.eye(768))
    AdapterBeside(half, spot_of(layer), tapped=True)
    torch.testing.assert_close(layer(tokens), expected, rtol=1e-4, atol=1e-4)


def test_the_loss_is_between_and_within_modalities(towers: TowerEncoder) -> None:
    torch.manual_seed(0)
    v, v2, t, t2 = (normalize(torch.randn(6, 8), dim=1) for _ in range(4))
    lesson = MethodLesson(LossConfig(), 0.0, torch.tensor(1.0), towers)
    parts = METHOD.loss(Features(torch.cat([v, v2], 1), torch.cat([t, t2], 1)), lesson)
    expected = sum(hardest_triplet_loss(a @ b.T, margin=0.2) for a, b in ((v, t), (v, v2), (t, t2)))
    assert float(sum(parts.values())) == pytest.approx(float(expected))
    early = MethodLesson(LossConfig(all_negatives_epochs=1.0), 0.5, torch.tensor(1.0), towers)
    begun = METHOD.loss(Features(torch.cat([v, v2], 1), torch.cat([t, t2], 1)), early)
    assert float(begun["cross"]) == pytest.approx(float(all_triplets_loss(v @ t.T, margin=0.2)) / 6)
    assert (begun["image"], begun["text"]) == (parts["image"], parts["text"])
