"""Vary a batch of pictures on the device they are on; what is drawn comes from a CPU generator."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import torch
from torch.nn.functional import affine_grid, grid_sample, interpolate

MAX_ROTATION = 15.0  # degrees around each quarter turn


@dataclass(frozen=True)
class Variation:
    """How far a picture may go from what it was."""

    any_side_up: bool
    """Overhead scenes have no upright side: all quarter turns and mirror images are views of the same scene."""
    smallest_crop: float
    """Of the picture's side."""
    gain: float
    bias: float
    """Of colour, relative and of full scale."""


FREE: Final = Variation(any_side_up=True, smallest_crop=0.75, gain=0.2, bias=0.08)
SLIGHT: Final = Variation(any_side_up=False, smallest_crop=0.95, gain=0.1, bias=0.04)
VARIATIONS: Final = {"free": FREE, "slight": SLIGHT}


def augment(pixels: torch.Tensor, generator: torch.Generator, variation: Variation = FREE) -> torch.Tensor:
    """Return ``pixels`` (n, 3, s, s), uint8 or float in [0, 255], turned, cropped and recoloured, as float."""
    count = len(pixels)
    uniform = torch.rand(count, 12, generator=generator)
    angle = math.radians(MAX_ROTATION) * (2 * uniform[:, 1] - 1)
    mirror = torch.ones(count)
    if variation.any_side_up:
        angle = math.pi / 2 * (uniform[:, 0] * 4).floor() + angle
        mirror = torch.where(uniform[:, 3] < 0.5, -1.0, 1.0)
    scale = variation.smallest_crop + (1 - variation.smallest_crop) * uniform[:, 2]
    shift = (2 * uniform[:, 4:6] - 1) * (1 - scale[:, None])
    cos, sin = scale * angle.cos(), scale * angle.sin()
    rows = [torch.stack([mirror * cos, -sin, shift[:, 0]], 1), torch.stack([mirror * sin, cos, shift[:, 1]], 1)]
    theta = torch.stack(rows, 1).to(pixels.device)
    grid = affine_grid(theta, list(pixels.shape), align_corners=False)
    moved = grid_sample(pixels.float(), grid, mode="bilinear", padding_mode="reflection", align_corners=False)
    gain = 1 + variation.gain * (2 * uniform[:, 6:9] - 1)
    bias = 255 * variation.bias * (2 * uniform[:, 9:12] - 1)
    return (moved * gain[:, :, None, None].to(moved) + bias[:, :, None, None].to(moved)).clamp(0, 255)


def degrade(pixels: torch.Tensor, share: float, generator: torch.Generator) -> torch.Tensor:
    """Return ``pixels`` (n, 3, s, s) in [0, 255] with a ``share`` of the pictures degraded as in Eqs. 21–24.

    The benchmark's own degradation is ``evidex.degrade``; this one draws the same model for whole batches on
    the training device, for degradation-aware training alone.
    """
    count, _, height, width = pixels.shape
    chosen = torch.rand(count, generator=generator) < share
    coarse = torch.rand(count, 1, 6, 6, generator=generator)
    color = torch.rand(count, 6, generator=generator)
    seed = int(torch.randint(2**31, (1,), generator=generator))
    noise = torch.Generator(pixels.device).manual_seed(seed)

    image = pixels.float() / 255
    field = interpolate(coarse.to(image), size=(height, width), mode="bicubic", align_corners=True)
    floor, ceiling = field.amin((2, 3), keepdim=True), field.amax((2, 3), keepdim=True)
    transmission = 0.55 + 0.25 * (field - floor) / (ceiling - floor).clamp(min=1e-6)
    image = transmission * image + (1 - transmission) * 0.85  # Eq. 21
    gain, bias = 0.9 + 0.2 * color[:, :3], 0.06 * color[:, 3:] - 0.03
    image = gain[:, :, None, None].to(image) * image + bias[:, :, None, None].to(image)  # Eq. 22
    image = image + 0.02 * torch.randn(image.shape, generator=noise, device=image.device)  # Eq. 23
    stripes = torch.randn((count, 1, height, 1), generator=noise, device=image.device)
    image = image + 0.025 * stripes  # Eq. 24
    return torch.where(chosen[:, None, None, None].to(pixels.device), image.clamp(0, 1) * 255, pixels.float())
