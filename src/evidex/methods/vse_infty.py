"""VSE∞: places and words pooled by learned weights of their rank, a generalised pooling operator (Chen et al., 2021).

Each dimension's values are sorted over the places, and a small recurrent network makes the weight of each rank from
its position alone, so that mean, maximum and everything between can be learned, for any number of places.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.nn.functional import normalize
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from evidex.encoders.protocol import DualEncoder, Places
from evidex.losses.contrastive import triplet_loss
from evidex.losses.total import Features
from evidex.methods.protocol import Implementation, MethodLesson, placed
from evidex.methods.wrapped import MethodEncoder

_POSITION, _HIDDEN = 32, 32
_SHARPNESS = 0.1  # temperature of the softmax over ranks
_DROP = 0.2  # of a picture's places at most, in training
_MARGIN = 0.2


class RankPooling(nn.Module):
    """(n, length, width) with a mask → (n, width)."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(_POSITION, _HIDDEN, batch_first=True, bidirectional=True)
        self.linear = nn.Linear(_HIDDEN, 1, bias=False)

    def weights(self, lengths: torch.Tensor) -> torch.Tensor:
        """The weight of each rank in a set of each of ``lengths``, (n, longest); they depend on nothing else."""
        distinct, which = lengths.unique(return_inverse=True)
        longest = int(distinct.max())
        positions = position_code(longest, self.linear.weight).expand(len(distinct), -1, -1)
        packed = pack_padded_sequence(positions, distinct.cpu(), batch_first=True, enforce_sorted=False)
        hidden, _ = pad_packed_sequence(self.gru(packed)[0], batch_first=True)
        both = hidden.unflatten(-1, (2, _HIDDEN)).mean(-2)
        scores = self.linear(both).squeeze(-1)
        counted = torch.arange(longest, device=scores.device) < distinct[:, None]
        weights: torch.Tensor = (scores / _SHARPNESS).masked_fill(~counted, -math.inf).softmax(-1)
        return weights[which]

    def forward(self, rows: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        lengths = mask.sum(1)
        weights = self.weights(lengths)
        ordered = rows.masked_fill(~mask[..., None], -math.inf).sort(dim=1, descending=True).values
        ordered = ordered[:, : weights.shape[1]]
        counted = torch.arange(weights.shape[1], device=rows.device) < lengths[:, None]
        return (ordered.masked_fill(~counted[..., None], 0) * weights[..., None]).sum(1)


def position_code(length: int, like: torch.Tensor) -> torch.Tensor:
    """Sines and cosines of each position, (length, 32)."""
    place = torch.arange(length, device=like.device, dtype=like.dtype)[:, None]
    rate = torch.exp(
        torch.arange(0, _POSITION, 2, device=like.device, dtype=like.dtype) * (-math.log(10000.0) / _POSITION)
    )
    return torch.stack([(place * rate).sin(), (place * rate).cos()], -1).flatten(1)


def dropped(places: Places) -> Places:
    """Leave out up to a fifth of each picture's places, so that the pooling sees sets of many sizes."""
    share = torch.rand(len(places.rows), 1, device=places.rows.device)
    draw = torch.rand(places.mask.shape, device=places.rows.device)
    kept = places.mask & ((share <= _DROP) | (draw > _DROP * share))
    kept[:, 0] |= ~kept.any(1)
    return Places(places.rows, kept)


class VseInftyEncoder(MethodEncoder):
    """Both towers without their pooling: each place and word goes into the common space and is pooled there."""

    method = "vse_infty"

    def __init__(self, base: DualEncoder) -> None:
        super().__init__(base)
        towers = placed(base, "VSE∞")
        for head in towers.heads():
            head.requires_grad_(False)  # they are not used
        self.head = nn.ModuleDict(
            {
                "place": towers.new_place_head(),
                "word": towers.new_word_head(),
                "image_pool": RankPooling(),
                "text_pool": RankPooling(),
            }
        )

    def image_features(self, pixels: torch.Tensor) -> torch.Tensor:
        places = placed(self.base, "VSE∞").image_places(pixels)
        if self.training:
            places = dropped(places)
        return normalize(self.head["image_pool"](self.head["place"](places.rows).float(), places.mask), dim=-1)

    def text_features(self, tokens: dict[str, torch.Tensor]) -> torch.Tensor:
        words = placed(self.base, "VSE∞").text_places(tokens)
        return normalize(self.head["text_pool"](self.head["word"](words.rows).float(), words.mask), dim=-1)


class VseInfty(Implementation):
    """The pooling, with VSE++'s loss at the authors' margin; they begin with an epoch of all negatives."""

    def wrap(self, base: DualEncoder, captions: Sequence[Sequence[str]]) -> DualEncoder:
        del captions
        return VseInftyEncoder(base)

    def rebuild(self, base: DualEncoder, options: dict[str, Any]) -> DualEncoder:
        del options
        return VseInftyEncoder(base)

    def loss(self, batch: Features, lesson: MethodLesson) -> dict[str, torch.Tensor]:
        hardest, ignore = lesson.hardest_alone, lesson.ignored(batch)
        return {"triplet": triplet_loss(batch.similarity(), hardest=hardest, margin=_MARGIN, ignore=ignore)}


METHOD = VseInfty()
