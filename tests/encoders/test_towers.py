"""The towers: shapes, unit rows, BERT's forward pass, loading of foreign weights."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from transformers import BertConfig, BertModel

from evidex.config import EncoderConfig
from evidex.encoders.image_towers import build_image_tower
from evidex.encoders.text_towers import TextShape, TextTower
from evidex.encoders.towers import TowerEncoder, from_pretrained_towers, load_tower, new_compact
from evidex.errors import ModelError

TEXTS = ["many planes are parked in an airport .", "a river .", "a river ."]


@pytest.fixture(scope="module")
def compact() -> TowerEncoder:
    torch.manual_seed(0)
    return new_compact(EncoderConfig(image_size=32, dim=16), TEXTS).eval()


def test_features_are_unit_rows(compact: TowerEncoder) -> None:
    pixels = torch.randint(0, 256, (3, 3, 32, 32), dtype=torch.uint8)
    with torch.no_grad():
        for features in (compact.image_features(pixels), compact.text_features(compact.tokenize(TEXTS))):
            assert features.shape == (3, 16)
            torch.testing.assert_close(features.norm(dim=1), torch.ones(3))


def test_padding_does_not_change_a_text(compact: TowerEncoder) -> None:
    with torch.no_grad():
        together = compact.text_features(compact.tokenize(TEXTS))
        alone = compact.text_features(compact.tokenize(TEXTS[1:2]))
    torch.testing.assert_close(together[1:2], alone, atol=1e-5, rtol=1e-4)


def test_many_texts_of_all_lengths_come_out_in_their_order_as_each_alone(compact: TowerEncoder) -> None:
    words = np.random.default_rng(0).integers(1, 40, 150)
    texts = [" ".join(TEXTS[n % 3].split()[:3] * (int(count) // 3 + 1)) for n, count in enumerate(words)]
    tokens = compact.tokenize(texts)
    together = compact.text_outputs(tokens)
    together.sum().backward()
    grown = {name: each.grad for name, each in compact.named_parameters() if each.grad is not None}
    compact.zero_grad()
    rows = [compact.text_features({name: ids[n : n + 1] for name, ids in tokens.items()}) for n in range(len(texts))]
    alone = torch.cat(rows)
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=1e-4)
    alone.sum().backward()
    for name, each in compact.named_parameters():
        if name in grown:
            torch.testing.assert_close(grown[name], each.grad, atol=2e-4, rtol=1e-3, msg=name)


def test_prepared_images_are_square_bytes(compact: TowerEncoder) -> None:
    for size in ((32, 32), (1, 1), (500, 20), (33, 700)):
        prepared = compact.prepare_image(Image.new("RGB", size, (10, 200, 30)))
        assert prepared.shape == (3, 32, 32)
        assert prepared.dtype == np.uint8
        assert prepared[:, 5, 5].tolist() == [10, 200, 30]


def test_the_spec_rebuilds_the_encoder(compact: TowerEncoder) -> None:
    again = TowerEncoder(json.loads(json.dumps(compact.spec()))).eval()
    again.load_state_dict(compact.state_dict())
    pixels = torch.randint(0, 256, (2, 3, 32, 32), dtype=torch.uint8)
    with torch.no_grad():
        assert torch.equal(compact.image_features(pixels), again.image_features(pixels))


@pytest.mark.parametrize(
    ("name", "width", "millions"),
    [("resnet50", 2048, 23.508), ("efficientnet_lite0", 1280, 3.371), ("efficientnet_lite2", 1280, 4.811)],
)
def test_published_architectures_have_their_published_size(name: str, width: int, millions: float) -> None:
    tower = build_image_tower(name).eval()
    assert sum(p.numel() for p in tower.parameters()) / 1e6 == pytest.approx(millions, abs=1e-3)
    with torch.no_grad():
        assert tower(tower.normalise(torch.zeros(1, 3, 64, 64, dtype=torch.uint8))).shape == (1, width)


def test_pixels_are_normalised_as_each_tower_was_trained() -> None:
    red = torch.zeros(1, 3, 2, 2, dtype=torch.uint8)
    red[:, 0] = 255
    keras = build_image_tower("resnet50").normalise(red)[0, :, 0, 0]
    torch.testing.assert_close(keras, torch.tensor([-103.939, -116.779, 255 - 123.68]))
    lite = build_image_tower("efficientnet_lite0").normalise(red)[0, :, 0, 0]
    torch.testing.assert_close(lite, torch.tensor([1.0, -127 / 128, -127 / 128]))


@pytest.mark.parametrize(("size", "stride", "kernel"), [(7, 2, 3), (8, 2, 3), (9, 1, 5), (10, 2, 5)])
def test_same_padding_puts_the_odd_pixel_right_and_bottom(size: int, stride: int, kernel: int) -> None:
    from evidex.encoders.image_towers import _SameConv2d

    conv = _SameConv2d(1, 1, kernel, stride, bias=False)
    image = torch.rand(1, 1, size, size)
    out = -(-size // stride)
    total = max((out - 1) * stride + kernel - size, 0)
    padded = np.pad(image[0, 0].numpy(), (total // 2, total - total // 2))
    weight = conv.weight[0, 0].detach().numpy()
    expected = [
        [
            (padded[i * stride : i * stride + kernel, j * stride : j * stride + kernel] * weight).sum()
            for j in range(out)
        ]
        for i in range(out)
    ]
    np.testing.assert_allclose(conv(image)[0, 0].detach().numpy(), np.array(expected), rtol=1e-4, atol=1e-5)


def _bert(folder: Path) -> BertModel:
    torch.manual_seed(1)
    config = BertConfig(
        vocab_size=30, hidden_size=24, num_hidden_layers=3, num_attention_heads=4, intermediate_size=40,
        max_position_embeddings=80,
    )  # fmt: skip
    bert = BertModel(config).eval()
    folder.mkdir()
    bert.save_pretrained(folder)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *(f"w{i}" for i in range(26))]
    (folder / "vocab.txt").write_text("\n".join(words))
    return bert


def test_the_text_tower_is_bert_with_mean_pooling(tmp_path: Path) -> None:
    bert = _bert(tmp_path / "bert")
    tower = TextTower(TextShape(30, 24, 3, 4, 40, 64)).eval()
    load_tower(tower, tmp_path / "bert" / "model.safetensors")
    ids = torch.randint(4, 30, (3, 9))
    mask = torch.tensor([[1] * 9, [1] * 4 + [0] * 5, [1] * 6 + [0] * 3])
    with torch.no_grad():
        hidden = bert(input_ids=ids, attention_mask=mask).last_hidden_state
        expected = torch.stack([row[: m.sum()].mean(0) for row, m in zip(hidden, mask, strict=True)])
        torch.testing.assert_close(tower(ids, mask), expected, atol=1e-5, rtol=1e-4)


def test_pretrained_towers_load_and_foreign_ones_are_refused(tmp_path: Path) -> None:
    _bert(tmp_path / "bert")
    lite = build_image_tower("efficientnet_lite0")
    path = tmp_path / "efficientnet_lite0.safetensors"
    save_file({**lite.state_dict(), "_fc.weight": torch.zeros(2, 2)}, path)
    config = EncoderConfig(
        kind="towers", source=str(tmp_path), image_tower="efficientnet_lite0", text_tower="bert", text_layers=2, dim=8
    )
    encoder = from_pretrained_towers(config)
    assert torch.equal(encoder.image_tower.state_dict()["_conv_stem.weight"], lite.state_dict()["_conv_stem.weight"])
    assert encoder.spec()["text_shape"]["layers"] == 2

    missing = {name: value for name, value in lite.state_dict().items() if name != "_conv_stem.weight"}
    save_file(missing, path)
    with pytest.raises(ModelError, match=r"lacks '_conv_stem\.weight'"):
        from_pretrained_towers(config)
    with pytest.raises(ModelError, match="has no text tower"):
        from_pretrained_towers(dataclasses.replace(config, text_tower="gone"))
    with pytest.raises(ModelError, match="unknown image tower 'vgg'"):
        build_image_tower("vgg")


def test_frozen_batch_norm_keeps_its_statistics(compact: TowerEncoder) -> None:
    encoder = TowerEncoder(compact.spec())
    encoder.freeze_batch_norm = True
    encoder.train()
    before = {name: value.clone() for name, value in encoder.state_dict().items() if "running" in name}
    encoder.image_features(torch.randint(0, 256, (4, 3, 32, 32), dtype=torch.uint8))
    after = encoder.state_dict()
    assert before
    assert all(torch.equal(value, after[name]) for name, value in before.items())
