from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import (
    BertConfig,
    BertModel,
    CLIPImageProcessorPil,
    ConvNextImageProcessorPil,
    MPNetConfig,
    MPNetModel,
    ResNetConfig,
    ResNetModel,
    ViTConfig,
    ViTImageProcessorPil,
    ViTModel,
)

from evidex.encoders.mentors.pretrained import HuggingFaceImageMentor, HuggingFaceTextMentor, TorchImageMentor
from evidex.encoders.preprocess import CLIP_MEAN, CLIP_STD
from evidex.errors import ModelError
from tests.encoders.clip.tiny_clip import save_tiny_clip, spread_weights
from tests.encoders.test_preprocess import random_image

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "planes", "ships", "river", "many", "two", "near", "."]
TEXTS = ["many planes", "two ships near river .", "", "river", "planes " * 300]
IMAGES = [random_image(50, 40), random_image(31, 64), random_image(40, 40).convert("L"), random_image(8, 9)]


def write_words(folder: Path) -> None:
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer"}))


@pytest.fixture
def bert(tmp_path: Path) -> Path:
    torch.manual_seed(1)
    config = BertConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=32,
    )
    model = BertModel(config)
    spread_weights(model)
    model.save_pretrained(tmp_path / "bert")
    write_words(tmp_path / "bert")
    return tmp_path / "bert"


@pytest.fixture
def vit(tmp_path: Path) -> Path:
    torch.manual_seed(2)
    model = ViTModel(vit_config())
    spread_weights(model)
    model.save_pretrained(tmp_path / "vit")
    ViTImageProcessorPil(size={"height": 32, "width": 32}).save_pretrained(tmp_path / "vit")
    return tmp_path / "vit"


def vit_config() -> ViTConfig:
    return ViTConfig(
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        image_size=32,
        patch_size=8,
    )


def unit(rows: np.ndarray) -> np.ndarray:
    out: np.ndarray = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return out


def fails(action: Callable[[], object], *parts: str) -> None:
    with pytest.raises(ModelError) as caught:
        action()
    assert "\n" not in str(caught.value)
    for part in parts:
        assert part in str(caught.value)


@torch.no_grad()
def test_text_features_are_the_mean_over_the_texts_own_tokens(bert: Path) -> None:
    mentor = HuggingFaceTextMentor(bert, batch_size=2)
    model = BertModel.from_pretrained(bert).eval()
    features = mentor.features(TEXTS)
    assert features.dtype == np.float32
    assert features.shape == (len(TEXTS), mentor.dim)
    # One text at a time there is no padding, so a plain mean is the answer.
    for row, text in zip(features, TEXTS, strict=True):
        words = [WORDS.index(word) for word in text.split()]
        ids = [WORDS.index("[CLS]"), *words[:30], WORDS.index("[SEP]")]
        hidden = model(input_ids=torch.tensor([ids])).last_hidden_state[0]
        np.testing.assert_allclose(row, unit(hidden.mean(0, keepdim=True).numpy())[0], atol=1e-5)


def test_class_token_pooling_differs_and_has_its_own_fingerprint(bert: Path) -> None:
    mean, first = HuggingFaceTextMentor(bert), HuggingFaceTextMentor(bert, pooling="cls")
    assert mean.fingerprint != first.fingerprint
    assert np.abs(mean.features(TEXTS) - first.features(TEXTS)).max() > 1e-3


def test_models_that_spend_positions_on_padding_take_long_texts(tmp_path: Path) -> None:
    torch.manual_seed(1)
    config = MPNetConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=20,
        pad_token_id=1,
    )
    MPNetModel(config).save_pretrained(tmp_path)
    write_words(tmp_path)
    features = HuggingFaceTextMentor(tmp_path).features(TEXTS)
    np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1, atol=1e-5)


def test_no_texts_give_no_rows(bert: Path) -> None:
    mentor = HuggingFaceTextMentor(bert)
    assert mentor.features([]).shape == (0, mentor.dim)


def test_mentors_are_frozen(bert: Path, vit: Path) -> None:
    for mentor in (HuggingFaceTextMentor(bert), HuggingFaceImageMentor(vit)):
        network = mentor._model
        assert not network.training
        assert not any(parameter.requires_grad for parameter in network.parameters())


def test_the_fingerprint_follows_the_weights_and_not_the_folder(bert: Path, tmp_path: Path) -> None:
    fingerprint = HuggingFaceTextMentor(bert).fingerprint
    moved = bert.rename(tmp_path / "moved")
    assert HuggingFaceTextMentor(moved).fingerprint == fingerprint
    weights = load_file(moved / "model.safetensors")
    weights["encoder.layer.1.output.dense.bias"][0] += 1e-4
    save_file(weights, moved / "model.safetensors", metadata={"format": "pt"})
    assert HuggingFaceTextMentor(moved).fingerprint != fingerprint


def test_a_text_folder_without_vocabulary_or_weights_is_refused(bert: Path) -> None:
    (bert / "vocab.txt").rename(bert / "kept.txt")
    fails(lambda: HuggingFaceTextMentor(bert), str(bert), "tokenizer")
    (bert / "kept.txt").rename(bert / "vocab.txt")
    weights = load_file(bert / "model.safetensors")
    del weights["encoder.layer.1.output.dense.bias"]
    save_file(weights, bert / "model.safetensors", metadata={"format": "pt"})
    fails(lambda: HuggingFaceTextMentor(bert), "encoder.layer.1.output.dense.bias")
    fails(lambda: HuggingFaceTextMentor(bert, pooling="max"), "'max'", "mean, cls")  # type: ignore[arg-type]


@torch.no_grad()
@pytest.mark.parametrize("pooling", ["auto", "pooled", "cls", "mean"])
def test_image_features_equal_the_model_run_by_hand(vit: Path, pooling: str) -> None:
    mentor = HuggingFaceImageMentor(vit, pooling=pooling, batch_size=3)  # type: ignore[arg-type]
    model = ViTModel.from_pretrained(vit).eval()
    processor = ViTImageProcessorPil.from_pretrained(vit)
    pixels = processor(images=[image.convert("RGB") for image in IMAGES], return_tensors="pt")
    output = model(**pixels)
    hidden = output.last_hidden_state
    expected = {"cls": hidden[:, 0], "mean": hidden.mean(1)}.get(pooling, output.pooler_output)
    np.testing.assert_allclose(mentor.features(IMAGES), unit(expected.numpy()), atol=1e-5)


@torch.no_grad()
def test_an_untrained_pooler_is_not_used(vit: Path) -> None:
    ViTModel.from_pretrained(vit, add_pooling_layer=False).save_pretrained(vit)
    assert not any("pooler" in key for key in load_file(vit / "model.safetensors"))
    auto, first = HuggingFaceImageMentor(vit), HuggingFaceImageMentor(vit, pooling="cls")
    assert np.array_equal(auto.features(IMAGES), first.features(IMAGES))
    assert HuggingFaceImageMentor(vit).fingerprint == auto.fingerprint
    fails(lambda: HuggingFaceImageMentor(vit, pooling="pooled"), "pooler", "cls or mean")


@torch.no_grad()
def test_convolutional_models_are_pooled_over_places(tmp_path: Path) -> None:
    torch.manual_seed(4)
    config = ResNetConfig(embedding_size=8, hidden_sizes=[8, 12], depths=[1, 1], layer_type="basic")
    model = ResNetModel(config).eval()
    model.save_pretrained(tmp_path)
    ConvNextImageProcessorPil(size={"shortest_edge": 32}).save_pretrained(tmp_path)
    pixels = ConvNextImageProcessorPil.from_pretrained(tmp_path)(images=IMAGES[:2], return_tensors="pt")
    expected = model(**pixels).last_hidden_state.mean(dim=(2, 3)).numpy()
    for pooling in ("auto", "mean"):
        mentor = HuggingFaceImageMentor(tmp_path, pooling=pooling)
        assert mentor.dim == 12
        np.testing.assert_allclose(mentor.features(IMAGES[:2]), unit(expected), atol=1e-5)


@torch.no_grad()
def test_a_clip_folder_serves_as_image_mentor(tmp_path: Path) -> None:
    model = save_tiny_clip(tmp_path)
    processor = CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32})
    processor.save_pretrained(tmp_path)
    expected = model.get_image_features(**processor(images=IMAGES[:2], return_tensors="pt")).pooler_output.numpy()
    np.testing.assert_allclose(HuggingFaceImageMentor(tmp_path).features(IMAGES[:2]), unit(expected), atol=1e-5)


def test_an_image_folder_that_does_not_say_how_to_prepare_is_refused(vit: Path) -> None:
    settings = vit / "preprocessor_config.json"
    settings.write_text(json.dumps({"image_processor_type": "UnheardOfImageProcessor"}))
    fails(lambda: HuggingFaceImageMentor(vit), "UnheardOfImageProcessor")
    settings.unlink()
    fails(lambda: HuggingFaceImageMentor(vit), "preprocessor_config.json")


def test_old_and_fast_names_of_processors_are_known(vit: Path) -> None:
    settings = vit / "preprocessor_config.json"
    content = json.loads(settings.read_text())
    expected = HuggingFaceImageMentor(vit).features(IMAGES)
    for key, kind in (
        ("feature_extractor_type", "ViTFeatureExtractor"),
        ("image_processor_type", "ViTImageProcessorFast"),
    ):
        renamed = {name: value for name, value in content.items() if name != "image_processor_type"} | {key: kind}
        settings.write_text(json.dumps(renamed))
        assert np.array_equal(HuggingFaceImageMentor(vit).features(IMAGES), expected)


def as_tensor(image: Image.Image) -> torch.Tensor:
    return torch.from_numpy(np.array(image.convert("RGB").resize((8, 8)))).float().flatten()


def test_any_torch_backbone_serves() -> None:
    torch.manual_seed(3)
    network = nn.Sequential(nn.Linear(192, 5), nn.Dropout(0.5))
    mentor = TorchImageMentor(network, as_tensor, name="linear at 8 px", batch_size=3)
    weight, bias = (parameter.detach().numpy() for parameter in network.parameters())
    expected = unit(np.stack([as_tensor(image).numpy() for image in IMAGES]) @ weight.T + bias)
    np.testing.assert_allclose(mentor.features(IMAGES), expected, atol=1e-5)
    assert mentor.dim == 5
    assert TorchImageMentor(network, as_tensor, name="linear at 8 px").fingerprint == mentor.fingerprint
    assert TorchImageMentor(network, as_tensor, name="another").fingerprint != mentor.fingerprint
    with torch.no_grad():
        next(network.parameters()).add_(1)
    assert TorchImageMentor(network, as_tensor, name="linear at 8 px").fingerprint != mentor.fingerprint
    halves = TorchImageMentor(lambda batch: batch[:, :7], as_tensor, name="seven")
    assert halves.features(IMAGES).shape == (4, 7)


def unicom_state(generator: torch.Generator) -> dict[str, torch.Tensor]:
    """Weights of a two-layer Unicom ViT, width 128, patches of 8 in 32 pixels, 6 features."""
    shapes: dict[str, tuple[int, ...]] = {
        "patch_embed.proj.weight": (128, 3, 8, 8),
        "patch_embed.proj.bias": (128,),
        "pos_embed": (1, 16, 128),
        "norm.weight": (128,),
        "norm.bias": (128,),
        "feature.0.weight": (128, 128 * 16),
        "feature.2.weight": (6, 128),
    }
    for block in ("blocks.0.", "blocks.1."):
        for norm in ("norm1", "norm2"):
            shapes |= {f"{block}{norm}.weight": (128,), f"{block}{norm}.bias": (128,)}
        shapes |= {
            f"{block}attn.qkv.weight": (384, 128),
            f"{block}attn.proj.weight": (128, 128),
            f"{block}attn.proj.bias": (128,),
            f"{block}mlp.fc1.weight": (512, 128),
            f"{block}mlp.fc1.bias": (512,),
            f"{block}mlp.fc2.weight": (128, 512),
            f"{block}mlp.fc2.bias": (128,),
        }
    state = {key: torch.randn(shape, generator=generator) * 0.1 for key, shape in shapes.items()}
    for layer, size in (("feature.1", 128), ("feature.3", 6)):
        for part in ("weight", "bias", "running_mean"):
            state[f"{layer}.{part}"] = torch.randn(size, generator=generator)
        state[f"{layer}.running_var"] = torch.rand(size, generator=generator) + 0.1
        state[f"{layer}.num_batches_tracked"] = torch.tensor(5)
    return state


def unicom_by_hand(w: dict[str, torch.Tensor], image: torch.Tensor) -> torch.Tensor:
    """One image (3, 32, 32) through the published architecture, in float64, head by head."""
    w = {key: value.double() for key, value in w.items()}

    def norm(x: torch.Tensor, name: str) -> torch.Tensor:
        centred = x - x.mean(-1, keepdim=True)
        return (
            centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt() * w[f"{name}.weight"] + w[f"{name}.bias"]
        )

    def batch_norm(x: torch.Tensor, name: str) -> torch.Tensor:
        scaled = (x - w[f"{name}.running_mean"]) / (w[f"{name}.running_var"] + 2e-5).sqrt()
        return scaled * w[f"{name}.weight"] + w[f"{name}.bias"]

    places = [(row, column) for row in range(0, 32, 8) for column in range(0, 32, 8)]
    patches = torch.stack([image[:, row : row + 8, column : column + 8].flatten() for row, column in places])
    x = patches @ w["patch_embed.proj.weight"].flatten(1).T + w["patch_embed.proj.bias"] + w["pos_embed"][0]
    for block in ("blocks.0.", "blocks.1."):
        query, key, value = (norm(x, f"{block}norm1") @ w[f"{block}attn.qkv.weight"].T).chunk(3, dim=1)
        heads = []
        for head in (slice(0, 64), slice(64, 128)):
            heads.append((query[:, head] @ key[:, head].T / 8).softmax(dim=1) @ value[:, head])
        x = x + torch.cat(heads, dim=1) @ w[f"{block}attn.proj.weight"].T + w[f"{block}attn.proj.bias"]
        hidden = (norm(x, f"{block}norm2") @ w[f"{block}mlp.fc1.weight"].T + w[f"{block}mlp.fc1.bias"]).clamp(0, 6)
        x = x + hidden @ w[f"{block}mlp.fc2.weight"].T + w[f"{block}mlp.fc2.bias"]
    first = batch_norm(w["feature.0.weight"] @ norm(x, "norm").flatten(), "feature.1")
    return batch_norm(w["feature.2.weight"] @ first, "feature.3")


@pytest.mark.parametrize("wrapped", [False, True])
def test_unicom_equals_its_architecture_written_out(tmp_path: Path, wrapped: bool) -> None:
    state = unicom_state(torch.Generator().manual_seed(6))
    torch.save({f"module.{key}": value for key, value in state.items()} if wrapped else state, tmp_path / "unicom.pt")
    mentor = TorchImageMentor.unicom(tmp_path / "unicom.pt", batch_size=2)
    images = [random_image(32, 32, seed) for seed in range(3)]
    mean, std = (torch.tensor(values).double()[:, None, None] for values in (CLIP_MEAN, CLIP_STD))
    rows = []
    for image in images:
        pixels = torch.from_numpy(np.array(image)).permute(2, 0, 1).double() / 255
        rows.append(unicom_by_hand(state, (pixels - mean) / std).numpy())
    assert mentor.dim == 6
    np.testing.assert_allclose(mentor.features(images), unit(np.stack(rows)), atol=1e-4)


def test_unicom_weights_that_do_not_fit_are_named(tmp_path: Path) -> None:
    state = unicom_state(torch.Generator().manual_seed(6))
    path = tmp_path / "unicom.pt"
    cases: list[tuple[dict[str, torch.Tensor], str]] = [
        ({key: value for key, value in state.items() if key != "feature.1.bias"}, "missing: feature.1.bias"),
        (state | {"cls_token": torch.zeros(1)}, "unknown: cls_token"),
        (state | {"norm.weight": torch.zeros(3)}, "norm.weight (3,) instead of (128,)"),
        ({key: value for key, value in state.items() if key != "pos_embed"}, "pos_embed"),
    ]
    for changed, message in cases:
        torch.save(changed, path)
        fails(lambda: TorchImageMentor.unicom(path), message)
