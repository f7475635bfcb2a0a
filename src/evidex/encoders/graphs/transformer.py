"""Transformers as graphs: attention, dense layers over sequences, and the layers of BERT's and of CLIP's towers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from evidex.encoders.graphs.graph import Graph, Weight
from evidex.encoders.graphs.rounded import fits, rounded_attention, rounded_dense
from evidex.encoders.sizes import distance_buckets

_FUSED = "com.microsoft"  # ONNX Runtime's own operations, which do several of ONNX's in one


@dataclass(frozen=True)
class Shape:
    """The size of a transformer, and what its layers have in common."""

    width: int
    hidden: int
    layers: int
    heads: int
    activation: str
    epsilon: float

    def __post_init__(self) -> None:
        if self.heads < 1 or self.width % self.heads:
            raise ValueError(f"{self.heads} heads do not share a width of {self.width}")
        if self.activation not in ("gelu", "quick_gelu"):
            raise ValueError(f"activation '{self.activation}' has no graph")


def dense(graph: Graph, sequence: str, name: str, inputs: int, outputs: int) -> str:
    """A dense layer over a ``sequence`` (n, length, inputs)."""
    weight = graph.stored(f"{name}.weight", outputs, inputs)
    turned = graph.made(f"{name}.weight", (inputs, outputs), lambda: weight.read().T, half=weight.half)
    bias = graph.weight(graph.stored(f"{name}.bias", outputs))
    return graph.node("Add", graph.node("MatMul", sequence, turned), bias)


def attention(
    graph: Graph, sequence: str, names: Sequence[str], shape: Shape, *, causal: bool, bias_of_places: str = ""
) -> str:
    """What the tokens make of each other; ``names`` are those of query, key and value.

    ``bias_of_places`` (1, heads, length, length), if any, says how much more each place looks at each.
    """
    width = shape.width
    weights = [graph.stored(f"{name}.weight", width, width) for name in names]
    biases = [graph.stored(f"{name}.bias", width) for name in names]
    half = all(weight.half for weight in weights)
    packed = graph.made(f"{names[0]}.packed", (width, 3 * width), _joined(weights, turned=True), half=half)
    bias = graph.made(f"{names[0]}.bias", (3 * width,), _joined(biases, turned=False))
    sizes = {"num_heads": shape.heads, "unidirectional": int(causal)}
    more = ("", "", bias_of_places) if bias_of_places else ()
    return graph.node("Attention", sequence, packed, bias, *more, domain=_FUSED, **sizes)


def distance_bias(graph: Graph, ids: str, name: str, heads: int, buckets: int, positions: int) -> str:
    """How much more each head looks from place to place for their distance alone, (1, heads, length, length)."""
    learned = graph.stored(f"{name}.weight", buckets, heads)

    def laid_out() -> np.ndarray:
        return learned.read()[distance_buckets(positions, buckets)].transpose(2, 0, 1)[None]

    table = graph.made(learned.name, (1, heads, positions, positions), laid_out)
    length = graph.node("Shape", ids, start=1, end=2)
    ends = graph.node("Concat", length, length, axis=0)
    return graph.node("Slice", table, graph.integers(0, 0), ends, graph.integers(2, 3))


def activated(graph: Graph, values: str, activation: str) -> str:
    if activation == "quick_gelu":
        return graph.node("QuickGelu", values, domain=_FUSED, alpha=1.702)
    return graph.node("Gelu", values)


def clip_layers(graph: Graph, tokens: str, prefix: str, shape: Shape, *, causal: bool) -> str:
    """CLIP's layers: each part normed before it and added after it."""
    width, hidden = shape.width, shape.hidden
    rounded = graph.rounded and not causal and fits(width, hidden)
    layer = rounded_dense if rounded else dense
    for number in range(shape.layers):
        name = f"{prefix}.{number}"
        normed = graph.layer_norm(tokens, f"{name}.layer_norm1", width, shape.epsilon)
        projections = [f"{name}.self_attn.{part}_proj" for part in ("q", "k", "v")]
        if rounded:
            mixed = rounded_attention(graph, normed, projections, width, shape.heads)
        else:
            mixed = attention(graph, normed, projections, shape, causal=causal)
        tokens = graph.node("Add", tokens, layer(graph, mixed, f"{name}.self_attn.out_proj", width, width))
        normed = graph.layer_norm(tokens, f"{name}.layer_norm2", width, shape.epsilon)
        inner = activated(graph, layer(graph, normed, f"{name}.mlp.fc1", width, hidden), shape.activation)
        tokens = graph.node("Add", tokens, layer(graph, inner, f"{name}.mlp.fc2", hidden, width))
    return tokens


def bert_layers(graph: Graph, tokens: str, prefix: str, shape: Shape, bias_of_places: str = "") -> str:
    """BERT's layers: each part added and normed after it."""
    width, hidden = shape.width, shape.hidden
    for number in range(shape.layers):
        name = f"{prefix}.{number}"
        projections = [f"{name}.attention.self.{part}" for part in ("query", "key", "value")]
        mixed = attention(graph, tokens, projections, shape, causal=False, bias_of_places=bias_of_places)
        added = graph.node("Add", tokens, dense(graph, mixed, f"{name}.attention.output.dense", width, width))
        tokens = graph.layer_norm(added, f"{name}.attention.output.LayerNorm", width, shape.epsilon)
        inner = activated(graph, dense(graph, tokens, f"{name}.intermediate.dense", width, hidden), shape.activation)
        added = graph.node("Add", tokens, dense(graph, inner, f"{name}.output.dense", hidden, width))
        tokens = graph.layer_norm(added, f"{name}.output.LayerNorm", width, shape.epsilon)
    return tokens


def _joined(weights: Sequence[Weight], *, turned: bool) -> Callable[[], np.ndarray]:
    return lambda: np.concatenate([each.read().T if turned else each.read() for each in weights], axis=-1)
