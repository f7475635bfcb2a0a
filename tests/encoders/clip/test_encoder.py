from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from huggingface_hub import constants
from safetensors.torch import load_file, save_file
from transformers import BertConfig, BertModel, CLIPImageProcessorPil

from evidex.encoders.clip.encoder import ClipEncoder
from evidex.encoders.clip.tokenizer import ClipTokenizer
from evidex.encoders.hub import wanted_files
from evidex.errors import ModelError
from tests.encoders.clip.tiny_clip import save_tiny_clip, tiny_architecture, tiny_vocabulary, write_vocabulary
from tests.encoders.test_preprocess import random_image

TEXTS = ["many planes", "", "several ships are in the harbour .", "river " * 90]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_tiny_clip(tmp_path / "clip")
    return tmp_path / "clip"


@pytest.fixture
def encoder(folder: Path) -> ClipEncoder:
    return ClipEncoder.from_pretrained(folder).eval()


def unit(rows: torch.Tensor) -> torch.Tensor:
    return torch.div(rows, rows.norm(dim=-1, keepdim=True))


@torch.no_grad()
def test_features_equal_transformers(tmp_path: Path) -> None:
    model = save_tiny_clip(tmp_path)
    encoder = ClipEncoder.from_pretrained(str(tmp_path)).eval()
    images = [random_image(40, 61), random_image(90, 32), random_image(32, 32)]
    processor = CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32})
    expected = model.get_image_features(**processor(images=images, return_tensors="pt")).pooler_output
    pixels = torch.from_numpy(np.stack([encoder.prepare_image(image) for image in images]))
    torch.testing.assert_close(encoder.image_features(pixels), unit(expected), atol=1e-5, rtol=0)
    tokens = encoder.tokenize(TEXTS)
    mask = torch.ones_like(tokens["input_ids"])
    expected = model.get_text_features(input_ids=tokens["input_ids"], attention_mask=mask).pooler_output
    torch.testing.assert_close(encoder.text_features(tokens), unit(expected), atol=1e-6, rtol=0)


@torch.no_grad()
def test_a_text_has_the_same_feature_in_any_batch(encoder: ClipEncoder) -> None:
    together = encoder.text_features(encoder.tokenize(TEXTS))
    for row, text in zip(together, TEXTS, strict=True):
        torch.testing.assert_close(encoder.text_features(encoder.tokenize([text]))[0], row, atol=1e-6, rtol=0)


@torch.no_grad()
def test_rows_have_unit_length_and_follow_their_image(encoder: ClipEncoder) -> None:
    pixels = torch.randint(0, 256, (5, 3, 32, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))
    features = encoder.image_features(pixels)
    assert features.shape == (5, encoder.dim)
    torch.testing.assert_close(features.norm(dim=1), torch.ones(5))
    torch.testing.assert_close(encoder.image_features(pixels.flip(0)), features.flip(0))
    assert torch.equal(encoder.image_features(pixels.float()), features)


def test_both_towers_learn_and_the_temperature_does_not(encoder: ClipEncoder) -> None:
    pixels = torch.randint(0, 256, (4, 3, 32, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))
    similarity = encoder.image_features(pixels) @ encoder.text_features(encoder.tokenize(TEXTS)).T
    similarity.logsumexp(dim=1).sum().backward()
    without = {name for name, parameter in encoder.named_parameters() if parameter.grad is None}
    assert without == {"clip.logit_scale"}


@torch.no_grad()
def test_bfloat16_autocast_gives_float32_unit_rows(encoder: ClipEncoder) -> None:
    tokens = encoder.tokenize(TEXTS)
    exact = encoder.text_features(tokens)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rough = encoder.text_features(tokens)
    assert rough.dtype == torch.float32
    torch.testing.assert_close(rough.norm(dim=1), torch.ones(len(TEXTS)))
    assert (rough * exact).sum(dim=1).min() > 0.99


@torch.no_grad()
def test_spec_and_weights_rebuild_the_encoder(encoder: ClipEncoder) -> None:
    again = ClipEncoder.from_spec(json.loads(json.dumps(encoder.spec())))
    again.load_state_dict(encoder.state_dict())
    again.eval()
    tokens = again.tokenize(TEXTS)
    pixels = torch.randint(0, 256, (2, 3, 32, 32), dtype=torch.uint8)
    assert torch.equal(again.text_features(tokens), encoder.text_features(encoder.tokenize(TEXTS)))
    assert torch.equal(again.image_features(pixels), encoder.image_features(pixels))
    assert again.spec() == encoder.spec()


def test_building_leaves_the_callers_randomness_alone(encoder: ClipEncoder, folder: Path) -> None:
    torch.manual_seed(11)
    expected = torch.rand(3)
    torch.manual_seed(11)
    ClipEncoder.from_pretrained(folder)
    first = ClipEncoder.from_spec(encoder.spec()).state_dict()
    second = ClipEncoder.from_spec(encoder.spec()).state_dict()
    assert torch.equal(torch.rand(3), expected)
    assert all(torch.equal(first[key], second[key]) for key in first)


def test_the_folders_own_normalisation_is_used_and_kept(folder: Path) -> None:
    settings = {"image_mean": [0.5, 0.5, 0.5], "image_std": [0.25, 0.25, 0.25]}
    (folder / "preprocessor_config.json").write_text(json.dumps(settings))
    encoder = ClipEncoder.from_pretrained(folder)
    assert encoder.mean.tolist() == [0.5, 0.5, 0.5]
    assert ClipEncoder.from_spec(encoder.spec()).std.tolist() == [0.25, 0.25, 0.25]


def test_native_temperature_is_the_inverse_of_the_learned_scale(encoder: ClipEncoder) -> None:
    with torch.no_grad():
        encoder.clip.logit_scale.fill_(float(np.log(100.0)))
    assert encoder.native_temperature == pytest.approx(0.01, rel=1e-6)


def fails(action: object, *parts: str) -> None:
    assert callable(action)
    with pytest.raises(ModelError) as caught:
        action()
    message = str(caught.value)
    assert "\n" not in message
    for part in parts:
        assert part in message


def test_a_hub_name_without_network_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    fails(lambda: ClipEncoder.from_pretrained("owner/clip"), "owner/clip", "127.0.0.1:9", "local model folder")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    fails(lambda: ClipEncoder.from_pretrained("owner/clip"), "owner/clip", "HF_HUB_OFFLINE", "local model folder")


def test_a_model_in_the_hubs_cache_needs_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    stored = tmp_path / "models--owner--clip"
    save_tiny_clip(stored / "snapshots" / ("a" * 40))
    (stored / "refs").mkdir()
    (stored / "refs" / "main").write_text("a" * 40)
    assert ClipEncoder.from_pretrained("owner/clip").dim == 24


def test_a_wrong_path_is_one_clear_line() -> None:
    fails(lambda: ClipEncoder.from_pretrained("/no/such/folder"), "/no/such/folder", "local model folder")
    fails(lambda: ClipEncoder.from_pretrained("./models/clip"), "./models/clip", "local model folder")


def test_one_form_of_the_weights_is_fetched() -> None:
    names = ["config.json", "model.safetensors", "pytorch_model.bin", "tf_model.h5", "onnx/model.onnx", "merges.txt"]
    assert wanted_files(names) == ["config.json", "merges.txt", "model.safetensors"]
    names.remove("model.safetensors")
    assert wanted_files(names) == ["config.json", "merges.txt", "pytorch_model.bin"]


def test_another_kind_of_model_is_refused(tmp_path: Path) -> None:
    config = BertConfig(vocab_size=30, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8)
    BertModel(config).save_pretrained(tmp_path)
    fails(lambda: ClipEncoder.from_pretrained(tmp_path), "'bert'", "CLIP")


def test_missing_and_misshaped_weights_are_refused(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    removed = weights.pop("text_projection.weight")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    fails(lambda: ClipEncoder.from_pretrained(folder), "text_projection.weight")
    weights["text_projection.weight"] = removed[:-1].clone()
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    fails(lambda: ClipEncoder.from_pretrained(folder), str(folder))


def test_truncated_and_absent_weights_are_refused(folder: Path) -> None:
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    fails(lambda: ClipEncoder.from_pretrained(folder), str(folder))
    (folder / "model.safetensors").unlink()
    fails(lambda: ClipEncoder.from_pretrained(folder), str(folder))


def test_a_folder_without_tokenizer_is_refused(folder: Path) -> None:
    (folder / "vocab.json").unlink()
    (folder / "merges.txt").unlink()
    fails(lambda: ClipEncoder.from_pretrained(folder), "has no tokenizer", "merges.txt")


def test_a_foreign_tokenizer_is_refused(encoder: ClipEncoder) -> None:
    tokens, merges = tiny_vocabulary()
    foreign = ClipTokenizer([*tokens[:-2], "extra", *tokens[-2:]], merges, 77)
    fails(lambda: ClipEncoder(encoder.architecture, foreign, encoder.clip), "the tokenizer has", "expects")


def test_a_damaged_spec_is_refused(encoder: ClipEncoder) -> None:
    spec = encoder.spec()
    fails(lambda: ClipEncoder.from_spec(spec | {"kind": "compact"}), "'compact'")
    fails(lambda: ClipEncoder.from_spec({"kind": "clip"}), "architecture")
    fails(lambda: ClipEncoder.from_spec(spec | {"architecture": {"dim": 3}}), "image_width")


def test_the_config_of_an_architecture_reads_back() -> None:
    architecture = tiny_architecture(activation="gelu", context=20)
    read = type(architecture).from_config(architecture.config(), end_token=architecture.end_token)
    assert read == architecture


def test_open_clip_without_tokenizer_files_says_what_is_missing(tmp_path: Path) -> None:
    from tests.encoders.clip.test_open_clip_weights import PlainClip

    torch.manual_seed(0)
    path = tmp_path / "remote.pt"
    torch.save(PlainClip(tiny_architecture()).state_dict(), path)
    load = ClipEncoder.from_open_clip
    fails(lambda: load(path, tokenizer=tmp_path, activation="gelu"), "has no tokenizer", "vocab.json")
    write_vocabulary(tmp_path)
    assert load(path, tokenizer=tmp_path, activation="gelu").dim == 24
