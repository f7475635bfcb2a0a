"""MPNet's folder as our text tower, held against transformers; what a saved model of it keeps; wrong folders."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file
from transformers import MPNetModel, MPNetTokenizer
from transformers.models.mpnet.modeling_mpnet import MPNetEncoder

from evidex.config import EncoderConfig
from evidex.encoders.export import export_model
from evidex.encoders.frozen_text import judge_words
from evidex.encoders.image_towers import build_image_tower
from evidex.encoders.model import Model, load_model
from evidex.encoders.onnx_encoder import OnnxEncoder
from evidex.encoders.pruning import with_fewer_hidden
from evidex.encoders.published_text import published_config, published_shape, published_vocabulary
from evidex.encoders.rounding import with_text_in_bytes
from evidex.encoders.sizes import distance_buckets
from evidex.encoders.text_towers import TextShape, TextTower
from evidex.encoders.torch_engine import torch_encoder
from evidex.encoders.towers import TowerEncoder, from_pretrained_towers, load_tower
from evidex.encoders.wordpiece import WordPiece
from evidex.errors import ModelError
from tests.encoders.tiny_mpnet import VOCABULARY, save_tiny_mpnet

TEXTS = ["many planes are parked , an airport .", "", "a river of planes " * 40, "日本 %$ Café", "a"]
ANYTHING = st.text(alphabet=[*"aplne rtsx19日本.,!'-é\t\n\u0301\u200b\u00a0½€“ß🙂[]", *"ſİ\ufffd"], max_size=60)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("weights")
    save_tiny_mpnet(made / "mpnet")
    torch.manual_seed(0)
    save_file(build_image_tower("convnet").state_dict(), made / "convnet.safetensors")
    return made


@pytest.fixture(scope="module")
def encoder(folder: Path) -> TowerEncoder:
    torch.manual_seed(0)
    return from_pretrained_towers(_settings(folder)).eval()


def _settings(folder: Path) -> EncoderConfig:
    return EncoderConfig(
        kind="towers", source=str(folder), image_tower="convnet", text_tower="mpnet", image_size=32, dim=16
    )


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_the_text_tower_is_mpnet_with_mean_pooling(folder: Path, kind: torch.dtype) -> None:
    mpnet = MPNetModel.from_pretrained(folder / "mpnet", dtype=kind).eval()
    tower = TextTower(published_shape(folder / "mpnet", 64)).eval()
    load_tower(tower, folder / "mpnet" / "model.safetensors")
    lengths = torch.tensor([64, 4, 40, 1])
    mask = (torch.arange(64) < lengths[:, None]).long()
    ids = torch.randint(4, len(VOCABULARY), (4, 64)).where(mask.bool(), 1)
    with torch.no_grad():
        hidden = mpnet(input_ids=ids, attention_mask=mask).last_hidden_state
        expected = torch.stack([row[:length].mean(0) for row, length in zip(hidden, lengths, strict=True)])
        close = 1e-12 if kind == torch.float64 else 1e-5
        torch.testing.assert_close(tower.to(kind)(ids, mask), expected, atol=close, rtol=close)


@pytest.mark.parametrize("length", [1, 7, 64, 300])
def test_distances_fall_into_the_buckets_of_transformers(length: int) -> None:
    apart = torch.arange(length)[None, :] - torch.arange(length)[:, None]
    assert torch.equal(torch.from_numpy(distance_buckets(length, 32)), MPNetEncoder.relative_position_bucket(apart, 32))


@settings(max_examples=300, deadline=None)
@given(ANYTHING)
def test_texts_are_cut_as_mpnet_cuts_them(text: str) -> None:
    reference = MPNetTokenizer(vocab={piece: i for i, piece in enumerate(VOCABULARY)})
    tokens = WordPiece(VOCABULARY, 64)(["a", text])
    expected = reference(["a", text], padding=True, truncation=True, max_length=64)
    assert tokens["input_ids"].tolist() == expected["input_ids"]
    assert tokens["attention_mask"].tolist() == expected["attention_mask"]


def test_special_pieces_in_a_text_are_text() -> None:
    encode = WordPiece(VOCABULARY, 64).encode
    assert [VOCABULARY[i] for i in encode("</s> [UNK]")] == ["<s>", *"</s>[", "u", "##n", "##k", "]", "</s>"]
    assert encode("§") == [0, VOCABULARY.index("[UNK]"), 2]


def test_a_saved_model_gives_the_same_vectors_from_its_file_alone(encoder: TowerEncoder, tmp_path: Path) -> None:
    Model(encoder, 0.1).save(tmp_path / "model.safetensors")
    again = load_model(tmp_path / "model.safetensors", device="cpu", engine="torch").encoder
    np.testing.assert_array_equal(again.embed_texts(TEXTS), encoder.embed_texts(TEXTS))
    assert again.spec() == encoder.spec()
    assert isinstance(load_model(tmp_path / "model.safetensors", device="cpu").encoder, OnnxEncoder)
    exported = export_model(str(tmp_path / "model.safetensors"), tmp_path / "half.safetensors", half=True)
    assert exported.difference < 1e-5


@pytest.mark.parametrize("in_bytes", [False, True])
def test_its_graph_gives_what_torch_gives(encoder: TowerEncoder, in_bytes: bool) -> None:
    weights = with_text_in_bytes(encoder.weights()) if in_bytes else encoder.weights()
    plain = torch_encoder(encoder.spec(), weights).eval()
    expected = np.concatenate([plain.embed_texts([text]) for text in TEXTS])
    assert np.abs(expected[0] - expected[4]).max() > 0.01, "the texts are told apart at all"
    np.testing.assert_allclose(OnnxEncoder(encoder.spec(), weights).embed_texts(TEXTS), expected, atol=1e-5, rtol=0)


def test_its_distances_are_learned_in_half_precision_too(encoder: TowerEncoder) -> None:
    learner = TowerEncoder({**encoder.spec(), "dropout": 0.1}).train()
    learner.load_state_dict(encoder.state_dict())
    optimizer = torch.optim.AdamW(learner.parameters(), lr=1e-2)
    tokens, goal = learner.tokenize(TEXTS[:2]), torch.eye(2, 16)
    before, losses = learner.text_tower.encoder.get_parameter("relative_attention_bias.weight").detach().clone(), []
    for _ in range(10):
        with torch.autocast("cpu", torch.bfloat16):
            loss = (learner.text_features(tokens) - goal).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2
    assert all(each.grad is not None and bool(each.grad.isfinite().all()) for each in learner.text_tower.parameters())
    assert not torch.equal(learner.text_tower.encoder.get_parameter("relative_attention_bias.weight"), before)


def test_hidden_units_and_layers_can_be_left_out(folder: Path, encoder: TowerEncoder) -> None:
    every = with_fewer_hidden(encoder, 40, encoder.tokenize(TEXTS))
    assert every.spec() == encoder.spec()
    torch.testing.assert_close(
        every.text_features(encoder.tokenize(TEXTS)), encoder.text_features(encoder.tokenize(TEXTS))
    )
    first = from_pretrained_towers(replace(_settings(folder), text_layers=1))
    assert len(first.text_tower.blocks()) == first.spec()["text_shape"]["layers"] == 1


@pytest.mark.parametrize("name", ["positions", "distances", "token_types"])
def test_a_size_that_is_not_the_weights_own_is_refused(encoder: TowerEncoder, name: str) -> None:
    wrong = {**encoder.spec(), "text_shape": {**encoder.spec()["text_shape"], name: 1 << 24}}
    with pytest.raises(ValueError, match="do not fit the architecture"):
        torch_encoder(wrong, encoder.weights())
    with pytest.raises(ValueError, match="do not fit the architecture"):
        OnnxEncoder(wrong, encoder.weights())


def test_it_judges_words_as_it_was_published(folder: Path) -> None:
    table = judge_words(folder / "mpnet", ["a river .", "many planes"], rarer=["rivers"])
    assert {"river", "lake", "plane"} <= set(table.words)


def test_a_description_says_only_what_is_not_berts() -> None:
    usual = TextShape(30, 24, 3, 4, 40, 64)
    assert set(usual.described()) == {"vocabulary", "hidden", "layers", "heads", "intermediate", "positions"}
    assert TextShape(**usual.described()) == usual


@pytest.mark.parametrize(
    "shape", [TextShape(30, 24, 3, 4, 40), TextShape(30, 24, 3, 4, 40, token_types=0, distances=32, epsilon=1e-5)]
)
def test_a_shape_comes_back_from_its_folder(shape: TextShape, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(published_config(shape)))
    assert published_shape(tmp_path, 64) == shape


@pytest.mark.parametrize(
    ("name", "value"),
    [("relative_attention_num_buckets", 16), ("layer_norm_eps", "small"), ("layer_norm_eps", 2.0), ("hidden_size", -1)],
)
def test_sizes_that_cannot_be_are_refused(folder: Path, tmp_path: Path, name: str, value: object) -> None:
    content = json.loads((folder / "mpnet" / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**content, name: value}))
    with pytest.raises(ModelError, match=f"has {name} = .*; fetch the file again"):
        published_shape(tmp_path, 64)


def test_the_vocabulary_is_whole(folder: Path) -> None:
    assert published_vocabulary(folder / "mpnet") == VOCABULARY
