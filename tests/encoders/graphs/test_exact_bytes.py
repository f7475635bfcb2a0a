"""A text tower in bytes gives what its weights, multiplied out, give in float32, however large its numbers become."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from evidex.encoders import onnx_encoder, runtime
from evidex.encoders.graphs import exact_bytes
from evidex.encoders.graphs.graph import Graph
from evidex.encoders.onnx_encoder import OnnxEncoder
from evidex.encoders.rounding import RoundedTensor, with_text_in_bytes
from evidex.encoders.runtime import Session
from evidex.encoders.torch_engine import torch_encoder
from evidex.encoders.towers import TowerEncoder
from evidex.encoders.wordpiece import build_vocabulary
from evidex.errors import ModelError

VOCABULARY = build_vocabulary(["a river .", "many planes .", "a river ."])
TEXTS = ["many planes", "", "a river of planes " * 40, "日本 %$", "a"]

needs_exact_bytes = pytest.mark.skipif(not runtime.exact_in_bytes(), reason="this processor cuts off sums of bytes")


@needs_exact_bytes
@pytest.mark.parametrize(("inputs", "outputs"), [(1, 1), (24, 40), (384, 7), (1536, 384)])
@pytest.mark.parametrize("most", [1e-20, 0.3, 1.0, 5000.0])
def test_a_product_is_that_of_its_numbers(inputs: int, outputs: int, most: float) -> None:
    rng = np.random.default_rng(inputs)
    whole = rng.integers(-127, 128, (outputs, inputs), dtype=np.int8)
    whole[0] = 127
    scales = rng.uniform(1e-4, 1e-2, outputs).astype(np.float32)
    bias = rng.normal(size=outputs).astype(np.float32)
    values = most * rng.uniform(-1, 1, (13, 1, inputs)).astype(np.float32)
    values[:3, 0] = np.array([[most], [-most], [0]], np.float32)
    graph = Graph({"layer.weight": RoundedTensor(whole, scales), "layer.bias": bias})
    layer = exact_bytes._layer(graph, ["layer"], inputs, outputs)
    raised = exact_bytes._raised(graph, graph.input("values", "float32", "n", 1, inputs), lambda: most, "values")
    rows = graph.node("Reshape", exact_bytes._product(graph, raised, layer), graph.integers(-1, outputs))
    known = graph.constant(np.full((13, 1), most, np.float32))  # tells what rows were before they had unit length
    graph.output(graph.node("Concat", rows, known, axis=1), outputs + 1)
    found = Session(graph, "cpu")._session(1).run(["rows"], {"values": values})[0].astype(np.float64)
    found = (found / found[:, -1:] * most)[:, :outputs]
    matrix = whole.astype(np.float64) * scales[:, None]
    expected = values[:, 0].astype(np.float64) @ matrix.T + bias
    sizes = np.abs(values[:, 0]).astype(np.float64) @ np.abs(matrix).T + np.abs(
        bias
    )  # what float32 errs in proportion to
    floor = most * np.abs(matrix).sum(1)  # fixed point errs in proportion to the most that can be
    assert (np.abs(found - expected) <= 1e-6 * (sizes + floor)).all()


def _tower(seed: int, *, loud: bool = False) -> TowerEncoder:
    torch.manual_seed(seed)
    shape = {"vocabulary": len(VOCABULARY), "hidden": 24, "layers": 2, "heads": 3, "intermediate": 40, "positions": 64}
    spec = {"kind": "towers", "image_tower": "convnet", "image_options": {"widths": [8]}, "image_size": 32, "dim": 16}
    encoder = TowerEncoder({**spec, "text_shape": shape, "vocabulary": VOCABULARY}).eval()
    for module in encoder.text_tower.modules():
        if isinstance(module, (nn.Linear, nn.LayerNorm)):
            module.bias.data.uniform_(-0.3, 0.3)
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=0.2)
        if loud and isinstance(module, nn.LayerNorm):
            module.weight.data[3] = 20.0  # one channel far above all others, as trained transformers have
            module.bias.data[5] = -9.0
    return encoder


@needs_exact_bytes
@pytest.mark.parametrize("loud", [False, True])
def test_a_tower_in_bytes_gives_what_torch_gives(loud: bool) -> None:
    encoder = _tower(0, loud=loud)
    weights = with_text_in_bytes(encoder.weights())
    onnx, plain = OnnxEncoder(encoder.spec(), weights), torch_encoder(encoder.spec(), weights).eval()
    assert b"MatMulIntegerToFloat" in onnx._graphs.text.to_bytes()
    expected = np.concatenate([plain.embed_texts([text]) for text in TEXTS])
    np.testing.assert_allclose(onnx.embed_texts(TEXTS), expected, atol=1e-5, rtol=0)
    together = onnx._session("text")._session(1)  # any number at once
    ids = np.array([onnx.tokenizer.encode("many planes")], np.int64)
    ids = np.concatenate([ids, ids[:, ::-1]])
    alone = np.concatenate([together.run(["rows"], {"input_ids": each[None]})[0] for each in ids])
    np.testing.assert_allclose(together.run(["rows"], {"input_ids": ids})[0], alone, atol=1e-6)


@needs_exact_bytes
def test_bounds_that_are_no_numbers_are_refused() -> None:
    encoder, name = _tower(2), "text_tower.encoder.layer.0.output.LayerNorm.weight"
    weights = with_text_in_bytes(encoder.weights())
    broken = OnnxEncoder(encoder.spec(), {**weights, name: np.full(24, np.inf, np.float32)})
    with pytest.raises(ModelError, match="not all numbers"):
        broken.embed_texts(TEXTS)


def test_where_bytes_are_not_exact_the_tower_is_run_in_floats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_encoder, "exact_in_bytes", lambda: False)
    encoder = _tower(1)
    weights = with_text_in_bytes(encoder.weights())
    onnx, plain = OnnxEncoder(encoder.spec(), weights), torch_encoder(encoder.spec(), weights).eval()
    assert b"MatMulIntegerToFloat" not in onnx._graphs.text.to_bytes()
    expected = np.concatenate([plain.embed_texts([text]) for text in TEXTS])
    np.testing.assert_allclose(onnx.embed_texts(TEXTS), expected, atol=1e-5, rtol=0)


def test_a_processor_that_cuts_off_sums_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs of products in 16 bits, as processors without instructions for bytes add them."""
    graph, values, expected = exact_bytes.trial()
    weight = graph.rounded_weight("trial.weight")
    assert weight is not None
    fixed = (64 * values[:, 0] + exact_bytes._MIDDLE) * exact_bytes._PARTS[:, None, None]
    pairs = (
        ((fixed.astype(np.int64) % 256)[..., None, :] * weight.whole.astype(np.int64)).reshape(3, 7, 32, 32, 2).sum(-1)
    )
    cut = np.clip(pairs, -(2**15), 2**15 - 1).sum(-1) - 128 * weight.whole.astype(np.int64).sum(1)
    rows = (cut * exact_bytes._SHARES[:, None, None]).sum(0) * weight.scales / 64
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    assert np.abs(rows - expected).max() > 1e-3
    monkeypatch.setattr(runtime, "trial", lambda: (graph, values, rows.astype(np.float32)))
    assert not runtime.exact_in_bytes.__wrapped__()
