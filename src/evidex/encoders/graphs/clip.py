"""CLIP's two towers as graphs, under the names of its published weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from evidex.encoders.graphs.graph import Graph
from evidex.encoders.graphs.transformer import Shape, clip_layers

VIT_B16 = Shape(width=768, hidden=3072, layers=12, heads=12, activation="quick_gelu", epsilon=1e-5)
VIT_B16_PATCH, VIT_B16_PROJECTED = 16, 512


def vit_b16(graph: Graph, pixels: str, prefix: str, pooling: str = "mean", image_size: int = 224) -> tuple[str, int]:
    """Our own form of CLIP's ViT-B/16; what it gives, and how long that is."""
    tokens = _seen(graph, pixels, prefix, VIT_B16, image_size, VIT_B16_PATCH)
    width = VIT_B16.width

    def normed(token: str) -> str:
        return graph.layer_norm(token, f"{prefix}.post_layernorm", width, VIT_B16.epsilon)

    def patches() -> str:
        kept = graph.node("Slice", tokens, graph.integers(1), graph.integers(1 << 30), graph.integers(1))
        return normed(graph.node("ReduceMean", kept, graph.integers(1), keepdims=0))

    if pooling == "mean":
        return patches(), width
    cls = normed(_first(graph, tokens))
    if pooling == "cls":
        return cls, width
    if pooling == "cls_mean":
        return graph.node("Concat", cls, patches(), axis=1), 2 * width
    projected = graph.linear(cls, f"{prefix}.visual_projection", width, VIT_B16_PROJECTED, bias=False)
    return projected, VIT_B16_PROJECTED


def clip_image(graph: Graph, pixels: str, sizes: dict[str, Any]) -> str:
    """Normalised ``pixels`` → CLIP's feature of each picture."""
    shape = _shape(sizes, "image")
    name = "clip.vision_model"
    tokens = _seen(graph, pixels, name, shape, sizes["image_size"], sizes["patch_size"])
    cls = graph.layer_norm(_first(graph, tokens), f"{name}.post_layernorm", shape.width, shape.epsilon)
    return graph.linear(cls, "clip.visual_projection", shape.width, sizes["dim"], bias=False)


def clip_text(graph: Graph, sizes: dict[str, Any]) -> str:
    """Token numbers → CLIP's feature of each text, read at its first end token."""
    shape, name = _shape(sizes, "text"), "clip.text_model"
    ids = graph.input("input_ids", "int64", "n", "length")
    words = graph.table(f"{name}.embeddings.token_embedding.weight", sizes["vocabulary"], shape.width)
    positions = f"{name}.embeddings.position_embedding.weight"
    tokens = graph.embedded(ids, words, graph.weight(graph.stored(positions, sizes["context"], shape.width)))
    tokens = clip_layers(graph, tokens, f"{name}.encoder.layers", shape, causal=True)
    tokens = graph.layer_norm(tokens, f"{name}.final_layer_norm", shape.width, shape.epsilon)
    ends = graph.node("Equal", ids, graph.constant(np.array(sizes["end_token"], np.int64)))
    first = graph.node("ArgMax", graph.floats(ends), axis=1, keepdims=1)
    pooled = graph.node("GatherND", tokens, first, batch_dims=1)
    return graph.linear(pooled, "clip.text_projection", shape.width, sizes["dim"], bias=False)


def _shape(sizes: dict[str, Any], tower: str) -> Shape:
    width, hidden, layers, heads = (sizes[f"{tower}_{part}"] for part in ("width", "hidden", "layers", "heads"))
    return Shape(width, hidden, layers, heads, sizes["activation"], sizes["layer_norm_eps"])


def _seen(graph: Graph, pixels: str, prefix: str, shape: Shape, size: int, patch: int) -> str:
    """The class token and the patches, after all layers."""
    name, width = f"{prefix}.embeddings", shape.width
    kernel = graph.weight(graph.stored(f"{name}.patch_embedding.weight", width, 3, patch, patch))
    grid = graph.node("Conv", pixels, kernel, kernel_shape=(patch, patch), strides=(patch, patch))
    patches = graph.node("Transpose", graph.node("Reshape", grid, graph.integers(0, width, -1)), perm=(0, 2, 1))
    cls = graph.stored(f"{name}.class_embedding", width)
    one = graph.made(cls.name, (1, 1, width), lambda: cls.read()[None, None])
    count = graph.node("Shape", pixels, start=0, end=1)
    each = graph.node("Expand", one, graph.node("Concat", count, graph.integers(1, width), axis=0))
    places = graph.stored(f"{name}.position_embedding.weight", 1 + (size // patch) ** 2, width)
    tokens = graph.node("Add", graph.node("Concat", each, patches, axis=1), graph.weight(places))
    tokens = graph.layer_norm(tokens, f"{prefix}.pre_layrnorm", width, shape.epsilon)
    return clip_layers(graph, tokens, f"{prefix}.encoder.layers", shape, causal=False)


def _first(graph: Graph, tokens: str) -> str:
    return graph.node("Gather", tokens, graph.constant(np.array(0, np.int64)), axis=1)
