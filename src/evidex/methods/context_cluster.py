"""A picture as points that gather around a few centres, region by region: a small context-cluster network.

CUP draws its visual prompts from one (Ma et al., Image as Set of Points, 2023): two stages, 128 and 256 channels.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.functional import adaptive_avg_pool2d, gelu, normalize

_HEADS, _HEAD_WIDTH = 4, 32
_MLP = 8
_START_SCALE = 1e-5  # of what a block adds


class Clustering(nn.Module):
    """(n, channels, s, s) → the same: in each of ``folds``² regions points join the nearest of ``centres``² centres."""

    def __init__(self, channels: int, centres: int, folds: int) -> None:
        super().__init__()
        width = _HEADS * _HEAD_WIDTH
        self.point, self.value = nn.Conv2d(channels, width, 1), nn.Conv2d(channels, width, 1)
        self.out = nn.Conv2d(width, channels, 1)
        self.slope, self.offset = nn.Parameter(torch.ones(1)), nn.Parameter(torch.zeros(1))
        self._centres, self._folds = centres, folds

    def forward(self, grid: torch.Tensor) -> torch.Tensor:
        points, values = self._regions(self.point(grid)), self._regions(self.value(grid))
        rows, gathered = (each.flatten(2).transpose(1, 2) for each in (points, values))
        centres, middles = (
            adaptive_avg_pool2d(each, self._centres).flatten(2).transpose(1, 2) for each in (points, values)
        )
        similarity = normalize(centres, dim=-1) @ normalize(rows, dim=-1).transpose(1, 2)
        strength = torch.sigmoid(self.offset + self.slope * similarity)  # (regions, centres, points)
        joined = torch.zeros_like(strength).scatter(1, strength.argmax(1, keepdim=True), 1.0) * strength
        collected = (joined @ gathered + middles) / (joined.sum(-1, keepdim=True) + 1)
        spread = (joined.transpose(1, 2) @ collected).transpose(1, 2).reshape(points.shape)
        mixed: torch.Tensor = self.out(self._whole(spread, grid))
        return mixed

    def _regions(self, grid: torch.Tensor) -> torch.Tensor:
        """Heads and regions side by side: (n · heads · folds², width, side, side)."""
        each = grid.unflatten(1, (_HEADS, _HEAD_WIDTH)).flatten(0, 1)
        split = each.unflatten(3, (self._folds, -1)).unflatten(2, (self._folds, -1))
        regions: torch.Tensor = split.permute(0, 2, 4, 1, 3, 5).flatten(0, 2)
        return regions

    def _whole(self, regions: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
        split = regions.unflatten(0, (len(like) * _HEADS, self._folds, self._folds)).permute(0, 3, 1, 4, 2, 5)
        whole: torch.Tensor = split.flatten(4, 5).flatten(2, 3).unflatten(0, (len(like), _HEADS)).flatten(1, 2)
        return whole


class _Block(nn.Module):
    def __init__(self, channels: int, centres: int, folds: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(1, channels), nn.GroupNorm(1, channels)
        self.cluster = Clustering(channels, centres, folds)
        self.wide, self.narrow = nn.Conv2d(channels, _MLP * channels, 1), nn.Conv2d(_MLP * channels, channels, 1)
        self.scale1, self.scale2 = (nn.Parameter(torch.full((channels, 1, 1), _START_SCALE)) for _ in range(2))
        for layer in (self.wide, self.narrow):
            nn.init.trunc_normal_(layer.weight, std=0.02)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)

    def forward(self, grid: torch.Tensor) -> torch.Tensor:
        grid = grid + self.scale1 * self.cluster(self.norm1(grid))
        result: torch.Tensor = grid + self.scale2 * self.narrow(gelu(self.wide(self.norm2(grid))))
        return result


class ContextCluster(nn.Module):
    """Normalised pixels (n, 3, s, s), s a multiple of 32 → (n, width)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.entry = nn.Conv2d(5, 128, 4, 4)  # colours, and where a pixel is
        self.first = _Block(128, centres=4, folds=8)
        self.reduce = nn.Conv2d(128, 256, 3, 2, 1)
        self.second = _Block(256, centres=2, folds=4)
        self.norm = nn.GroupNorm(1, 256)
        self.head = nn.Linear(256, width)
        nn.init.trunc_normal_(self.head.weight, std=0.02)
        nn.init.zeros_(self.head.bias)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        side = torch.linspace(-0.5, 0.5, pixels.shape[-1], device=pixels.device, dtype=pixels.dtype)
        place = torch.stack(torch.meshgrid(side, side, indexing="ij")).expand(len(pixels), -1, -1, -1)
        grid = self.first(self.entry(torch.cat([pixels, place], 1)))
        seen: torch.Tensor = self.head(self.norm(self.second(self.reduce(grid))).mean((2, 3)))
        return seen
