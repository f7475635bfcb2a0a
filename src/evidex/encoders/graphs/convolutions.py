"""Convolutional image towers as graphs, their batch norms folded into the convolutions before them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from evidex.encoders.graphs.graph import Floats, Graph
from evidex.encoders.sizes import (
    CONVNET_WIDTHS,
    LITE_HEAD,
    LITE_STEM,
    NORM_EPSILON,
    RESNET_STAGES,
    LiteBlock,
    lite_blocks,
    same_padding,
)

_TORCH_EPSILON = 1e-5


@dataclass(frozen=True)
class Grid:
    """Values (n, channels, size, size) under their name."""

    name: str
    channels: int
    size: int


@dataclass(frozen=True)
class Convolution:
    """A convolution with its batch norm, by their names in the file."""

    weight: str
    norm: str
    outputs: int
    kernel: int = 1
    stride: int = 1
    groups: int = 1
    pads: tuple[int, int] | None = None
    """Before and after, in both directions; None for half a kernel on either side."""
    epsilon: float = _TORCH_EPSILON


def folded(weight: Floats, norm: Sequence[Floats], epsilon: float) -> tuple[Floats, Floats]:
    """Weight and bias of a convolution that does what ``weight`` and the batch norm after it do; worked in float64.

    ``norm`` is scale, shift, mean and variance.
    """
    scale, shift, mean, variance = (each.astype(np.float64) for each in norm)
    factor = scale / np.sqrt(variance + epsilon)
    bias = shift - mean * factor
    return (weight * factor[:, None, None, None]).astype(np.float32), bias.astype(np.float32)


def convnet(graph: Graph, grid: Grid, prefix: str, widths: Sequence[int] = CONVNET_WIDTHS) -> str:
    grid = _relu(graph, _convolved(graph, grid, Convolution(f"{prefix}.stem.0", f"{prefix}.stem.1", widths[0], 3, 2)))
    inputs, number = widths[0], 0
    for width in widths:
        for stride in (2, 1):
            grid = _residual_block(graph, grid, f"{prefix}.stages.{number}", inputs, width, stride)
            inputs, number = width, number + 1
    return pooled(graph, grid, "mean_max")


def _residual_block(graph: Graph, grid: Grid, prefix: str, inputs: int, width: int, stride: int) -> Grid:
    first = Convolution(f"{prefix}.body.0", f"{prefix}.body.1", width, 3, stride)
    second = Convolution(f"{prefix}.body.3", f"{prefix}.body.4", width, 3)
    inner = _convolved(graph, _relu(graph, _convolved(graph, grid, first)), second)
    if stride != 1 or inputs != width:
        grid = _convolved(graph, grid, Convolution(f"{prefix}.skip.0", f"{prefix}.skip.1", width, 1, stride))
    return _relu(graph, replace(inner, name=graph.node("Add", inner.name, grid.name)))


def resnet50(graph: Graph, grid: Grid, prefix: str, pooling: str = "mean") -> str:
    stem = Convolution(f"{prefix}.conv1", f"{prefix}.bn1", 64, 7, 2, epsilon=NORM_EPSILON)
    grid = _relu(graph, _convolved(graph, grid, stem))
    name = graph.node("MaxPool", grid.name, kernel_shape=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1))
    grid = Grid(name, grid.channels, (grid.size - 1) // 2 + 1)
    for stage, (width, depth) in enumerate(RESNET_STAGES, start=1):
        for block in range(depth):
            stride = 2 if stage > 1 and block == 0 else 1
            grid = _bottleneck(graph, grid, f"{prefix}.layer{stage}.{block}", width, stride)
    return pooled(graph, grid, pooling)


def _bottleneck(graph: Graph, grid: Grid, prefix: str, width: int, stride: int) -> Grid:
    parts = ((width, 1, stride), (width, 3, 1), (4 * width, 1, 1))
    inner = grid
    for number, (outputs, kernel, step) in enumerate(parts, start=1):
        names = (f"{prefix}.conv{number}", f"{prefix}.bn{number}")
        inner = _convolved(graph, inner, Convolution(*names, outputs, kernel, step, epsilon=NORM_EPSILON))
        inner = _relu(graph, inner) if number < len(parts) else inner
    if grid.channels != 4 * width:
        names = (f"{prefix}.downsample.0", f"{prefix}.downsample.1")
        grid = _convolved(graph, grid, Convolution(*names, 4 * width, 1, stride, epsilon=NORM_EPSILON))
    return _relu(graph, replace(inner, name=graph.node("Add", inner.name, grid.name)))


def efficientnet_lite(graph: Graph, grid: Grid, prefix: str, name: str, pooling: str = "mean") -> str:
    stem = _same(grid, Convolution(f"{prefix}._conv_stem", f"{prefix}._bn0", LITE_STEM, 3, 2, epsilon=NORM_EPSILON))
    grid = _relu6(graph, _convolved(graph, grid, stem))
    for number, block in enumerate(lite_blocks(name)):
        grid = _inverted_bottleneck(graph, grid, f"{prefix}._blocks.{number}", block)
    head = Convolution(f"{prefix}._conv_head", f"{prefix}._bn1", LITE_HEAD, epsilon=NORM_EPSILON)
    return pooled(graph, _relu6(graph, _convolved(graph, grid, head)), pooling)


def _inverted_bottleneck(graph: Graph, grid: Grid, prefix: str, block: LiteBlock) -> Grid:
    hidden = block.inputs * block.expansion
    inner = grid
    if block.expansion != 1:
        wider = Convolution(f"{prefix}._expand_conv", f"{prefix}._bn0", hidden, epsilon=NORM_EPSILON)
        inner = _relu6(graph, _convolved(graph, inner, wider))
    names = (f"{prefix}._depthwise_conv", f"{prefix}._bn1")
    deep = Convolution(*names, hidden, block.kernel, block.stride, groups=hidden, epsilon=NORM_EPSILON)
    inner = _relu6(graph, _convolved(graph, inner, _same(inner, deep)))
    narrow = Convolution(f"{prefix}._project_conv", f"{prefix}._bn2", block.outputs, epsilon=NORM_EPSILON)
    inner = _convolved(graph, inner, narrow)
    if block.stride == 1 and block.inputs == block.outputs:
        return replace(inner, name=graph.node("Add", grid.name, inner.name))
    return inner


def pooled(graph: Graph, grid: Grid, pooling: str) -> str:
    """The mean of each channel (n, channels); with ``mean_max`` its largest value beside it."""
    kinds = ("GlobalAveragePool", "GlobalMaxPool")[: 1 if pooling == "mean" else 2]
    parts = [graph.node("Flatten", graph.node(kind, grid.name)) for kind in kinds]
    return graph.node("Concat", *parts, axis=1) if len(parts) > 1 else parts[0]


def _convolved(graph: Graph, grid: Grid, layer: Convolution) -> Grid:
    shape = (layer.outputs, grid.channels // layer.groups, layer.kernel, layer.kernel)
    weight = graph.stored(f"{layer.weight}.weight", *shape)
    norm = [
        graph.stored(f"{layer.norm}.{part}", layer.outputs)
        for part in ("weight", "bias", "running_mean", "running_var")
    ]
    graph.stored(f"{layer.norm}.num_batches_tracked")  # of no use here, but part of the file

    def fold() -> tuple[Floats, Floats]:
        return folded(weight.read(), [part.read() for part in norm], layer.epsilon)

    before, after = layer.pads or (layer.kernel // 2, layer.kernel // 2)
    name = graph.node(
        "Conv",
        grid.name,
        graph.made(f"{layer.weight}.weight", shape, lambda: fold()[0]),
        graph.made(f"{layer.weight}.bias", (layer.outputs,), lambda: fold()[1]),
        kernel_shape=(layer.kernel, layer.kernel),
        strides=(layer.stride, layer.stride),
        pads=(before, before, after, after),
        group=layer.groups,
    )
    size = (grid.size + before + after - layer.kernel) // layer.stride + 1
    return Grid(name, layer.outputs, size)


def _same(grid: Grid, layer: Convolution) -> Convolution:
    total = same_padding(grid.size, layer.kernel, layer.stride)
    return replace(layer, pads=(total // 2, total - total // 2))


def _relu(graph: Graph, grid: Grid) -> Grid:
    return replace(grid, name=graph.node("Relu", grid.name))


def _relu6(graph: Graph, grid: Grid) -> Grid:
    bounds = (graph.constant(np.array(bound, np.float32)) for bound in (0.0, 6.0))
    return replace(grid, name=graph.node("Clip", grid.name, *bounds))
