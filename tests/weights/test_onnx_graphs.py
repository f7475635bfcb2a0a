"""Weights out of exported graphs: names from the places of products, numbers from what was rounded."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from evidex.errors import ModelError
from evidex.weights.onnx_graphs import graph_weights, read_graph


def _model(nodes: list[object], initializers: list[TensorProto]) -> bytes:
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3])]
    outputs = [helper.make_tensor_value_info("embeds_quantized", TensorProto.INT32, [1, 5])]
    content: bytes = helper.make_model(
        helper.make_graph(nodes, "exported", inputs, outputs, initializers)
    ).SerializeToString()
    return content


def test_products_get_their_modules_names_and_their_precision_back() -> None:
    rng = np.random.default_rng(0)
    plain = rng.normal(size=(3, 4)).astype(np.float32)
    rounded = rng.normal(size=(4, 5)).astype(np.float32)
    scale = np.abs(rounded).max(0) / 100
    zero = rng.integers(-9, 9, 5).astype(np.int8)
    quantised = (np.rint(rounded / scale) + zero).astype(np.int8)
    bias = rng.normal(size=4).astype(np.float32)
    initializers = [
        numpy_helper.from_array(value, name)
        for name, value in {
            "layers.0.fc.bias": bias,
            "onnx::MatMul_7": plain,
            "onnx::MatMul_8_quantized": quantised,
            "onnx::MatMul_8_scale": scale.astype(np.float32),
            "onnx::MatMul_8_zero_point": zero,
        }.items()
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "onnx::MatMul_7"], ["/layers.0/fc/MatMul_output_0"]),
        helper.make_node("Add", ["/layers.0/fc/MatMul_output_0", "layers.0.fc.bias"], ["/layers.0/fc/Add_output_0"]),
        helper.make_node(
            "MatMulInteger", ["q", "onnx::MatMul_8_quantized", "z", "onnx::MatMul_8_zero_point"], ["embeds_quantized"]
        ),
    ]

    state = graph_weights(_model(nodes, initializers), "projection")

    assert set(state) == {"layers.0.fc.bias", "layers.0.fc.weight", "projection.weight"}
    np.testing.assert_array_equal(state["layers.0.fc.bias"], bias)
    np.testing.assert_array_equal(state["layers.0.fc.weight"], plain.T)
    np.testing.assert_allclose(state["projection.weight"].T, rounded, atol=float(scale.max()) / 2 + 1e-6)


@pytest.mark.parametrize(
    "kind", ["FLOAT", "FLOAT16", "DOUBLE", "INT8", "UINT8", "INT32", "INT64"]
)  # fmt: skip
@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_every_form_of_an_initialiser_is_read_as_the_onnx_package_reads_it(
    kind: str, raw: bool, shape: tuple[int, ...]
) -> None:
    count = int(np.prod(shape))
    numbers = [0, 1, 100, 3, 77, 12] if kind == "UINT8" else [0, -1, 100, -128, 77, -3]
    dtype = helper.tensor_dtype_to_np_dtype(getattr(TensorProto, kind))
    values = np.array(numbers[:count]).astype(dtype)
    tensor = helper.make_tensor(
        "value", getattr(TensorProto, kind), shape, values.tobytes() if raw else values.tolist(), raw=raw
    )
    if kind == "DOUBLE" and not raw:
        pytest.skip("no exporter of weights writes these")
    content = _model([], [tensor])

    _, found = read_graph(content)

    expected = numpy_helper.to_array(ModelProto.FromString(content).graph.initializer[0])
    assert (found["value"].dtype, found["value"].shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(found["value"], expected)


def test_operations_keep_their_order_and_names() -> None:
    nodes = [helper.make_node("Add", ["a", "b"], ["c"], axis=1, name="first"), helper.make_node("Relu", ["c"], ["d"])]
    found, _ = read_graph(_model(nodes, []))
    assert [(node.operation, node.inputs, node.outputs) for node in found] == [
        ("Add", ("a", "b"), ("c",)), ("Relu", ("c",), ("d",)),
    ]  # fmt: skip


def test_what_is_no_graph_is_told_in_one_line() -> None:
    content = _model([], [numpy_helper.from_array(np.zeros(9, np.float32), "value")])
    for damaged in (b"", b"\x3a", b"\xff" * 40, content[:-20], b"\x3a\x05hello"):
        with pytest.raises(ModelError, match="the ONNX graph cannot be read"):
            read_graph(damaged)
