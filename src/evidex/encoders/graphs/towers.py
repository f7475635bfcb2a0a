"""The two graphs of a model, from its description: pictures to unit rows, and texts to unit rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evidex.encoders.graphs.clip import clip_image, clip_text, vit_b16
from evidex.encoders.graphs.convolutions import Grid, convnet, efficientnet_lite, resnet50
from evidex.encoders.graphs.exact_bytes import byte_layers, holds_bytes
from evidex.encoders.graphs.graph import Graph, Stored
from evidex.encoders.graphs.transformer import Shape, bert_layers, distance_bias
from evidex.encoders.sizes import (
    CLIP_PIXELS,
    CONVNET_PIXELS,
    CONVNET_WIDTHS,
    LITE_HEAD,
    LITE_PIXELS,
    LITE_SCALING,
    RESNET_OUT,
    RESNET_PIXELS,
    TEXT_EPSILON,
    Colour,
    Pixels,
    pooled_channels,
)

KINDS = ("towers", "clip")
"""The kinds of models that can be written down; others run with torch alone."""


@dataclass(frozen=True)
class Graphs:
    """Both towers of one model."""

    image: Graph
    text: Graph


def graphs_of(spec: dict[str, Any], stored: Stored, *, rounded: bool = False, in_bytes: bool = False) -> Graphs:
    """The graphs of the model that ``spec`` describes; ValueError where ``stored`` is not exactly its weights.

    With ``rounded`` CLIP's image tower as we train it multiplies in bytes; texts are short and stay as they are, and
    so does a CLIP that was not trained here. With ``in_bytes`` a text tower that is stored in bytes is run so, exactly.
    """
    image, text = Graph(stored, rounded=rounded and spec["kind"] == "towers"), Graph(stored)
    if spec["kind"] == "clip":
        sizes = spec["architecture"]
        size = int(sizes["image_size"])
        seen = _pixels(image, size, Pixels(_colour(spec["mean"]), _colour(spec["std"])))
        image.output(clip_image(image, seen, sizes), sizes["dim"])
        text.output(clip_text(text, sizes), sizes["dim"])
        left = {"clip.logit_scale"}
    else:
        dim = int(spec["dim"])
        pooled, width = _image_tower(image, spec)
        image.output(image.linear(pooled, "image_head", width, dim), dim)
        pooled, width = _text_tower(text, spec["text_shape"], in_bytes=in_bytes)
        text.output(text.linear(pooled, "text_head", width, dim), dim)
        left = set()
    if surplus := sorted(set(stored) - image.used - text.used - left):
        raise ValueError(f"weights do not fit the architecture (first difference: '{surplus[0]}')")
    return Graphs(image, text)


def _image_tower(graph: Graph, spec: dict[str, Any]) -> tuple[str, int]:
    """What the image tower gives, and how long that is."""
    name, options, size = spec["image_tower"], dict(spec.get("image_options") or {}), int(spec["image_size"])
    prefix = "image_tower"
    if name == "clip_vit_b16":
        return vit_b16(graph, _pixels(graph, size, CLIP_PIXELS), prefix, **options)
    if name == "convnet":
        widths = tuple(options.get("widths", CONVNET_WIDTHS))
        grid = Grid(_pixels(graph, size, CONVNET_PIXELS), 3, size)
        return convnet(graph, grid, prefix, widths), 2 * widths[-1]
    pooling = options.get("pooling", "mean")
    if name == "resnet50":
        grid = Grid(_pixels(graph, size, RESNET_PIXELS), 3, size)
        return resnet50(graph, grid, prefix, pooling), pooled_channels(pooling, RESNET_OUT)
    if name in LITE_SCALING:
        grid = Grid(_pixels(graph, size, LITE_PIXELS), 3, size)
        return efficientnet_lite(graph, grid, prefix, name, pooling), pooled_channels(pooling, LITE_HEAD)
    raise ValueError(f"image tower '{name}' is unknown to this version; update evidex")


def _text_tower(graph: Graph, sizes: dict[str, Any], *, in_bytes: bool) -> tuple[str, int]:
    """Token numbers of texts of one length, so that nothing is padded → the mean of the last layer."""
    epsilon = float(sizes.get("epsilon", TEXT_EPSILON))
    shape = Shape(sizes["hidden"], sizes["intermediate"], sizes["layers"], sizes["heads"], "gelu", epsilon)
    width, name = shape.width, "text_tower.embeddings"
    ids = graph.input("input_ids", "int64", "n", "length")
    places = graph.stored(f"{name}.position_embeddings.weight", sizes["positions"], width)
    if types := sizes.get("token_types", 2):
        kinds = graph.stored(f"{name}.token_type_embeddings.weight", types, width)
        positions = graph.made(places.name, places.shape, lambda: places.read() + kinds.read()[0])
    else:
        positions = graph.weight(places)
    tokens = graph.embedded(ids, graph.table(f"{name}.word_embeddings.weight", sizes["vocabulary"], width), positions)
    layers, bias = "text_tower.encoder.layer", ""
    if buckets := sizes.get("distances", 0):
        learned = "text_tower.encoder.relative_attention_bias"
        bias = distance_bias(graph, ids, learned, shape.heads, buckets, sizes["positions"])
    if in_bytes and holds_bytes(graph, layers, shape):
        tokens = byte_layers(graph, tokens, f"{name}.LayerNorm", layers, shape, bias)
    else:
        tokens = graph.layer_norm(tokens, f"{name}.LayerNorm", width, epsilon)
        tokens = bert_layers(graph, tokens, layers, shape, bias)
    return graph.node("ReduceMean", tokens, graph.integers(1), keepdims=0), width


def _pixels(graph: Graph, size: int, pixels: Pixels) -> str:
    """Pictures as they come, uint8 (n, 3, size, size), as the tower was trained to see them."""
    raw = graph.floats(graph.input("pixels", "uint8", "n", 3, size, size))
    if pixels.bgr:
        raw = graph.node("Gather", raw, graph.integers(2, 1, 0), axis=1)
    mean, scale = (graph.constant(np.array(part, np.float32).reshape(3, 1, 1)) for part in (pixels.mean, pixels.scale))
    return graph.node("Div", graph.node("Sub", raw, mean), scale)


def _colour(values: Sequence[float]) -> Colour:
    """Three numbers of pixels in [0, 1] as those of pixels in [0, 255]."""
    red, green, blue = (255 * float(value) for value in values)
    return red, green, blue
