"""Image towers in plain torch: a small one of ours and ImageNet architectures whose weights can be had offline.

Each maps normalised pixels (n, 3, s, s) to one vector a picture and says how its pixels are normalised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn.functional import relu, relu6

from evidex.encoders.clip.image_tower import ClipImageTower
from evidex.encoders.image_tower import ImageTower
from evidex.encoders.sizes import (
    CONVNET_WIDTHS,
    LITE_HEAD,
    LITE_PIXELS,
    LITE_SCALING,
    LITE_STEM,
    NORM_EPSILON,
    RESNET_OUT,
    RESNET_PIXELS,
    RESNET_STAGES,
    LiteBlock,
    lite_blocks,
    pooled_channels,
    same_padding,
)
from evidex.errors import ModelError


def mean_and_max(grid: torch.Tensor) -> torch.Tensor:
    """Return how much of each channel there is, and whether any at all."""
    return torch.cat([grid.mean((2, 3)), grid.amax((2, 3))], 1)


def _mean(grid: torch.Tensor) -> torch.Tensor:
    return grid.mean((2, 3))


def _pooling(name: str, channels: int) -> tuple[Callable[[torch.Tensor], torch.Tensor], int]:
    """Return how the last grid becomes one vector, and that vector's length."""
    length = pooled_channels(name, channels)
    return (_mean if name == "mean" else mean_and_max), length


def _followed(grid: torch.Tensor, blocks: Iterable[nn.Module], kept: Sequence[int]) -> list[torch.Tensor]:
    """Pass ``grid`` through ``blocks`` and return what comes out of those at ``kept``."""
    found = []
    for place, block in enumerate(blocks):
        grid = block(grid)
        if place in kept:
            found.append(grid)
    return found


class ConvNet(ImageTower):
    """Ours: a narrow residual network for small pictures, trainable on a CPU in minutes."""

    def __init__(self, widths: tuple[int, ...] = CONVNET_WIDTHS) -> None:
        super().__init__()
        self.out_dim = 2 * widths[-1]
        self.stem = nn.Sequential(_conv(3, widths[0], 3, 2), nn.BatchNorm2d(widths[0]), nn.ReLU(inplace=True))
        stages = []
        previous = widths[0]
        for width in widths:
            stages += [_ResidualBlock(previous, width, stride=2), _ResidualBlock(width, width, stride=1)]
            previous = width
        self.stages = nn.Sequential(*stages)
        if len(widths) == len(CONVNET_WIDTHS):  # what looks at grids looks at four
            self.channels = (widths[0], widths[1], widths[2], widths[3])

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        grid = self.stages(self.stem(pixels))
        return mean_and_max(grid)

    def grids(self, pixels: torch.Tensor) -> list[torch.Tensor]:
        return _followed(self.stem(pixels), self.stages, (1, 3, 5, 7))

    def entry(self) -> nn.Module:
        return self.stem

    def blocks(self) -> list[nn.Module]:
        return list(self.stages)


class _ResidualBlock(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            _conv(inputs, outputs, 3, stride),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
            _conv(outputs, outputs, 3, 1),
            nn.BatchNorm2d(outputs),
        )
        self.skip = (
            nn.Identity()
            if stride == 1 and inputs == outputs
            else nn.Sequential(_conv(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))
        )

    def forward(self, grid: torch.Tensor) -> torch.Tensor:
        return relu(self.body(grid) + self.skip(grid))


class ResNet50(ImageTower):
    """ResNet-50 as Keras trained it: stride in a block's first convolution, batch norm with eps 1e-3, BGR."""

    pixels = RESNET_PIXELS
    channels = (256, 512, 1024, 2048)

    def __init__(self, pooling: str = "mean") -> None:
        super().__init__()
        self.pool, self.out_dim = _pooling(pooling, RESNET_OUT)
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64, eps=NORM_EPSILON)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        inputs = 64
        for stage, (width, depth) in enumerate(RESNET_STAGES, start=1):
            blocks = []
            for block in range(depth):
                blocks.append(_Bottleneck(inputs, width, stride=2 if stage > 1 and block == 0 else 1))
                inputs = 4 * width
            setattr(self, f"layer{stage}", nn.Sequential(*blocks))

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        grid: torch.Tensor = self.maxpool(relu(self.bn1(self.conv1(pixels))))
        for stage in range(1, 5):
            grid = getattr(self, f"layer{stage}")(grid)
        return self.pool(grid)

    def grids(self, pixels: torch.Tensor) -> list[torch.Tensor]:
        grid = self.maxpool(relu(self.bn1(self.conv1(pixels))))
        return _followed(grid, (getattr(self, f"layer{stage}") for stage in range(1, 5)), range(4))

    def entry(self) -> nn.Module:
        return self.maxpool

    def blocks(self) -> list[nn.Module]:
        return [block for stage in range(1, 5) for block in getattr(self, f"layer{stage}")]


class _Bottleneck(nn.Module):
    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = 4 * width
        self.conv1, self.bn1 = nn.Conv2d(inputs, width, 1, stride, bias=False), nn.BatchNorm2d(width, eps=NORM_EPSILON)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width, eps=NORM_EPSILON)
        self.conv3, self.bn3 = nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs, eps=NORM_EPSILON)
        self.downsample = (
            nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs, eps=NORM_EPSILON))
            if inputs != outputs
            else nn.Identity()
        )

    def forward(self, grid: torch.Tensor) -> torch.Tensor:
        inner = relu(self.bn1(self.conv1(grid)))
        inner = relu(self.bn2(self.conv2(inner)))
        return relu(self.bn3(self.conv3(inner)) + self.downsample(grid))


class EfficientNetLite(ImageTower):
    """EfficientNet-Lite: inverted bottlenecks with ReLU6, no squeeze-and-excitation."""

    pixels = LITE_PIXELS

    def __init__(self, name: str, pooling: str = "mean") -> None:
        super().__init__()
        self.pool, self.out_dim = _pooling(pooling, LITE_HEAD)
        blocks = lite_blocks(name)
        self._conv_stem = _SameConv2d(3, LITE_STEM, 3, 2, bias=False)
        self._bn0 = nn.BatchNorm2d(LITE_STEM, eps=NORM_EPSILON)
        self._blocks = nn.Sequential(*(_InvertedBottleneck(block) for block in blocks))
        self._conv_head = nn.Conv2d(blocks[-1].outputs, LITE_HEAD, 1, bias=False)
        self._bn1 = nn.BatchNorm2d(LITE_HEAD, eps=NORM_EPSILON)
        ends = [place for place, block in enumerate(blocks[1:]) if block.stride == 2]  # where a stride leaves a grid
        self._ends = [*ends[1:], len(blocks) - 1]
        widths = [blocks[place].outputs for place in self._ends]
        self.channels = (widths[0], widths[1], widths[2], LITE_HEAD)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        grid = self._blocks(_relu6(self._bn0(self._conv_stem(pixels))))
        return self.pool(_relu6(self._bn1(self._conv_head(grid))))

    def grids(self, pixels: torch.Tensor) -> list[torch.Tensor]:
        found = _followed(_relu6(self._bn0(self._conv_stem(pixels))), self._blocks, self._ends)
        return [*found[:3], _relu6(self._bn1(self._conv_head(found[3])))]

    def entry(self) -> nn.Module:
        return self._bn0

    def blocks(self) -> list[nn.Module]:
        return list(self._blocks)


class _InvertedBottleneck(nn.Module):
    def __init__(self, block: LiteBlock) -> None:
        super().__init__()
        inner = block.inputs * block.expansion
        self._residual = block.stride == 1 and block.inputs == block.outputs
        self._expands = block.expansion != 1
        if self._expands:
            self._expand_conv = nn.Conv2d(block.inputs, inner, 1, bias=False)
            self._bn0 = nn.BatchNorm2d(inner, eps=NORM_EPSILON)
        self._depthwise_conv = _SameConv2d(inner, inner, block.kernel, block.stride, groups=inner, bias=False)
        self._bn1 = nn.BatchNorm2d(inner, eps=NORM_EPSILON)
        self._project_conv = nn.Conv2d(inner, block.outputs, 1, bias=False)
        self._bn2 = nn.BatchNorm2d(block.outputs, eps=NORM_EPSILON)

    def forward(self, grid: torch.Tensor) -> torch.Tensor:
        inner: torch.Tensor = _relu6(self._bn0(self._expand_conv(grid))) if self._expands else grid
        inner = _relu6(self._bn1(self._depthwise_conv(inner)))
        inner = self._bn2(self._project_conv(inner))
        return grid + inner if self._residual else inner


def _relu6(grid: torch.Tensor) -> torch.Tensor:
    """Cut ``grid`` to [0, 6], in place where no gradient asks for it afterwards."""
    return relu6(grid, inplace=not torch.is_grad_enabled())


class _SameConv2d(nn.Conv2d):
    """TensorFlow's "same" padding: the odd pixel goes to the right and the bottom."""

    def forward(self, grid: torch.Tensor) -> torch.Tensor:
        kernel, stride = self.kernel_size[0], self.stride[0]
        padding, spare = zip(*(_same_padding(n, kernel, stride) for n in grid.shape[2:]), strict=True)
        out = nn.functional.conv2d(grid, self.weight, self.bias, self.stride, padding, 1, self.groups)
        if not any(spare):
            return out
        out = out[:, :, spare[0] :, spare[1] :]
        # Of a part of a grid a batch norm's gradient takes a slow way on a GPU: a sixth of the tower's step.
        return out.contiguous(memory_format=torch.channels_last) if self.training and out.is_cuda else out


def _same_padding(size: int, kernel: int, stride: int) -> tuple[int, int]:
    """Return how much to pad on both sides, and how many of the first outputs "same" padding would not have.

    Torch pads both sides alike. A whole stride more than TensorFlow has on the left gives its outputs with others
    before them, which costs less than copying the larger input into a padded one.
    """
    total = same_padding(size, kernel, stride)
    spare = total % 2
    return total // 2 + spare * stride, spare


def _conv(inputs: int, outputs: int, kernel: int, stride: int) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)


def build_image_tower(name: str, options: dict[str, Any] | None = None) -> ImageTower:
    """Return the tower ``name``, its weights random."""
    if name == "convnet":
        return ConvNet(**{key: tuple(value) for key, value in (options or {}).items()})
    if name == "resnet50":
        return ResNet50(**(options or {}))
    if name == "clip_vit_b16":
        return ClipImageTower(**(options or {}))
    if name in LITE_SCALING:
        return EfficientNetLite(name, **(options or {}))
    known = ", ".join(["convnet", "resnet50", "clip_vit_b16", *LITE_SCALING])
    raise ModelError(f"unknown image tower '{name}'; choose {known}")
