"""SIRS: a text is compared with a picture at four scales, and the four similarities are averaged (Zhu et al., 2024).

This is what its authors train on RSICD. Their segmentation branch, which weighs the places of each scale, learns from
masks of the pictures, and there are none of RSICD. The mean of cosines is an inner product with the mean of unit
vectors, so a row is a unit vector like any other: that mean, and what is missing to unit length.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.nn.functional import normalize, relu

from evidex.encoders.protocol import DualEncoder
from evidex.losses.contrastive import all_triplets_loss
from evidex.losses.total import Features
from evidex.methods.protocol import Implementation, MethodLesson, placed
from evidex.methods.wrapped import MethodEncoder

_MARGIN, _WEIGHT = 0.2, 20.0


class SirsEncoder(MethodEncoder):
    """A layer for each of four grids, averaged over its places; in training a row has no part for what is missing."""

    method = "sirs"

    def __init__(self, base: DualEncoder) -> None:
        super().__init__(base)
        towers = placed(base, "SIRS")
        for head in towers.heads():
            head.requires_grad_(False)  # they are not used
        self.dim = base.dim + 1
        scales = nn.ModuleList(nn.Linear(channels, base.dim) for channels in towers.pyramid_channels())
        self.head = nn.ModuleDict({"scales": scales, "text": towers.new_word_head()})

    def image_features(self, pixels: torch.Tensor) -> torch.Tensor:
        mean = self.image_outputs(pixels)
        missing = (1 - mean.square().sum(-1, keepdim=True)).clamp(min=0).sqrt()
        return torch.cat([mean, missing], -1)

    def text_features(self, tokens: dict[str, torch.Tensor]) -> torch.Tensor:
        feature = self.text_outputs(tokens)
        return torch.cat([feature, torch.zeros_like(feature[:, :1])], -1)

    def image_outputs(self, pixels: torch.Tensor) -> torch.Tensor:
        grids = placed(self.base, "SIRS").image_pyramid(pixels)
        layers = self.head["scales"].children()
        scales = [layer(grid.mean((2, 3))).float() for layer, grid in zip(layers, grids, strict=True)]
        return torch.stack([normalize(scale, dim=-1) for scale in scales]).mean(0)

    def text_outputs(self, tokens: dict[str, torch.Tensor]) -> torch.Tensor:
        words = placed(self.base, "SIRS").text_places(tokens)
        weight = words.mask[..., None].to(words.rows.dtype)
        return normalize(relu(self.head["text"]((words.rows * weight).sum(1) / weight.sum(1)).float()), dim=-1)


class Sirs(Implementation):
    """The network with the authors' loss: the mean hinge of all negatives."""

    def wrap(self, base: DualEncoder, captions: Sequence[Sequence[str]]) -> DualEncoder:
        del captions
        return SirsEncoder(base)

    def rebuild(self, base: DualEncoder, options: dict[str, Any]) -> DualEncoder:
        del options
        return SirsEncoder(base)

    def loss(self, batch: Features, lesson: MethodLesson) -> dict[str, torch.Tensor]:
        count = len(batch.image)
        cost = all_triplets_loss(batch.similarity(), margin=_MARGIN, ignore=lesson.ignored(batch))
        return {"triplet": _WEIGHT * cost / (2 * count * (count - 1))}


METHOD = Sirs()
