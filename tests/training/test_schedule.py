"""The learning rate, the groups it applies to, and the averaged weights."""

import math
from pathlib import Path

import pytest
import torch
from torch import nn

from evidex.config import EncoderConfig, TrainConfig
from evidex.encoders.towers import new_compact
from evidex.training.schedule import WeightAverage, _depths, build_optimizer, cosine, lock_images, set_learning_rate
from tests.encoders.tiny_mpnet import save_tiny_mpnet


def test_warm_up_then_half_a_cosine() -> None:
    assert [cosine(step, 110, 10) for step in (0, 4, 9, 10)] == pytest.approx([0.1, 0.5, 1.0, 1.0])
    assert cosine(60, 110, 10) == pytest.approx(0.5)
    assert cosine(110, 110, 10) == pytest.approx(0.0)
    assert cosine(25, 100, 0) == pytest.approx(0.5 * (1 + math.cos(math.pi / 4)))


def test_what_is_locked_keeps_its_place_among_the_moments_and_does_not_move() -> None:
    """Checkpoints count the parameters: one that is left out would give its moments to the next."""
    encoder = new_compact(EncoderConfig(image_size=32, dim=8), ["a river ."])
    scale, config = nn.Parameter(torch.tensor(1.0)), TrainConfig(learning_rate=0.1)
    before = [group["params"] for group in build_optimizer(encoder, scale, config).param_groups]
    lock_images(encoder, head=True)
    optimizer = build_optimizer(encoder, scale, config)
    for group, others in zip(optimizer.param_groups, before, strict=True):
        assert all(one is other for one, other in zip(group["params"], others, strict=True))
    kept = {name: value.clone() for name, value in encoder.named_parameters()}
    encoder.text_features(encoder.tokenize(["a river ."])).sum().backward()
    optimizer.step()
    moved = {name for name, value in encoder.named_parameters() if not torch.equal(value, kept[name])}
    assert moved
    assert not any(name.startswith("image") for name in moved)


def test_groups_have_their_rates_and_vectors_do_not_decay() -> None:
    encoder = new_compact(EncoderConfig(image_size=32, dim=8), ["a river ."])
    scale = nn.Parameter(torch.tensor(1.0))
    config = TrainConfig(learning_rate=1e-3, text_learning_rate=1e-4, head_learning_rate=1e-2, weight_decay=0.1)
    optimizer = build_optimizer(encoder, scale, config)
    group_of = {id(p): group for group in optimizer.param_groups for p in group["params"]}
    assert len(group_of) == len(list(encoder.parameters())) + 1
    names = dict(encoder.named_parameters())
    image, head = names["image_tower.stem.0.weight"], names["image_head.weight"]
    text = names["text_tower.embeddings.word_embeddings.weight"]
    assert [group_of[id(p)]["lr"] for p in (image, text, head)] == [1e-3, 1e-4, 1e-2]
    assert group_of[id(image)]["weight_decay"] == 0.1
    assert group_of[id(names["image_head.bias"])]["weight_decay"] == 0.0
    set_learning_rate(optimizer, 0.5)
    assert group_of[id(image)]["lr"] == 5e-4


def test_lower_layers_of_a_transformer_learn_more_slowly() -> None:
    encoder = new_compact(EncoderConfig(image_size=32, dim=8), ["a river ."])  # its text tower has two layers
    config = TrainConfig(learning_rate=1e-3, layer_decay=0.5)
    optimizer = build_optimizer(encoder, nn.Parameter(torch.tensor(1.0)), config)
    rate_of = {id(p): group["lr"] for group in optimizer.param_groups for p in group["params"]}
    rates = {name: rate_of[id(p)] for name, p in encoder.named_parameters()}
    assert rates["text_head.weight"] == rates["image_tower.stem.0.weight"] == 1e-3
    assert rates["text_tower.encoder.layer.1.output.dense.weight"] == 5e-4
    assert rates["text_tower.encoder.layer.0.output.dense.weight"] == 2.5e-4
    assert rates["text_tower.embeddings.word_embeddings.weight"] == 1.25e-4
    assert set(rates.values()) == {1e-3, 5e-4, 2.5e-4, 1.25e-4}


def test_what_all_layers_share_lies_below_them(tmp_path: Path) -> None:
    mpnet = save_tiny_mpnet(tmp_path / "mpnet", layers=3)
    names = [f"text_tower.{name}" for name, _ in mpnet.named_parameters()]
    depths = _depths(names)
    assert depths["text_tower.encoder.relative_attention_bias.weight"] == 4
    assert depths["text_tower.embeddings.word_embeddings.weight"] == 4
    assert depths["text_tower.encoder.layer.2.output.dense.weight"] == 1


def test_the_average_follows_and_forgets_the_start() -> None:
    encoder = new_compact(EncoderConfig(image_size=32, dim=8), ["a river ."])
    average = WeightAverage(encoder, 0.5)
    start = encoder.image_head.bias.detach().clone()
    with torch.no_grad():
        encoder.image_head.bias.add_(1.0)
    average.update(step=1000)
    torch.testing.assert_close(average.encoder.get_parameter("image_head.bias"), start + 0.5)
    average.update(step=0)
    torch.testing.assert_close(average.encoder.get_parameter("image_head.bias"), start + 0.95)
