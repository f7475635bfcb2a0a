"""Several encoders as one: the parts of a feature are its members', so that a similarity is the mean of theirs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn
from torch.nn.functional import interpolate, normalize

from evidex.encoders.protocol import DualEncoder
from evidex.encoders.towers import TowerEncoder
from evidex.errors import ModelError

if TYPE_CHECKING:
    from PIL.Image import Image

VIEWS = (1, 4, 8)  # as it is; the quarter turns; those and their mirror images


class CommitteeEncoder(DualEncoder):
    """Members that share a tokenizer, asked together.

    ``views``: an overhead picture has no upright side, so each member's image feature may be the mean over its
    quarter turns (4) and their mirror images (8).
    """

    def __init__(self, members: Sequence[TowerEncoder], *, views: int = 1) -> None:
        super().__init__()
        if not members:
            raise ModelError("a committee of no members; give at least one model")
        if views not in VIEWS:
            raise ModelError(f"{views} views of a picture; choose one of {', '.join(map(str, VIEWS))}")
        if any(member.tokenizer.vocabulary != members[0].tokenizer.vocabulary for member in members):
            raise ModelError("the members' vocabularies differ; a committee needs one tokenizer")
        self.members = nn.ModuleList(members)
        self.views = views
        self.dim = sum(member.dim for member in members)
        self.image_size = max(member.image_size for member in members)
        self.mask_id = members[0].mask_id

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> CommitteeEncoder:
        return cls([TowerEncoder(member) for member in spec["members"]], views=spec["views"])

    def prepare_image(self, image: Image) -> np.ndarray:
        largest = max(self._towers(), key=lambda member: member.image_size)
        return largest.prepare_image(image)

    def tokenize(self, texts: Sequence[str]) -> dict[str, torch.Tensor]:
        return self._towers()[0].tokenize(texts)

    def image_features(self, pixels: torch.Tensor) -> torch.Tensor:
        return _joined([self._seen(member, pixels) for member in self._towers()])

    def text_features(self, tokens: dict[str, torch.Tensor]) -> torch.Tensor:
        return _joined([member.text_features(tokens) for member in self._towers()])

    def spec(self) -> dict[str, Any]:
        return {"kind": "committee", "views": self.views, "members": [member.spec() for member in self._towers()]}

    def _towers(self) -> list[TowerEncoder]:
        return [member for member in self.members if isinstance(member, TowerEncoder)]

    def _seen(self, member: TowerEncoder, pixels: torch.Tensor) -> torch.Tensor:
        """Return the member's feature of the pictures at its own size, over all views."""
        size = (member.image_size, member.image_size)
        if pixels.shape[2:] != size:
            pixels = interpolate(pixels.float(), size, mode="bicubic", antialias=True).clamp(0, 255)
        total = member.image_features(pixels)
        for view in range(1, self.views):
            turned = torch.rot90(pixels, view % 4, (2, 3))
            total = total + member.image_features(turned.flip(3) if view >= 4 else turned)
        return normalize(total, dim=-1)


def _joined(features: list[torch.Tensor]) -> torch.Tensor:
    return torch.cat(features, -1) / math.sqrt(len(features))
