"""Weights out of exported ONNX graphs, whose products lost their names and, some, their precision.

The graph is read by its published field numbers, so that what only wants the numbers needs no ONNX package.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evidex.errors import ModelError
from evidex.weights.protobuf import fields, varints

Tensors = dict[str, np.ndarray]

# Field numbers of onnx.proto.
_MODEL_GRAPH = 7
_GRAPH_NODE, _GRAPH_INITIALIZER = 1, 5
_NODE_INPUT, _NODE_OUTPUT, _NODE_OP = 1, 2, 4
_TENSOR_DIMS, _TENSOR_TYPE, _TENSOR_NAME, _TENSOR_RAW = 1, 2, 8, 9
_TENSOR_FLOATS, _TENSOR_INT32S, _TENSOR_INT64S = 4, 5, 7
_TYPES = {1: np.float32, 2: np.uint8, 3: np.int8, 6: np.int32, 7: np.int64, 10: np.float16, 11: np.float64}


@dataclass(frozen=True)
class Node:
    """One operation: what it does and the names of what goes in and comes out."""

    operation: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def graph_weights(content: bytes, unnamed: str = "") -> Tensors:
    """Return the weights of an exported graph, float32, under the names of the modules they came from.

    An exporter keeps a module's bias by name, but folds its weight, transposed, into a nameless product; the path of
    the product's output still tells the module. Products quantised to int8 are brought back: (q − zero point) · scale,
    column by column. ``unnamed`` is the module of the product that gives the graph's own output.
    """
    nodes, values = read_graph(content)
    state = {name: _plain(value) for name, value in values.items() if not name.startswith("onnx::")}
    for node in nodes:
        matrices = [name for name in node.inputs[:2] if name.startswith("onnx::MatMul") and name in values]
        if node.operation not in ("MatMul", "MatMulInteger") or not matrices:
            continue
        matrix = values[matrices[0]]
        if node.operation == "MatMulInteger":
            stem = matrices[0].removesuffix("_quantized")
            zero = values[f"{stem}_zero_point"].astype(np.float32)
            matrix = (matrix.astype(np.float32) - zero) * values[f"{stem}_scale"]
        module, found, _ = node.outputs[0].strip("/").rpartition("/")
        state[f"{module.replace('/', '.') if found else unnamed}.weight"] = _plain(matrix.T)
    return state


def read_graph(content: bytes) -> tuple[list[Node], Tensors]:
    """Return a model's operations, in order, and its initialisers."""
    try:
        graph = next(value for number, value in fields(memoryview(content)) if number == _MODEL_GRAPH)
        nodes, values = [], {}
        for number, value in fields(_bytes(graph)):
            if number == _GRAPH_NODE:
                nodes.append(_node(_bytes(value)))
            elif number == _GRAPH_INITIALIZER:
                name, tensor = _tensor(_bytes(value))
                values[name] = tensor
    except (ValueError, StopIteration) as error:
        raise ModelError(f"the ONNX graph cannot be read ({error or 'it holds no graph'}); fetch it again") from None
    return nodes, values


def _node(message: memoryview) -> Node:
    found = [(number, value) for number, value in fields(message) if number in (_NODE_INPUT, _NODE_OUTPUT, _NODE_OP)]
    texts = {kind: tuple(_text(value) for number, value in found if number == kind) for kind, _ in found}
    return Node("".join(texts.get(_NODE_OP, ())), texts.get(_NODE_INPUT, ()), texts.get(_NODE_OUTPUT, ()))


def _tensor(message: memoryview) -> tuple[str, np.ndarray]:
    """An initialiser's name and values, which stand as raw bytes, as packed floats or as variable-length numbers."""
    shape: list[int] = []
    numbers: list[int] = []
    kind, name, raw = 0, "", b""
    for number, value in fields(message):
        if number == _TENSOR_DIMS:
            shape += _whole(value)
        elif number == _TENSOR_TYPE and isinstance(value, int):
            kind = value
        elif number == _TENSOR_NAME:
            name = _text(value)
        elif number in (_TENSOR_RAW, _TENSOR_FLOATS):
            raw += _bytes(value)
        elif number in (_TENSOR_INT32S, _TENSOR_INT64S):
            numbers += _whole(value)
    if kind not in _TYPES:
        raise ValueError(f"initialiser '{name}' is of the unknown type {kind}")
    dtype = np.dtype(_TYPES[kind]).newbyteorder("<")
    if numbers:  # negative ones are written as 64 bits, and a narrower type keeps the lowest of them
        raw = np.array(numbers, np.uint64).astype(np.dtype(f"u{dtype.itemsize}").newbyteorder("<")).tobytes()
    return name, np.frombuffer(raw, dtype).reshape(shape)


def _whole(value: int | memoryview) -> list[int]:
    return [value] if isinstance(value, int) else varints(value)


def _bytes(value: int | memoryview) -> memoryview:
    if isinstance(value, int):
        raise ValueError("a number stands where bytes should")
    return value


def _text(value: int | memoryview) -> str:
    return bytes(_bytes(value)).decode()


def _plain(value: np.ndarray) -> np.ndarray:
    return np.array(value, dtype=np.float32, order="C")
