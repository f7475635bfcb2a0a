from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from evidex.encoders.clip.architecture import ClipArchitecture
from evidex.encoders.clip.encoder import ClipEncoder
from evidex.encoders.clip.open_clip_weights import Activation, infer_architecture, map_state_dict
from evidex.encoders.clip_file import load_clip_file
from evidex.encoders.model import load_model
from evidex.encoders.preprocess import CLIP_MEAN, CLIP_STD
from evidex.errors import ModelError
from tests.encoders.clip.tiny_clip import spread_weights, tiny_architecture, write_vocabulary

TEXTS = ["many planes are parked", "", "ships", "river " * 90]


class QuickGelu(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.sigmoid(1.702 * x)


class PlainBlock(nn.Module):
    def __init__(self, width: int, hidden: int, heads: int, activation: str) -> None:
        super().__init__()
        self.attn = nn.MultiheadAttention(width, heads, batch_first=True)
        self.ln_1 = nn.LayerNorm(width)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential()
        self.mlp.add_module("c_fc", nn.Linear(width, hidden))
        self.mlp.add_module("act", QuickGelu() if activation == "quick_gelu" else nn.GELU())
        self.mlp.add_module("c_proj", nn.Linear(hidden, width))

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        y = self.ln_1(x)
        x = x + self.attn(y, y, y, need_weights=False, attn_mask=mask)[0]
        out: torch.Tensor = x + self.mlp(self.ln_2(x))
        return out


class PlainTransformer(nn.Module):
    def __init__(self, width: int, hidden: int, layers: int, heads: int, activation: str) -> None:
        super().__init__()
        self.resblocks = nn.ModuleList(PlainBlock(width, hidden, heads, activation) for _ in range(layers))

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        for block in self.resblocks:
            x = block(x, mask)
        return x


class PlainVisual(nn.Module):
    def __init__(self, a: ClipArchitecture) -> None:
        super().__init__()
        width, positions = a.image_width, (a.image_size // a.patch_size) ** 2 + 1
        self.conv1 = nn.Conv2d(3, width, a.patch_size, a.patch_size, bias=False)
        self.class_embedding = nn.Parameter(torch.randn(width))
        self.positional_embedding = nn.Parameter(torch.randn(positions, width))
        self.ln_pre = nn.LayerNorm(width)
        self.transformer = PlainTransformer(width, a.image_hidden, a.image_layers, a.image_heads, a.activation)
        self.ln_post = nn.LayerNorm(width)
        self.proj = nn.Parameter(torch.randn(width, a.dim))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        patches = self.conv1(images).flatten(2).permute(0, 2, 1)
        first = self.class_embedding.expand(len(images), 1, -1)
        x = self.ln_pre(torch.cat([first, patches], dim=1) + self.positional_embedding)
        out: torch.Tensor = self.ln_post(self.transformer(x)[:, 0]) @ self.proj
        return out


class PlainClip(nn.Module):
    """CLIP in OpenAI's and open_clip's naming, in plain torch: the oracle."""

    def __init__(self, a: ClipArchitecture) -> None:
        super().__init__()
        self.context = a.context
        self.visual = PlainVisual(a)
        self.token_embedding = nn.Embedding(a.vocabulary, a.text_width)
        self.positional_embedding = nn.Parameter(torch.randn(a.context, a.text_width))
        self.transformer = PlainTransformer(a.text_width, a.text_hidden, a.text_layers, a.text_heads, a.activation)
        self.ln_final = nn.LayerNorm(a.text_width)
        self.text_projection = nn.Parameter(torch.randn(a.text_width, a.dim))
        self.logit_scale = nn.Parameter(torch.tensor(1.5))
        spread_weights(self)

    def encode_text(self, ids: torch.Tensor) -> torch.Tensor:
        """``ids`` are padded with zeros to the full context, as open_clip does."""
        mask = torch.full((self.context, self.context), float("-inf")).triu(1)
        x = self.ln_final(self.transformer(self.token_embedding(ids) + self.positional_embedding, mask))
        out: torch.Tensor = x[torch.arange(len(ids)), ids.argmax(dim=-1)] @ self.text_projection
        return out


def plain_clip(activation: str) -> tuple[PlainClip, ClipArchitecture]:
    torch.manual_seed(7)
    architecture = tiny_architecture(activation=activation)
    return PlainClip(architecture).eval(), architecture


def saved(state: dict[str, torch.Tensor], folder: Path, name: str = "weights.pt") -> Path:
    write_vocabulary(folder)
    path = folder / name
    if path.suffix == ".safetensors":
        save_file(state, path)
    else:
        torch.save(state, path)
    return path


def padded_with_zeros(encoder: ClipEncoder, texts: list[str]) -> torch.Tensor:
    rows = torch.zeros(len(texts), encoder.architecture.context, dtype=torch.int64)
    for row, text in zip(rows, texts, strict=True):
        ids = encoder.tokenize([text])["input_ids"][0]
        row[: len(ids)] = ids
    return rows


@pytest.mark.parametrize("activation", ["quick_gelu", "gelu"])
@torch.no_grad()
def test_outputs_equal_an_independent_forward_pass(activation: Activation, tmp_path: Path) -> None:
    oracle, architecture = plain_clip(activation)
    path = saved(oracle.state_dict(), tmp_path)
    encoder = ClipEncoder.from_open_clip(path, tokenizer=tmp_path, activation=activation).eval()
    assert encoder.architecture == architecture
    pixels = torch.randint(0, 256, (6, 3, 32, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(2))
    mean, std = (torch.tensor(values)[:, None, None] for values in (CLIP_MEAN, CLIP_STD))
    images = oracle.visual((pixels.float() / 255 - mean) / std)
    texts = oracle.encode_text(padded_with_zeros(encoder, TEXTS))
    expected_images, expected_texts = (rows / rows.norm(dim=1, keepdim=True) for rows in (images, texts))
    # Rows far apart: agreement within the tolerance says something.
    assert torch.pdist(expected_images).min() > 1e-3
    assert torch.pdist(expected_texts).min() > 1e-3
    torch.testing.assert_close(encoder.image_features(pixels), expected_images, atol=1e-5, rtol=0)
    torch.testing.assert_close(encoder.text_features(encoder.tokenize(TEXTS)), expected_texts, atol=1e-5, rtol=0)
    assert encoder.clip.logit_scale.item() == oracle.logit_scale.item()


@torch.no_grad()
def test_the_activation_matters(tmp_path: Path) -> None:
    oracle, _ = plain_clip("quick_gelu")
    path = saved(oracle.state_dict(), tmp_path)
    quick, plain = (
        ClipEncoder.from_open_clip(path, tokenizer=tmp_path, activation=activation).eval()
        for activation in ("quick_gelu", "gelu")
    )
    tokens = quick.tokenize(TEXTS)
    assert (quick.text_features(tokens) - plain.text_features(tokens)).abs().max() > 1e-4


def test_every_weight_arrives_somewhere() -> None:
    oracle, architecture = plain_clip("gelu")
    mapped = map_state_dict(oracle.state_dict(), architecture)
    given = sorted(value for tensor in oracle.state_dict().values() for value in tensor.flatten().tolist())
    assert sorted(value for tensor in mapped.values() for value in tensor.flatten().tolist()) == given


Change = Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]


@pytest.mark.parametrize(
    "change",
    [
        lambda state: {f"module.{key}": value for key, value in state.items()},
        lambda state: state | {"attn_mask": torch.zeros(77, 77)},
        lambda state: state | {"input_resolution": torch.tensor(32), "context_length": torch.tensor(77)},
        lambda state: {"epoch": 3, "state_dict": state},
        lambda state: {"state_dict": {f"module.{key}": value for key, value in state.items()}},
    ],
)
def test_known_wrappings_are_opened(change: Change, tmp_path: Path) -> None:
    oracle, _ = plain_clip("gelu")
    path = saved(change(dict(oracle.state_dict())), tmp_path)
    encoder = ClipEncoder.from_open_clip(path, tokenizer=tmp_path, activation="gelu")
    assert torch.equal(encoder.clip.text_projection.weight, oracle.text_projection.T)


def test_safetensors_and_half_precision_are_read(tmp_path: Path) -> None:
    oracle, _ = plain_clip("gelu")
    half = {key: value.half() for key, value in oracle.state_dict().items()}
    path = saved(half, tmp_path, "weights.safetensors")
    encoder = ClipEncoder.from_open_clip(path, tokenizer=tmp_path, activation="gelu")
    assert {parameter.dtype for parameter in encoder.parameters()} == {torch.float32}
    torch.testing.assert_close(encoder.clip.visual_projection.weight, oracle.visual.proj.T, atol=1e-3, rtol=1e-3)


def fails(state: dict[str, torch.Tensor], *parts: str, activation: str = "gelu") -> None:
    with pytest.raises(ModelError) as caught:
        map_state_dict(state, infer_architecture(state, activation=activation))  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    for part in parts:
        assert part in str(caught.value)


def test_any_single_missing_key_is_named() -> None:
    oracle, _ = plain_clip("gelu")
    for key in oracle.state_dict():
        state = dict(oracle.state_dict())
        del state[key]
        fails(state, key)


def test_any_single_misshaped_key_is_named() -> None:
    oracle, _ = plain_clip("gelu")
    # These define a size themselves: a change makes another key wrong instead.
    defining = {
        "visual.conv1.weight": "visual.class_embedding",
        "visual.proj": "text_projection",
        "visual.transformer.resblocks.0.mlp.c_fc.weight": "visual.transformer.resblocks.0.mlp.c_fc.bias",
        "transformer.resblocks.0.mlp.c_fc.weight": "transformer.resblocks.0.mlp.c_fc.bias",
    }
    for key, tensor in oracle.state_dict().items():
        state = dict(oracle.state_dict())
        state[key] = torch.cat([tensor, tensor]) if tensor.dim() else tensor.reshape(1)
        if key == "visual.proj":
            state[key] = torch.cat([tensor, tensor], dim=1)
        if key in ("token_embedding.weight", "positional_embedding"):
            state[key] = tensor[:, :-1]
        fails(state, defining.get(key, key) if key != "token_embedding.weight" else "63")


def test_unknown_keys_are_named() -> None:
    oracle, _ = plain_clip("gelu")
    fails(dict(oracle.state_dict()) | {"logit_bias": torch.zeros(())}, "unknown: logit_bias")
    extra = {f"visual.extra.{number}": torch.zeros(1) for number in range(9)}
    fails(dict(oracle.state_dict()) | extra, "visual.extra.0", "and 5 more")


def test_a_hole_among_the_layers_is_named() -> None:
    oracle, _ = plain_clip("gelu")
    state = {key: value for key, value in oracle.state_dict().items() if "visual.transformer.resblocks.1." not in key}
    fails(state, "visual.transformer.resblocks.1.attn.in_proj_weight")


def test_a_resnet_and_an_unknown_activation_are_refused() -> None:
    oracle, _ = plain_clip("gelu")
    fails(dict(oracle.state_dict()) | {"visual.layer1.0.conv1.weight": torch.zeros(1)}, "ResNet")
    fails(dict(oracle.state_dict()), "'relu'", "quick_gelu", activation="relu")


@pytest.mark.parametrize("name", ["weights.pt", "weights.safetensors"])
def test_unreadable_files_are_one_clear_line(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    for content in (None, b"", b"no weights at all"):
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(ModelError, match=name) as caught:
            ClipEncoder.from_open_clip(path, tokenizer=tmp_path, activation="gelu")
        assert "\n" not in str(caught.value)


def test_pickled_objects_are_never_run(tmp_path: Path) -> None:
    path, witness = tmp_path / "evil.pt", tmp_path / "witness"

    class Evil:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (Path.touch, (str(witness),))

    torch.save({"weights": Evil()}, path)
    with pytest.raises(ModelError, match=r"evil\.pt"):
        ClipEncoder.from_open_clip(path, tokenizer=tmp_path, activation="gelu")
    assert not witness.exists()


def test_a_checkpoint_with_other_things_than_tensors_is_refused(tmp_path: Path) -> None:
    torch.save({"epoch": 3, "lr": 0.1}, tmp_path / "run.pt")
    with pytest.raises(ModelError, match="'epoch'"):
        ClipEncoder.from_open_clip(tmp_path / "run.pt", tokenizer=tmp_path, activation="gelu")


def test_a_published_file_is_a_model_to_measure(tmp_path: Path) -> None:
    """RemoteCLIP's layout: a bare state dict, with the tokenizer of another CLIP and the plain activation."""
    oracle, _ = plain_clip("gelu")
    path = saved(oracle.state_dict(), tmp_path, "RemoteCLIP-ViT-B-32.pt")
    with pytest.raises(ModelError, match="--tokenizer"):
        load_model(path)
    model = load_clip_file(path, device="cpu", tokenizer=str(tmp_path), activation="gelu")
    with pytest.raises(ModelError, match="activation"):
        load_clip_file(path, tokenizer=str(tmp_path), activation="relu")
    expected = ClipEncoder.from_open_clip(path, tokenizer=tmp_path, activation="gelu").eval()
    with torch.no_grad():
        rows = expected.text_features(expected.tokenize(TEXTS[:1]))
    torch.testing.assert_close(torch.from_numpy(model.encode_texts(TEXTS[:1])), rows)
    assert model.temperature == pytest.approx(float(torch.exp(-oracle.logit_scale.detach())))
