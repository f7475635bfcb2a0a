"""Weights out of exported ONNX graphs, whose products lost their names and, some, their precision."""

from __future__ import annotations

import numpy as np
import onnx
import torch
from onnx import numpy_helper

StateDict = dict[str, torch.Tensor]


def graph_weights(content: bytes, unnamed: str = "") -> StateDict:
    """Return the weights of an exported graph under the names of the modules they came from.

    An exporter keeps a module's bias by name, but folds its weight, transposed, into a nameless product; the path of
    the product's output still tells the module. Products quantised to int8 are brought back: (q − zero point) · scale,
    column by column. ``unnamed`` is the module of the product that gives the graph's own output.
    """
    graph = onnx.load_from_string(content).graph
    values = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    state = {name: _tensor(value) for name, value in values.items() if not name.startswith("onnx::")}
    for node in graph.node:
        matrices = [name for name in node.input[:2] if name.startswith("onnx::MatMul") and name in values]
        if node.op_type not in ("MatMul", "MatMulInteger") or not matrices:
            continue
        matrix = values[matrices[0]]
        if node.op_type == "MatMulInteger":
            stem = matrices[0].removesuffix("_quantized")
            zero = values[f"{stem}_zero_point"].astype(np.float32)
            matrix = (matrix.astype(np.float32) - zero) * values[f"{stem}_scale"]
        module, found, _ = node.output[0].strip("/").rpartition("/")
        state[f"{module.replace('/', '.') if found else unnamed}.weight"] = _tensor(matrix.T)
    return state


def _tensor(value: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.array(value, dtype=np.float32, order="C"))
