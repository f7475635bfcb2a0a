"""The layers of a text tower whose weights are of one byte each, without rounding anything else.

What a text takes is to a good part the fetching of weights from memory, of which bytes are a quarter. The runtime
multiplies bytes with bytes alone, in whole numbers; so what meets the weights is written in fixed point of 24 bits and
cut into three bytes, whose products are added up again: as good as float32, which the tests hold it against. For fixed
point one has to know how large numbers can become. After a layer norm that can be told from the weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from evidex.encoders.graphs import wire
from evidex.encoders.graphs.graph import Floats, Graph, Weight
from evidex.encoders.graphs.transformer import Shape, activated
from evidex.encoders.rounding import RoundedTensor
from evidex.errors import ModelError

_FUSED = "com.microsoft"
_PARTS = np.array([1, 256, 256**2], np.float32)
"""What a number is multiplied by so that the first, the second and the third of its bytes are whole."""
_SHARES = 1 / _PARTS
_ZERO = 128
"""The byte that stands for nothing: the runtime multiplies bytes without a sign."""
_MIDDLE = float(_ZERO * _SHARES.sum())
"""The number all of whose bytes are that."""
_FURTHEST = 127.0
_SLACK = 1.001  # sums of float32 may end a little above their bound
_SMALLEST = 1e-30


@dataclass(frozen=True)
class _Raised:
    """Numbers (n, 1, width) that cannot exceed ``most``, raised so that none is negative and ready to be cut."""

    name: str
    most: Callable[[], float]

    def unit(self) -> float:
        """What the first byte counts: a power of two, so that to count in it rounds nothing."""
        most = self.most()
        if not math.isfinite(most):
            raise ModelError("the model's weights are not all numbers; fetch or train it again")
        return 2.0 ** math.ceil(math.log2(max(_SLACK * most, _SMALLEST) / _FURTHEST))

    def rise(self) -> float:
        return _MIDDLE * self.unit()


@dataclass(frozen=True)
class _Layer:
    """Dense layers side by side, over one input."""

    name: str
    inputs: int
    weights: Sequence[Weight]
    biases: Sequence[Weight]

    @property
    def outputs(self) -> int:
        return sum(weight.shape[0] for weight in self.weights)

    def whole(self) -> NDArray[np.int8]:
        return np.concatenate([np.asarray(_rounded(each).whole) for each in self.weights]).T

    def scales(self) -> Floats:
        return np.concatenate([np.asarray(_rounded(each).scales) for each in self.weights])

    def bias(self) -> Floats:
        return np.concatenate([each.read() for each in self.biases])


@dataclass(frozen=True)
class _Norm:
    """A layer norm; before its scale and shift, what it gives has a length that is known."""

    name: str
    scale: Weight
    shift: Weight

    def most(self) -> float:
        return float((math.sqrt(self._width) * np.abs(self.scale.read()) + np.abs(self.shift.read())).max())

    def most_after(self, layer: _Layer) -> float:
        """The most that a dense layer makes of what this gives, by Cauchy's inequality."""
        matrix = np.concatenate([each.read() for each in layer.weights])
        longest = math.sqrt(self._width) * np.linalg.norm(matrix * self.scale.read(), axis=1)
        return float((longest + np.abs(matrix @ self.shift.read() + layer.bias())).max())

    @property
    def _width(self) -> int:
        return self.scale.shape[0]


def holds_bytes(graph: Graph, prefix: str, shape: Shape) -> bool:
    """Whether all matrices of the layers are stored in bytes."""
    names = [name for number in range(shape.layers) for name in _matrices(f"{prefix}.{number}")]
    return all(graph.rounded_weight(f"{name}.weight") is not None for name in names)


def byte_layers(graph: Graph, tokens: str, norm: str, prefix: str, shape: Shape, bias_of_places: str = "") -> str:
    """The layer norm ``norm`` over ``tokens`` (n, length, width), and BERT's layers as `bert_layers` has them.

    The rise of tokens is taken back where something is added to them, by the bias of what that comes from.
    """
    width, hidden = shape.width, shape.hidden
    lengths = graph.node("Shape", tokens, start=0, end=2)
    as_texts, as_projected = (graph.node("Concat", lengths, graph.integers(k * width), axis=0) for k in (1, 3))
    as_rows = graph.integers(-1, 1, width)  # (n, 1, width): the three bytes of a row's numbers stand beside each other

    more = ("", "", bias_of_places) if bias_of_places else ()

    before = _norm(graph, norm, width)
    raised = _normed(graph, graph.node("Reshape", tokens, as_rows), before, shape.epsilon)
    for number in range(shape.layers):
        *projections, mixing, widening, narrowing = _matrices(f"{prefix}.{number}")
        value = _Raised("", _after(before, _layer(graph, projections[2:], width, width)))
        rises = _risen(value, np.repeat(np.array([0, 0, 1], np.float32), width))
        projected = _product(graph, raised, _layer(graph, projections, width, width), rises)
        parts = graph.split(graph.node("Reshape", projected, as_projected), 3)
        heads = graph.node("MultiHeadAttention", *parts, *more, domain=_FUSED, num_heads=shape.heads)
        # What tokens make of each other are means of values: no larger, and raised as they are.
        mixed = _Raised(graph.node("Reshape", heads, as_rows), value.most)
        given = _product(graph, mixed, _layer(graph, [mixing], width, width), _risen(raised, -1))
        before = _norm(graph, f"{prefix}.{number}.attention.output.LayerNorm", width)
        raised = _normed(graph, graph.node("Add", raised.name, given), before, shape.epsilon)

        wide = _layer(graph, [widening], width, hidden)
        active = activated(graph, _product(graph, raised, wide), shape.activation)
        inner = _raised(graph, active, _after(before, wide), narrowing)  # an activation makes numbers smaller only
        given = _product(graph, inner, _layer(graph, [narrowing], hidden, width), _risen(raised, -1))
        before = _norm(graph, f"{prefix}.{number}.output.LayerNorm", width)
        raised = _normed(graph, graph.node("Add", raised.name, given), before, shape.epsilon)
    rows = graph.node("Sub", raised.name, graph.made(f"{prefix}.rise", (1,), _risen(raised, 1)))
    return graph.node("Reshape", rows, as_texts)


def trial() -> tuple[Graph, Floats, Floats]:
    """A small product of large numbers, what to ask it and what it has to give: not every machine multiplies so.

    Processors without instructions for it cut off sums of bytes, and what a number becomes that is cut to a byte is
    left to the machine where the runtime makes one step of it.
    """
    rng = np.random.default_rng(0)
    whole = rng.choice(np.array([-127, 127], np.int8), (32, 64))
    scales = rng.uniform(0.5, 1, 32).astype(np.float32)
    values = rng.uniform(-1, 1, (7, 1, 64)).astype(np.float32)
    graph = Graph({"trial.weight": RoundedTensor(whole, scales), "trial.bias": np.zeros(32, np.float32)})
    raised = _raised(graph, graph.input("values", "float32", "n", 1, 64), lambda: 1.0, "trial")
    found = _product(graph, raised, _layer(graph, ["trial"], 64, 32))
    graph.output(graph.node("Reshape", found, graph.integers(-1, 32)), 32)
    rows = values[:, 0].astype(np.float64) @ (whole * scales[:, None].astype(np.float64)).T
    return graph, values, (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def _product(graph: Graph, values: _Raised, layer: _Layer, more: Callable[[], Floats] | None = None) -> str:
    """What ``layer`` makes of ``values``, with ``more`` added to its bias.

    In as few steps as can be: where little is computed, each costs what its own code and data take to come from memory.
    """
    name, inputs, outputs = layer.name, layer.inputs, layer.outputs
    factors = graph.made(f"{name}.factors", (3, 1), lambda: (_PARTS / values.unit())[:, None])
    whole = graph.node("Cast", graph.node("Mul", values.name, factors), to=wire.TYPES["int32"])
    sums = graph.node(
        "MatMulIntegerToFloat",
        graph.node("Cast", whole, to=wire.TYPES["uint8"]),  # what stands above the byte is lost, as it should
        graph.in_bytes(f"{name}.whole", (inputs, outputs), layer.whole, kind="int8"),
        graph.made(f"{name}.unit", (1,), lambda: np.array([values.unit()], np.float32)),
        graph.made(f"{name}.scales", (outputs,), layer.scales),
        graph.constant(np.array(_ZERO, np.uint8)),
        "",
        graph.made(f"{name}.shared", (outputs,), lambda: (layer.bias() + (more() if more else 0)) / _SHARES.sum()),
        domain=_FUSED,
    )
    return graph.node("MatMul", graph.constant(_SHARES[None]), sums)


def _raised(graph: Graph, values: str, most: Callable[[], float], name: str) -> _Raised:
    rise = graph.made(f"{name}.rise", (1,), _risen(_Raised(values, most), 1))
    return _Raised(graph.node("Add", values, rise), most)


def _normed(graph: Graph, values: str, norm: _Norm, epsilon: float) -> _Raised:
    """What the layer norm makes of ``values``, raised by its shift."""
    raised = _Raised("", cache(norm.most))
    shift = graph.made(f"{norm.name}.raised", norm.shift.shape, lambda: norm.shift.read() + np.float32(raised.rise()))
    given = graph.node("LayerNormalization", values, graph.weight(norm.scale), shift, epsilon=float(epsilon))
    return _Raised(given, raised.most)


def _risen(values: _Raised, times: Floats | int) -> Callable[[], Floats]:
    return lambda: np.atleast_1d(np.asarray(times * np.float32(values.rise()), np.float32))


def _after(norm: _Norm, layer: _Layer) -> Callable[[], float]:
    return cache(lambda: norm.most_after(layer))


def _layer(graph: Graph, names: Sequence[str], inputs: int, outputs: int) -> _Layer:
    weights = [graph.stored(f"{name}.weight", outputs, inputs) for name in names]
    return _Layer(names[0], inputs, weights, [graph.stored(f"{name}.bias", outputs) for name in names])


def _norm(graph: Graph, name: str, width: int) -> _Norm:
    return _Norm(name, graph.stored(f"{name}.weight", width), graph.stored(f"{name}.bias", width))


def _matrices(layer: str) -> list[str]:
    inner = [f"{layer}.attention.self.{part}" for part in ("query", "key", "value")]
    return [*inner, f"{layer}.attention.output.dense", f"{layer}.intermediate.dense", f"{layer}.output.dense"]


def _rounded(weight: Weight) -> RoundedTensor:
    assert weight.rounded is not None
    return weight.rounded
