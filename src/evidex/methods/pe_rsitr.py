"""PE-RSITR: frozen towers with one small adapter beside each block, and a hybrid contrastive loss (Yuan et al., 2023).

The adapter narrows to 64 dimensions and widens again; it is the same in every layer of a tower, and the last 64 of the
dimensions it adds are made by a layer that both towers share. Beside the pairs, the loss draws each item to itself
with a part of its first tokens dropped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn.functional import dropout, relu

from evidex.encoders.protocol import DualEncoder
from evidex.losses.contrastive import hardest_triplet_loss, triplet_loss
from evidex.losses.total import Features, same_pictures
from evidex.methods.adapters import AdapterBeside, Dropping, freeze, spot_of
from evidex.methods.protocol import Implementation, MethodLesson, placed
from evidex.methods.wrapped import MethodEncoder

_NARROW, _SHARED = 64, 64
_ADAPTER_DROPOUT = 0.5
_TOKEN_DROPOUT = 0.2
_MARGIN = 0.2


class SharedAdapter(nn.Module):
    """(…, width) → (…, width): down, ReLU, dropout, up; the last dimensions come from ``shared``."""

    def __init__(self, width: int, shared: nn.Linear) -> None:
        super().__init__()
        self.down = nn.Linear(width, _NARROW)
        self.up = nn.Linear(_NARROW, width - shared.out_features)
        self._shared = [shared]  # in a list, since it is a part of the encoder and not of each adapter
        nn.init.kaiming_uniform_(self.down.weight, a=math.sqrt(5))
        nn.init.zeros_(self.down.bias)
        for layer in (self.up, shared):
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        narrow = dropout(relu(self.down(rows)), _ADAPTER_DROPOUT, self.training)
        return torch.cat([self.up(narrow), self._shared[0](narrow)], -1)


class PeRsitrEncoder(MethodEncoder):
    """Frozen towers with adapters; in training a row holds the feature and that of the item with tokens dropped."""

    method = "pe_rsitr"

    def __init__(self, base: DualEncoder) -> None:
        super().__init__(base)
        towers = placed(base, "PE-RSITR")
        freeze(base, towers.heads())
        parts = {"image": towers.image_entry_and_blocks(), "text": towers.text_entry_and_blocks()}
        spots = {name: [spot_of(block) for block in blocks] for name, (_, blocks) in parts.items()}
        narrowest = min(spot.width for each in spots.values() for spot in each)
        shared = nn.Linear(_NARROW, min(_SHARED, narrowest // 2))
        self.head = nn.ModuleDict({"shared": shared})
        for name, each in spots.items():
            for spot in each:
                key = f"{name}_{spot.width}"
                if key not in self.head:
                    self.head[key] = SharedAdapter(spot.width, shared)
                AdapterBeside(self.head[key], spot, tapped=True)
        self._dropping = [Dropping(entry, _TOKEN_DROPOUT) for entry, _ in parts.values()]

    def train(self, mode: bool = True) -> PeRsitrEncoder:
        super().train(mode)
        self.base.eval()  # what is frozen keeps its statistics too
        return self

    def image_outputs(self, pixels: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.image_features(pixels), self._varied(self.image_features, pixels)], -1)

    def text_outputs(self, tokens: dict[str, torch.Tensor]) -> torch.Tensor:
        return torch.cat([self.text_features(tokens), self._varied(self.text_features, tokens)], -1)

    def _varied(self, features: Callable[[Any], torch.Tensor], given: Any) -> torch.Tensor:
        for each in self._dropping:
            each.active = True
        try:
            return features(given)
        finally:
            for each in self._dropping:
                each.active = False


class PeRsitr(Implementation):
    """VSE++'s loss between modalities, and within each between an item and its varied self.

    The authors' towers know of each other from the start. Where heads start from nothing, the loss between modalities
    can begin with all negatives (``loss.all_negatives_epochs``), which is ours.
    """

    def wrap(self, base: DualEncoder, captions: Sequence[Sequence[str]]) -> DualEncoder:
        del captions
        return PeRsitrEncoder(base)

    def rebuild(self, base: DualEncoder, options: dict[str, Any]) -> DualEncoder:
        del options
        return PeRsitrEncoder(base)

    def loss(self, batch: Features, lesson: MethodLesson) -> dict[str, torch.Tensor]:
        image, varied_image = batch.image.float().chunk(2, -1)
        text, varied_text = batch.text.float().chunk(2, -1)
        hardest, ignore = lesson.hardest_alone, lesson.ignored(batch)
        return {
            "cross": triplet_loss(image @ text.T, hardest=hardest, margin=_MARGIN, ignore=ignore),
            "image": hardest_triplet_loss(image @ varied_image.T, margin=_MARGIN, ignore=same_pictures(batch)),
            "text": hardest_triplet_loss(text @ varied_text.T, margin=_MARGIN, ignore=ignore),
        }


METHOD = PeRsitr()
