"""The numbers that towers are made of, for those who train them and those who only run them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evidex.encoders.preprocess import CLIP_MEAN, CLIP_STD
from evidex.errors import ModelError

Colour = tuple[float, float, float]


@dataclass(frozen=True)
class Pixels:
    """What is taken from and divided out of RGB in [0, 255]; with ``bgr`` after its channels are turned round."""

    mean: Colour
    scale: Colour
    bgr: bool = False


@dataclass(frozen=True)
class LiteBlock:
    """An inverted bottleneck of EfficientNet-Lite."""

    inputs: int
    outputs: int
    kernel: int
    expansion: int
    stride: int


CLIP_PIXELS = Pixels(
    (255 * CLIP_MEAN[0], 255 * CLIP_MEAN[1], 255 * CLIP_MEAN[2]),
    (255 * CLIP_STD[0], 255 * CLIP_STD[1], 255 * CLIP_STD[2]),
)
CONVNET_PIXELS = Pixels((127.5, 127.5, 127.5), (127.5, 127.5, 127.5))
CONVNET_WIDTHS = (24, 48, 96, 192)
LITE_PIXELS = Pixels((127.0, 127.0, 127.0), (128.0, 128.0, 128.0))
LITE_STEM, LITE_HEAD = 32, 1280
LITE_SCALING = {"efficientnet_lite0": (1.0, 1.0), "efficientnet_lite1": (1.0, 1.1), "efficientnet_lite2": (1.1, 1.2)}
RESNET_PIXELS = Pixels((103.939, 116.779, 123.68), (1.0, 1.0, 1.0), bgr=True)
RESNET_STAGES = ((64, 3), (128, 4), (256, 6), (512, 3))
"""Width and number of the blocks."""
RESNET_OUT = 4 * RESNET_STAGES[-1][0]
TEXT_EPSILON = 1e-12  # of BERT's layer norms
_FURTHEST = 128
"""The distance of two tokens from which on it counts no more."""
NORM_EPSILON = 1e-3  # of the batch norms of Keras' and TensorFlow's towers

# kernel, repeats, inputs, outputs, expansion, stride of EfficientNet's seven stages
_LITE_STAGES = (
    (3, 1, 32, 16, 1, 1),
    (3, 2, 16, 24, 6, 2),
    (5, 2, 24, 40, 6, 2),
    (3, 3, 40, 80, 6, 2),
    (5, 3, 80, 112, 6, 1),
    (5, 4, 112, 192, 6, 2),
    (3, 1, 192, 320, 6, 1),
)


def lite_blocks(name: str) -> tuple[LiteBlock, ...]:
    """The blocks of the EfficientNet-Lite ``name``, in their order."""
    width, depth = LITE_SCALING[name]
    blocks = []
    for stage, (kernel, repeats, inputs, outputs, expansion, stride) in enumerate(_LITE_STAGES):
        inputs = inputs if stage == 0 else _round_channels(inputs * width)
        outputs = _round_channels(outputs * width)
        edge = stage in (0, len(_LITE_STAGES) - 1)  # Lite scales neither the first nor the last stage's depth
        blocks.append(LiteBlock(inputs, outputs, kernel, expansion, stride))
        again = LiteBlock(outputs, outputs, kernel, expansion, 1)
        blocks += [again] * ((repeats if edge else math.ceil(repeats * depth)) - 1)
    return tuple(blocks)


def pooled_channels(pooling: str, channels: int) -> int:
    """How long the vector is that ``pooling`` makes of a grid: the mean of each channel, or its largest value too."""
    if pooling not in ("mean", "mean_max"):
        raise ModelError(f"unknown pooling '{pooling}'; choose mean or mean_max")
    return channels if pooling == "mean" else 2 * channels


def same_padding(size: int, kernel: int, stride: int) -> int:
    """How many pixels TensorFlow's "same" padding adds in all; of an odd number one more goes to the end."""
    return max((-(-size // stride) - 1) * stride + kernel - size, 0)


def distance_buckets(length: int, buckets: int) -> NDArray[np.int64]:
    """For each pair of tokens (from, to) of a text the bucket of their distance, as T5 and MPNet have them.

    Half of the buckets are for each direction: of these one half for each distance alone, the other for ever wider
    spans up to ``_FURTHEST``.
    """
    each = buckets // 2
    alone = each // 2
    apart = np.arange(length)[None, :] - np.arange(length)[:, None]
    far = np.log(np.maximum(np.abs(apart), alone) / alone) / np.log(_FURTHEST / alone) * (each - alone)
    spans = np.minimum(alone + far.astype(np.int64), each - 1)
    found: NDArray[np.int64] = np.where(np.abs(apart) < alone, np.abs(apart), spans) + each * (apart > 0)
    return found


def _round_channels(channels: float) -> int:
    rounded = max(8, int(channels + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * channels else rounded
