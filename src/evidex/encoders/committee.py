"""Several encoders as one: the parts of a feature are its members', so that a similarity is the mean of theirs."""

from __future__ import annotations

import math
import reprlib
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


class CommitteeEncoder(DualEncoder):
    """Members that share a tokenizer, asked together."""

    def __init__(self, members: Sequence[TowerEncoder]) -> None:
        super().__init__()
        if not members:
            raise ModelError("a committee of no members; give at least one model")
        if any(member.tokenizer.vocabulary != members[0].tokenizer.vocabulary for member in members):
            raise ModelError("the members' vocabularies differ; a committee needs one tokenizer")
        self.members = nn.ModuleList(members)
        self.dim = sum(member.dim for member in members)
        self.image_size = max(member.image_size for member in members)

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> CommitteeEncoder:
        if spec.get("views", 1) != 1:
            raise ModelError(
                f"a committee that turns its pictures ({reprlib.repr(spec['views'])} views) is read no more; "
                "put its members together anew with evidex study"
            )
        return cls([TowerEncoder(member) for member in spec["members"]])

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
        # "views" says nothing any more, but the fingerprints of all committees are made with it.
        return {"kind": "committee", "views": 1, "members": [member.spec() for member in self._towers()]}

    def _towers(self) -> list[TowerEncoder]:
        return [member for member in self.members if isinstance(member, TowerEncoder)]

    def _seen(self, member: TowerEncoder, pixels: torch.Tensor) -> torch.Tensor:
        """Return the member's feature of the pictures at its own size."""
        size = (member.image_size, member.image_size)
        if pixels.shape[2:] != size:
            pixels = interpolate(pixels.float(), size, mode="bicubic", antialias=True).clamp(0, 255)
        return normalize(member.image_features(pixels), dim=-1)


def _joined(features: list[torch.Tensor]) -> torch.Tensor:
    return torch.cat(features, -1) / math.sqrt(len(features))
