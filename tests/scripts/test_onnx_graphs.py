"""Weights out of exported graphs: names from the places of products, numbers from what was rounded."""

import numpy as np
import torch
from onnx import TensorProto, helper, numpy_helper
from starting_weights.onnx_graphs import graph_weights


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
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3])]
    outputs = [helper.make_tensor_value_info("embeds_quantized", TensorProto.INT32, [1, 5])]
    model = helper.make_model(helper.make_graph(nodes, "exported", inputs, outputs, initializers))

    state = graph_weights(model.SerializeToString(), "projection")

    assert set(state) == {"layers.0.fc.bias", "layers.0.fc.weight", "projection.weight"}
    assert torch.equal(state["layers.0.fc.bias"], torch.from_numpy(bias))
    assert torch.equal(state["layers.0.fc.weight"], torch.from_numpy(plain.T.copy()))
    np.testing.assert_allclose(state["projection.weight"].numpy().T, rounded, atol=float(scale.max()) / 2 + 1e-6)
