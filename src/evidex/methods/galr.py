"""GaLR: the whole of a picture and a graph over the objects in it, fused (Yuan et al., 2022).

AMFMN's visual self-attention sees the whole; three graph convolutions see the objects that a detector found. Each
corrects the other (multi-level information dynamic fusion), and a text is compared with the weighted sum of both.
The graphs come with the dataset (`evidex.data.object_graphs`), so a model of this kind is measured, but no gallery
takes it. Similarities are ranked a second time where all of them are known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.functional import dropout, normalize, relu

from evidex.data.object_graphs import NODES
from evidex.encoders.protocol import DualEncoder
from evidex.losses.contrastive import triplet_loss
from evidex.losses.total import Features
from evidex.methods.amfmn import VisualSelfAttention, pyramid_sides
from evidex.methods.multivariate_rerank import multivariate_rerank
from evidex.methods.protocol import Implementation, MethodLesson, placed
from evidex.methods.wrapped import MethodEncoder

_HEADS = 8
_DROPOUT, _FUSION_DROPOUT = 0.1, 0.2
_MARGIN = 0.2


class ObjectGraph(nn.Module):
    """Three graph convolutions over a picture's objects, and a layer over all of them: (n, 2, 20, 20) → (n, dim)."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        widths = (NODES, NODES, NODES // 2, NODES)
        self.layers = nn.ModuleList(nn.Linear(before, after, bias=False) for before, after in pairwise(widths))
        self.out = nn.Linear(NODES * NODES, dim)

    def forward(self, graphs: torch.Tensor) -> torch.Tensor:
        nodes, links = graphs.unbind(1)
        for layer in self.layers:
            nodes = relu(layer(links @ nodes))
        return normalize(self.out(nodes.flatten(1)).float(), dim=-1)


class Attended(nn.Module):
    """Attention to a single token: that token's value, whatever is asked; in training whole heads are dropped."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.value, self.merge = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self._heads = math.gcd(dim, _HEADS)

    def forward(self, token: torch.Tensor) -> torch.Tensor:
        heads = self.value(token).unflatten(-1, (self._heads, -1))
        kept = dropout(heads.new_ones(*heads.shape[:-1], 1), _DROPOUT, self.training)
        merged: torch.Tensor = self.merge((heads * kept).flatten(-2))
        return merged


class Transformed(nn.Module):
    """A feature that attends to itself, to another one if there is one, and goes through two layers."""

    def __init__(self, dim: int, *, guided: bool) -> None:
        super().__init__()
        self.attended = nn.ModuleList(Attended(dim) for _ in range(1 + guided))
        self.norms = nn.ModuleList(nn.LayerNorm(dim, eps=1e-6) for _ in range(2 + guided))
        self.wide, self.narrow = nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim)

    def forward(self, feature: torch.Tensor, *guide: torch.Tensor) -> torch.Tensor:
        first, *rest = self.attended
        feature = self._added(0, feature, first(feature))
        for place, (attended, other) in enumerate(zip(rest, guide, strict=True), 1):
            feature = self._added(place, feature, attended(other))
        hidden = dropout(relu(self.wide(feature)), _DROPOUT, self.training)
        return self._added(-1, feature, self.narrow(hidden))

    def _added(self, place: int, feature: torch.Tensor, more: torch.Tensor) -> torch.Tensor:
        normed: torch.Tensor = self.norms[place](feature + dropout(more, _DROPOUT, self.training))
        return normed


class DynamicFusion(nn.Module):
    """The whole and the objects, each corrected by the other, in a sum whose two weights depend on both."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.own_whole, self.own_objects = Transformed(dim, guided=False), Transformed(dim, guided=False)
        self.guided_objects, self.guided_whole = Transformed(dim, guided=True), Transformed(dim, guided=True)
        self.weigh, self.weights = nn.Linear(dim, dim), nn.Linear(dim, 2)

    def forward(self, whole: torch.Tensor, objects: torch.Tensor) -> torch.Tensor:
        whole, objects = self.own_whole(whole), self.own_objects(objects)
        objects = self.guided_objects(objects, whole)
        whole = self.guided_whole(whole, objects)
        corrected, supplemented = torch.sigmoid(objects) * whole, whole + objects
        seen = dropout(torch.sigmoid(self.weigh(corrected + supplemented)), _FUSION_DROPOUT, self.training)
        weights: torch.Tensor = self.weights(seen).softmax(-1)
        return weights[:, :1] * corrected + weights[:, 1:] * supplemented


class GalrEncoder(MethodEncoder):
    """Unit rows; a picture without a graph is one in which nothing was found."""

    method = "galr"
    object_graphs = True

    def __init__(self, base: DualEncoder, options: dict[str, Any]) -> None:
        super().__init__(base, options)
        towers = placed(base, "GaLR")
        for head in towers.heads():
            head.requires_grad_(False)  # they are not used
        self.head = nn.ModuleDict(
            {
                "vision": VisualSelfAttention(towers.pyramid_channels(), options["sides"], base.dim),
                "objects": ObjectGraph(base.dim),
                "fusion": DynamicFusion(base.dim),
                "text": towers.new_word_head(),
            }
        )

    def image_features(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.image_features_with(pixels, torch.zeros(len(pixels), 2, NODES, NODES, device=pixels.device))

    def image_features_with(self, pixels: torch.Tensor, graphs: torch.Tensor) -> torch.Tensor:
        seen = self.head["vision"](placed(self.base, "GaLR").image_pyramid(pixels)).float()
        fused = self.head["fusion"](normalize(seen, dim=-1), self.head["objects"](graphs))
        return normalize(fused.float(), dim=-1)

    def text_features(self, tokens: dict[str, torch.Tensor]) -> torch.Tensor:
        words = placed(self.base, "GaLR").text_places(tokens)
        weight = words.mask[..., None].to(words.rows.dtype)
        return normalize(relu(self.head["text"]((words.rows * weight).sum(1) / weight.sum(1)).float()), dim=-1)

    def reranked(self, scores: NDArray[Any]) -> NDArray[np.float64]:
        return multivariate_rerank(scores)


class Galr(Implementation):
    """The network with the authors' loss: the hinges of all negatives."""

    def wrap(self, base: DualEncoder, captions: Sequence[Sequence[str]]) -> DualEncoder:
        del captions
        return GalrEncoder(base, {"sides": pyramid_sides(placed(base, "GaLR"))})

    def rebuild(self, base: DualEncoder, options: dict[str, Any]) -> DualEncoder:
        return GalrEncoder(base, options)

    def loss(self, batch: Features, lesson: MethodLesson) -> dict[str, torch.Tensor]:
        cost = triplet_loss(batch.similarity(), hardest=False, margin=_MARGIN, ignore=lesson.ignored(batch))
        return {"triplet": cost}


METHOD = Galr()
