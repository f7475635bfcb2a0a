"""Products with weights of one byte each: a large tower runs in about half the time, and a quarter of the memory.

A row of weights is cut into blocks, each with a scale of its own; ONNX Runtime rounds what is multiplied with them
block by block, too, and adds up whole numbers. Blocks keep the few large values of a transformer from spoiling the
rest of a row, which one scale for all of it does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evidex.encoders.graphs.graph import Floats, Graph

BLOCK = 128
_DOMAIN = "com.microsoft"
_BITS, _ZERO, _LARGEST = 8, 128, 127
_WHOLE_NUMBERS = 4  # how exactly the runtime multiplies: in float32 (1) … in bytes (4)


def rounded_dense(graph: Graph, sequence: str, name: str, inputs: int, outputs: int) -> str:
    """A dense layer over a ``sequence`` (n, length, inputs), its weights in bytes."""
    weight = graph.stored(f"{name}.weight", outputs, inputs)
    blocks = (outputs, inputs // BLOCK, BLOCK)
    given = [
        graph.in_bytes(f"{name}.blocks", blocks, lambda: _blocks(weight.read())[0]),
        graph.made(f"{name}.scales", (outputs * blocks[1],), lambda: _blocks(weight.read())[1].reshape(-1)),
    ]
    bias = graph.weight(graph.stored(f"{name}.bias", outputs))
    sizes = {"K": inputs, "N": outputs, "bits": _BITS, "block_size": BLOCK, "accuracy_level": _WHOLE_NUMBERS}
    return graph.node("MatMulNBits", sequence, *given, "", "", bias, domain=_DOMAIN, **sizes)


def rounded_attention(graph: Graph, sequence: str, names: Sequence[str], width: int, heads: int) -> str:
    """What the tokens make of each other, as `attention` has it without a mask."""
    projected = [rounded_dense(graph, sequence, name, width, width) for name in names]
    return graph.node("MultiHeadAttention", *projected, domain=_DOMAIN, num_heads=heads)


def fits(*sizes: int) -> bool:
    """Whether rows of these lengths are whole blocks."""
    return all(size % BLOCK == 0 for size in sizes)


def _blocks(weight: Floats) -> tuple[NDArray[np.uint8], Floats]:
    """The weights as bytes around 128, and the scale of each block."""
    cut = weight.reshape(len(weight), -1, BLOCK)
    scales = np.abs(cut).max(-1) / _LARGEST
    scales[scales == 0] = 1
    return (np.rint(cut / scales[..., None]) + _ZERO).astype(np.uint8), scales.astype(np.float32)
