"""The towers as they are used, not trained: batch norms folded away, a few pictures at a time.

The plain towers stay what they are; this form is made from them when a model is loaded on a CPU and is never saved.
"""

from __future__ import annotations

import copy

import torch
from torch import nn
from torch.nn.functional import normalize

from evidex.encoders.image_tower import ImageTower
from evidex.encoders.towers import TowerEncoder

_CHUNK = 8  # pictures that pass together: of more of them the wide first layers would not stay in the cache


class InferenceTowers:
    """The features of ``encoder``, equal up to rounding and faster. Later changes of its image tower are not seen."""

    def __init__(self, encoder: TowerEncoder) -> None:
        self._encoder = encoder
        tower = folded(encoder.image_tower).requires_grad_(False)
        tower.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self._image_tower = tower

    def image_features(self, pixels: torch.Tensor) -> torch.Tensor:
        """Map (n, 3, s, s), uint8 or float in [0, 255], to unit rows (n, dim)."""
        pooled = [self._image_tower(self._image_tower.normalise(part)) for part in pixels.split(_CHUNK)]
        return normalize(self._encoder.image_head(torch.cat(pooled)), dim=-1)

    def text_features(self, tokens: dict[str, torch.Tensor]) -> torch.Tensor:
        """Map the encoder's tokens to unit rows (n, dim)."""
        return self._encoder.text_features(tokens)


def folded(tower: ImageTower) -> ImageTower:
    """Return a copy of ``tower`` in which every batch norm has become part of the convolution before it.

    In every tower a batch norm is registered right after its convolution, in the same module.
    """
    tower = copy.deepcopy(tower).eval()
    for parent in list(tower.modules()):
        previous: nn.Module | None = None
        for name, child in list(parent.named_children()):
            if isinstance(child, nn.BatchNorm2d):
                if not isinstance(previous, nn.Conv2d) or previous.out_channels != child.num_features:
                    raise TypeError(f"batch norm '{name}' does not follow its convolution; register it right after it")
                _fold(previous, child)
                setattr(parent, name, nn.Identity())
            previous = child
    return tower


def _fold(convolution: nn.Conv2d, norm: nn.BatchNorm2d) -> None:
    """Put ``norm``, as it acts after training, into ``convolution``; computed in float64."""
    mean, variance = norm.running_mean, norm.running_var
    if mean is None or variance is None:
        raise TypeError("a batch norm without running statistics cannot be folded; keep its statistics in training")
    dtype = convolution.weight.dtype
    scale = (variance.detach().double() + norm.eps).rsqrt()
    shift = -mean.detach().double() * scale
    if norm.affine:
        scale, shift = scale * norm.weight.detach().double(), shift * norm.weight.detach().double()
        shift = shift + norm.bias.detach().double()
    if convolution.bias is not None:
        shift = shift + convolution.bias.detach().double() * scale
    weight = convolution.weight.detach().double() * scale.view(-1, 1, 1, 1)
    convolution.weight, convolution.bias = nn.Parameter(weight.to(dtype)), nn.Parameter(shift.to(dtype))
