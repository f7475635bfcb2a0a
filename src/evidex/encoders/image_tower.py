"""What every image tower is: a network, how its pixels are normalised, and how published weights fit it."""

from __future__ import annotations

import torch
from torch import nn


class ImageTower(nn.Module):
    """A network from normalised pixels (n, 3, s, s) to one vector a picture, with what has to be known to feed it."""

    out_dim: int
    pixel_mean: tuple[float, float, float] = (127.5, 127.5, 127.5)
    pixel_scale: tuple[float, float, float] = (127.5, 127.5, 127.5)
    bgr: bool = False
    channels: tuple[int, int, int, int]
    """Of the four grids of `grids`."""

    def grids(self, pixels: torch.Tensor) -> list[torch.Tensor]:
        """Four grids (n, channels, side, side) on the way to the vector; the last is what is pooled."""
        raise NotImplementedError

    def entry(self) -> nn.Module:
        """The module whose output is the first grid, or the first tokens."""
        raise NotImplementedError

    def blocks(self) -> list[nn.Module]:
        """The modules that follow one another from there, each with places in and places out."""
        raise NotImplementedError

    def normalise(self, pixels: torch.Tensor) -> torch.Tensor:
        """Return RGB ``pixels`` (n, 3, s, s), uint8 or float in [0, 255], as this tower was trained to see them."""
        mean, scale = (torch.tensor(v, device=pixels.device).view(3, 1, 1) for v in (self.pixel_mean, self.pixel_scale))
        ordered = pixels.flip(1) if self.bgr else pixels
        return ((ordered.float() - mean) / scale).contiguous(memory_format=torch.channels_last)

    def fit(self, name: str, value: torch.Tensor) -> torch.Tensor:
        """Return the published tensor ``name`` as this tower's shape needs it."""
        del name
        return value
