"""AMFMN: features of several scales gate one another, and the picture gates the text (Yuan et al., 2021).

Shallow and deep grids together say which parts of a picture's feature matter (multi-scale visual self-attention), and
that feature says which parts of a text's do. A text thus has another vector for every picture: rows are compared by a
similarity of their own, and no gallery can hold them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.nn.functional import interpolate, relu

from evidex.encoders.protocol import DualEncoder, PlacedEncoder
from evidex.losses.contrastive import all_triplets_loss
from evidex.losses.total import Features
from evidex.methods.protocol import Implementation, MethodLesson, placed
from evidex.methods.wrapped import MethodEncoder

_CHANNELS = 3  # of each of the two grids that attention looks at
_MARGIN = 0.2
_TINY = 1e-8


class VisualSelfAttention(nn.Module):
    """Four grids → (n, dim): the deepest one's mean, gated by what shallow and deep grids show together."""

    def __init__(self, channels: Sequence[int], sides: Sequence[int], dim: int) -> None:
        super().__init__()
        step = max(sides[0] // sides[2], 1)
        self.low = nn.Conv2d(channels[0] + channels[1], _CHANNELS, 3, step, padding=int(step == 1))
        self.high = nn.Conv2d(channels[2] + channels[3], _CHANNELS, 1)
        self.main = nn.Conv2d(2 * _CHANNELS, 1, 1)
        self.attention = nn.Conv2d(2 * _CHANNELS, 1, 1)
        self.solo = nn.Linear(channels[3], dim)
        self.gate = nn.Linear(sides[2] ** 2, dim)

    def forward(self, grids: Sequence[torch.Tensor]) -> torch.Tensor:
        low = self.low(torch.cat([grids[0], _as_large(grids[1], grids[0])], 1))
        high = self.high(torch.cat([grids[2], _as_large(grids[3], grids[2])], 1))
        both = torch.cat([low, high], 1) + high.mean(1, keepdim=True)
        seen = (self.main(both) * torch.sigmoid(self.attention(both))).flatten(1)
        gated: torch.Tensor = self.solo(grids[3].mean((2, 3))) * torch.sigmoid(self.gate(seen))
        return gated


def _as_large(grid: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    return interpolate(grid, other.shape[2:], mode="nearest")


def pyramid_sides(towers: PlacedEncoder) -> list[int]:
    """The sides of the four grids that the image tower makes of a picture."""
    was_training = towers.training
    with torch.no_grad():
        blank = torch.zeros(1, 3, towers.image_size, towers.image_size, device=towers.device)
        sides = [int(grid.shape[-1]) for grid in towers.eval().image_pyramid(blank)]
    towers.train(was_training)
    return sides


class AmfmnEncoder(MethodEncoder):
    """A row of a picture is v ⊙ g/|v| and g², with its feature v and its gate g; one of a text is t and t²."""

    method = "amfmn"
    inner_product = False

    def __init__(self, base: DualEncoder, options: dict[str, Any]) -> None:
        super().__init__(base, options)
        towers = placed(base, "AMFMN")
        for head in towers.heads():
            head.requires_grad_(False)  # they are not used
        self.dim = 2 * base.dim
        self.head = nn.ModuleDict(
            {
                "vision": VisualSelfAttention(towers.pyramid_channels(), options["sides"], base.dim),
                "text": towers.new_word_head(),
                "gate": nn.Linear(base.dim, base.dim),
            }
        )

    def image_features(self, pixels: torch.Tensor) -> torch.Tensor:
        feature = self.head["vision"](placed(self.base, "AMFMN").image_pyramid(pixels)).float()
        gate = torch.sigmoid(self.head["gate"](feature))
        return torch.cat([feature * gate / feature.norm(dim=-1, keepdim=True).clamp(min=_TINY), gate.square()], -1)

    def text_features(self, tokens: dict[str, torch.Tensor]) -> torch.Tensor:
        words = placed(self.base, "AMFMN").text_places(tokens)
        weight = words.mask[..., None].to(words.rows.dtype)
        feature = relu(self.head["text"]((words.rows * weight).sum(1) / weight.sum(1)).float())
        return torch.cat([feature, feature.square()], -1)

    def similarity(self, images: torch.Tensor, texts: torch.Tensor) -> torch.Tensor:
        """The cosine between v and g ⊙ t, from two matrix products."""
        (drawn, gates), (feature, squares) = images.float().chunk(2, -1), texts.float().chunk(2, -1)
        length = (gates @ squares.T).clamp(min=_TINY**2).sqrt()
        return drawn @ feature.T / length


class Amfmn(Implementation):
    """The network with the authors' loss: the hinges of all negatives."""

    inner_product = False

    def wrap(self, base: DualEncoder, captions: Sequence[Sequence[str]]) -> DualEncoder:
        del captions
        return AmfmnEncoder(base, {"sides": pyramid_sides(placed(base, "AMFMN"))})

    def rebuild(self, base: DualEncoder, options: dict[str, Any]) -> DualEncoder:
        return AmfmnEncoder(base, options)

    def loss(self, batch: Features, lesson: MethodLesson) -> dict[str, torch.Tensor]:
        similarity = lesson.encoder.similarity(batch.image, batch.text)
        cost = all_triplets_loss(similarity, margin=_MARGIN, ignore=lesson.ignored(batch))
        return {"triplet": cost / len(similarity)}


METHOD = Amfmn()
