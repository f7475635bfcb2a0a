"""Image towers in plain torch: a small one of ours and ImageNet architectures whose weights can be had offline.

Each maps normalised pixels (n, 3, s, s) to one vector a picture and says how its pixels are normalised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn.functional import relu

from evidex.encoders.clip.image_tower import ClipImageTower
from evidex.encoders.image_tower import ImageTower
from evidex.errors import ModelError


def mean_and_max(grid: torch.Tensor) -> torch.Tensor:
    """Return how much of each channel there is, and whether any at all."""
    return torch.cat([grid.mean((2, 3)), grid.amax((2, 3))], 1)


def _mean(grid: torch.Tensor) -> torch.Tensor:
    return grid.mean((2, 3))


def _pooling(name: str, channels: int) -> tuple[Callable[[torch.Tensor], torch.Tensor], int]:
    """Return how the last grid becomes one vector, and that vector's length."""
    if name not in ("mean", "mean_max"):
        raise ModelError(f"unknown pooling '{name}'; choose mean or mean_max")
    return (_mean, channels) if name == "mean" else (mean_and_max, 2 * channels)


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

    def __init__(self, widths: tuple[int, ...] = (24, 48, 96, 192)) -> None:
        super().__init__()
        self.out_dim = 2 * widths[-1]
        self.stem = nn.Sequential(_conv(3, widths[0], 3, 2), nn.BatchNorm2d(widths[0]), nn.ReLU(inplace=True))
        stages = []
        previous = widths[0]
        for width in widths:
            stages += [_ResidualBlock(previous, width, stride=2), _ResidualBlock(width, width, stride=1)]
            previous = width
        self.stages = nn.Sequential(*stages)
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

    pixel_mean = (103.939, 116.779, 123.68)
    pixel_scale = (1.0, 1.0, 1.0)
    bgr = True
    channels = (256, 512, 1024, 2048)

    def __init__(self, pooling: str = "mean") -> None:
        super().__init__()
        self.pool, self.out_dim = _pooling(pooling, 2048)
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64, eps=1e-3)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        inputs = 64
        for stage, (width, depth) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3)), start=1):
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
        self.conv1, self.bn1 = nn.Conv2d(inputs, width, 1, stride, bias=False), nn.BatchNorm2d(width, eps=1e-3)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width, eps=1e-3)
        self.conv3, self.bn3 = nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs, eps=1e-3)
        self.downsample = (
            nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs, eps=1e-3))
            if inputs != outputs
            else nn.Identity()
        )

    def forward(self, grid: torch.Tensor) -> torch.Tensor:
        inner = relu(self.bn1(self.conv1(grid)))
        inner = relu(self.bn2(self.conv2(inner)))
        return relu(self.bn3(self.conv3(inner)) + self.downsample(grid))


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
_LITE_SCALING = {"efficientnet_lite0": (1.0, 1.0), "efficientnet_lite1": (1.0, 1.1), "efficientnet_lite2": (1.1, 1.2)}


class EfficientNetLite(ImageTower):
    """EfficientNet-Lite: inverted bottlenecks with ReLU6, no squeeze-and-excitation."""

    pixel_mean = (127.0, 127.0, 127.0)
    pixel_scale = (128.0, 128.0, 128.0)

    def __init__(self, name: str, pooling: str = "mean") -> None:
        super().__init__()
        self.pool, self.out_dim = _pooling(pooling, 1280)
        width, depth = _LITE_SCALING[name]
        self._conv_stem = _SameConv2d(3, 32, 3, 2, bias=False)
        self._bn0 = nn.BatchNorm2d(32, eps=1e-3)
        blocks: list[nn.Module] = []
        ends: list[int] = []  # the last block of each stage
        channels: list[int] = []
        for stage, (kernel, repeats, inputs, outputs, expansion, stride) in enumerate(_LITE_STAGES):
            inputs = inputs if stage == 0 else _round_channels(inputs * width)
            outputs = _round_channels(outputs * width)
            edge = stage in (0, len(_LITE_STAGES) - 1)  # Lite scales neither the first nor the last stage's depth
            for repeat in range(repeats if edge else -int(-repeats * depth // 1)):
                first = repeat == 0
                blocks.append(
                    _InvertedBottleneck(
                        inputs if first else outputs, outputs, kernel, expansion, stride if first else 1
                    )
                )
            ends.append(len(blocks) - 1)
            channels.append(outputs)
        self._ends = [ends[stage] for stage in (1, 2, 4, 6)]  # where a grid is left by the next stride
        self.channels = (channels[1], channels[2], channels[4], 1280)
        self._blocks = nn.Sequential(*blocks)
        self._conv_head = nn.Conv2d(_round_channels(320 * width), 1280, 1, bias=False)
        self._bn1 = nn.BatchNorm2d(1280, eps=1e-3)

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
    def __init__(self, inputs: int, outputs: int, kernel: int, expansion: int, stride: int) -> None:
        super().__init__()
        inner = inputs * expansion
        self._residual = stride == 1 and inputs == outputs
        if expansion != 1:
            self._expand_conv, self._bn0 = nn.Conv2d(inputs, inner, 1, bias=False), nn.BatchNorm2d(inner, eps=1e-3)
        self._expands = expansion != 1
        self._depthwise_conv = _SameConv2d(inner, inner, kernel, stride, groups=inner, bias=False)
        self._bn1 = nn.BatchNorm2d(inner, eps=1e-3)
        self._project_conv, self._bn2 = nn.Conv2d(inner, outputs, 1, bias=False), nn.BatchNorm2d(outputs, eps=1e-3)

    def forward(self, grid: torch.Tensor) -> torch.Tensor:
        inner: torch.Tensor = _relu6(self._bn0(self._expand_conv(grid))) if self._expands else grid
        inner = _relu6(self._bn1(self._depthwise_conv(inner)))
        inner = self._bn2(self._project_conv(inner))
        return grid + inner if self._residual else inner


def _relu6(grid: torch.Tensor) -> torch.Tensor:
    """Cut ``grid`` to [0, 6], in place where no gradient asks for it afterwards."""
    return grid.clamp(0, 6) if torch.is_grad_enabled() else grid.clamp_(0, 6)


class _SameConv2d(nn.Conv2d):
    """TensorFlow's "same" padding: the odd pixel goes to the right and the bottom."""

    def forward(self, grid: torch.Tensor) -> torch.Tensor:
        kernel, stride = self.kernel_size[0], self.stride[0]
        padding, spare = zip(*(_same_padding(n, kernel, stride) for n in grid.shape[2:]), strict=True)
        out = nn.functional.conv2d(grid, self.weight, self.bias, self.stride, padding, 1, self.groups)
        return out[:, :, spare[0] :, spare[1] :] if any(spare) else out


def _same_padding(size: int, kernel: int, stride: int) -> tuple[int, int]:
    """Return how much to pad on both sides, and how many of the first outputs "same" padding would not have.

    Torch pads both sides alike. A whole stride more than TensorFlow has on the left gives its outputs with others
    before them, which costs less than copying the larger input into a padded one.
    """
    total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
    spare = total % 2
    return total // 2 + spare * stride, spare


def _round_channels(channels: float) -> int:
    rounded = max(8, int(channels + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * channels else rounded


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
    if name in _LITE_SCALING:
        return EfficientNetLite(name, **(options or {}))
    known = ", ".join(["convnet", "resnet50", "clip_vit_b16", *_LITE_SCALING])
    raise ModelError(f"unknown image tower '{name}'; choose {known}")
