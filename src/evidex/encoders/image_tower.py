"""What every image tower is: a network, how its pixels are normalised, and how published weights fit it."""

from __future__ import annotations

import torch
from torch import nn

from evidex.encoders.sizes import CONVNET_PIXELS, Pixels


class ImageTower(nn.Module):
    """A network from normalised pixels (n, 3, s, s) to one vector a picture, with what has to be known to feed it."""

    out_dim: int
    pixels: Pixels = CONVNET_PIXELS
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
        colours = (self.pixels.mean, self.pixels.scale)
        mean, scale = (torch.tensor(each, device=pixels.device).view(3, 1, 1) for each in colours)
        ordered = pixels.flip(1) if self.pixels.bgr else pixels
        return ((ordered.float() - mean) / scale).contiguous(memory_format=torch.channels_last)

    def fit(self, name: str, value: torch.Tensor) -> torch.Tensor:
        """Return the published tensor ``name`` as this tower's shape needs it."""
        del name
        return value
