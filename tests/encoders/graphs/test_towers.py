"""Every tower as a graph gives what torch gives, whatever its size and statistics; wrong weights are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from transformers import CLIPModel

from evidex.encoders.clip.encoder import ClipEncoder
from evidex.encoders.clip.tokenizer import ClipTokenizer
from evidex.encoders.graphs.convolutions import folded
from evidex.encoders.onnx_encoder import OnnxEncoder
from evidex.encoders.protocol import DualEncoder
from evidex.encoders.text_towers import TextShape
from evidex.encoders.towers import TowerEncoder
from evidex.encoders.wordpiece import build_vocabulary
from tests.encoders.clip.tiny_clip import spread_weights, tiny_architecture, tiny_vocabulary

VOCABULARY = build_vocabulary(["a river .", "many planes .", "a river ."])
TEXTS = ["many planes", "", "a river of planes " * 40, "日本 %$", "a"]
CONVOLUTIONAL = [
    ("convnet", None, 64),
    ("convnet", {"widths": [8, 16]}, 33),
    ("resnet50", {"pooling": "mean_max"}, 70),
    ("efficientnet_lite0", None, 75),
    ("efficientnet_lite1", {"pooling": "mean_max"}, 64),
    ("efficientnet_lite2", None, 41),
]
TRANSFORMERS = [("clip_vit_b16", {"pooling": pooling, "image_size": 32}, 32) for pooling in ("cls_mean", "projected")]


def _towers(name: str, options: dict[str, Any] | None, size: int) -> TowerEncoder:
    torch.manual_seed(0)
    shape = {"vocabulary": len(VOCABULARY), "hidden": 24, "layers": 2, "heads": 3, "intermediate": 40, "positions": 64}
    spec = {"kind": "towers", "image_tower": name, "image_options": options, "image_size": size, "dim": 16}
    encoder = TowerEncoder({**spec, "text_shape": shape, "vocabulary": VOCABULARY}).eval()
    for module in encoder.modules():
        if isinstance(module, nn.BatchNorm2d):
            assert module.running_mean is not None
            assert module.running_var is not None
            module.running_mean.uniform_(-0.3, 0.3)
            module.running_var.uniform_(0.5, 2)
            module.weight.data.uniform_(0.5, 1.2)
            module.bias.data.uniform_(-0.5, 0.5)
        elif isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight)  # else nothing of the picture is left after many layers
        elif isinstance(module, (nn.Linear, nn.LayerNorm)):
            module.bias.data.uniform_(-0.3, 0.3) if module.bias is not None else None
    return encoder


def _clip(activation: str) -> ClipEncoder:
    architecture = tiny_architecture(activation=activation)
    clip = CLIPModel(architecture.config()).eval()
    torch.manual_seed(3)
    spread_weights(clip)
    return ClipEncoder(architecture, ClipTokenizer(*tiny_vocabulary(), architecture.context), clip).eval()


def nasty_pictures(size: int) -> np.ndarray:
    """Noise, black, white, grey, one colour, stripes, a gradient, a single bright pixel and a checkerboard."""
    pictures = np.zeros((10, 3, size, size), dtype=np.uint8)
    pictures[0:2] = np.random.default_rng(3).integers(0, 256, (2, 3, size, size))
    pictures[3] = 255
    pictures[4] = 127
    pictures[5, 1] = 255
    pictures[6, :, ::2] = 255
    pictures[7] = np.linspace(0, 255, size).astype(np.uint8)
    pictures[8, :, size // 2, size // 2] = 255
    pictures[9] = 255 * (np.add.outer(np.arange(size), np.arange(size)) // 16 % 2)
    return pictures


def _alike(encoder: DualEncoder, spread: float) -> None:
    onnx = OnnxEncoder(encoder.spec(), encoder.weights())
    pixels = nasty_pictures(encoder.image_size)
    expected = encoder.embed_pixels(pixels)
    assert np.abs(expected[0] - expected[2]).max() > spread, "the pictures are told apart at all"
    np.testing.assert_allclose(onnx.embed_pixels(pixels), expected, atol=1e-5, rtol=0)
    # One by one, as torch's rows depend on the padding of their batch.
    expected = np.concatenate([encoder.embed_texts([text]) for text in TEXTS])
    np.testing.assert_allclose(onnx.embed_texts(TEXTS), expected, atol=1e-5, rtol=0)
    assert [onnx.reads_all(text) for text in TEXTS] == [encoder.reads_all(text) for text in TEXTS]
    assert (onnx.dim, onnx.image_size) == (encoder.dim, encoder.image_size)


@pytest.mark.parametrize(("name", "options", "size"), CONVOLUTIONAL)
def test_convolutional_towers(name: str, options: dict[str, Any] | None, size: int) -> None:
    _alike(_towers(name, options, size), 1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options", "size"), TRANSFORMERS)
def test_clips_own_image_tower(name: str, options: dict[str, Any], size: int) -> None:
    _alike(_towers(name, options, size), 1e-4)


@pytest.mark.parametrize("activation", ["quick_gelu", "gelu"])
def test_clip(activation: str) -> None:
    _alike(_clip(activation), 1e-4)


def test_weights_of_half_precision_count_as_what_they_say() -> None:
    encoder = _towers("convnet", {"widths": [8, 16]}, 32)
    half = {name: v.astype(np.float16) if v.dtype.kind == "f" else v for name, v in encoder.weights().items()}
    full = {name: v.astype(np.float32) if v.dtype == np.float16 else v for name, v in half.items()}
    first, second = (OnnxEncoder(encoder.spec(), weights) for weights in (half, full))
    np.testing.assert_array_equal(first.embed_texts(TEXTS), second.embed_texts(TEXTS))
    np.testing.assert_array_equal(first.embed_pixels(nasty_pictures(32)), second.embed_pixels(nasty_pictures(32)))


def test_folding_changes_nothing_however_odd_the_statistics() -> None:
    rng = np.random.default_rng(1)
    weight = rng.standard_normal((12, 3, 3, 3)).astype(np.float32)
    variance = (10.0 ** rng.integers(-9, 2, 12)).astype(np.float32)
    variance[::5] = 0
    scale, shift, mean = (rng.standard_normal(12).astype(np.float32) for _ in range(3))
    scale[::4] = 0
    pixels = torch.from_numpy(rng.standard_normal((2, 3, 9, 9)))
    centre, spread, factor, offset = (torch.from_numpy(each).double() for each in (mean, variance, scale, shift))
    inner = nn.functional.conv2d(pixels, torch.from_numpy(weight).double())
    expected = nn.functional.batch_norm(inner, centre, spread, factor, offset, eps=1e-3).numpy()
    new, bias = (torch.from_numpy(each).double() for each in folded(weight, (scale, shift, mean, variance), 1e-3))
    found = nn.functional.conv2d(pixels, new, bias).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("name", ["image_head.weight", "text_tower.embeddings.word_embeddings.weight"])
def test_weights_that_lack_one_or_have_another_shape_are_refused(name: str) -> None:
    encoder = _towers("convnet", {"widths": [8]}, 32)
    weights = encoder.weights()
    for wrong in ({**weights, name: weights[name][:-1]}, {key: v for key, v in weights.items() if key != name}):
        with pytest.raises(ValueError, match=name):
            OnnxEncoder(encoder.spec(), wrong)
    with pytest.raises(ValueError, match="one_more"):
        OnnxEncoder(encoder.spec(), {**weights, "one_more": np.zeros(1)})


def test_sizes_that_cannot_be_are_refused() -> None:
    encoder = _towers("convnet", {"widths": [8]}, 32)
    spec = encoder.spec()
    with pytest.raises(ValueError, match="7 heads"):
        OnnxEncoder({**spec, "text_shape": {**spec["text_shape"], "heads": 7}}, encoder.weights())
    assert TextShape(**spec["text_shape"]).heads == 3


@pytest.mark.slow
def test_rounded_products_change_a_row_by_little() -> None:
    encoder = _towers("clip_vit_b16", {"pooling": "cls_mean", "image_size": 32}, 32)
    spec, weights, pixels = encoder.spec(), encoder.weights(), nasty_pictures(32)
    plain, rounded = (OnnxEncoder(spec, weights, rounded=choice).embed_pixels(pixels) for choice in (False, True))
    assert np.abs(rounded - plain).max() > 1e-6, "they are rounded at all"
    assert (plain * rounded).sum(1).min() > 0.99
    np.testing.assert_allclose(np.linalg.norm(rounded, axis=1), 1, atol=1e-5)


def test_rounding_leaves_small_towers_and_texts_alone() -> None:
    encoder = _towers("convnet", {"widths": [8, 16]}, 32)
    plain, rounded = (OnnxEncoder(encoder.spec(), encoder.weights(), rounded=choice) for choice in (False, True))
    np.testing.assert_array_equal(plain.embed_pixels(nasty_pictures(32)), rounded.embed_pixels(nasty_pictures(32)))
    np.testing.assert_array_equal(plain.embed_texts(TEXTS), rounded.embed_texts(TEXTS))
