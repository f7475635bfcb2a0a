"""PAU: prototypes of each modality give evidence, and from it an uncertainty of its own (Li et al., 2023).

A picture is compared with prototypes of texts and a text with prototypes of pictures. Much evidence means that many
meanings fit: the uncertainty is 1 − K/S, and the loss teaches it to follow how similar the others of the batch are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.nn.functional import mse_loss, normalize

from evidex.encoders.protocol import DualEncoder, Modality
from evidex.evidence import uncertainty
from evidex.losses.contrastive import info_nce_loss
from evidex.losses.total import Features
from evidex.methods.protocol import Implementation, MethodLesson
from evidex.methods.wrapped import MethodEncoder

_PROTOTYPES = 8
_TAU = 5.0
_UNCERTAINTY_WEIGHT, _DIVERSITY_WEIGHT = 100.0, 0.015
_LARGEST_SCALE = math.log(100)  # CLIP's bound


class PauEncoder(MethodEncoder):
    """The plain features, with prototypes in the same space and a logit scale that stays with the model."""

    method = "pau"

    def __init__(self, base: DualEncoder, scale: float = 0.0) -> None:
        super().__init__(base)
        self.head = nn.ParameterDict(
            {
                "image_prototypes": nn.init.xavier_uniform_(torch.empty(_PROTOTYPES, base.dim)),
                "text_prototypes": nn.init.xavier_uniform_(torch.empty(_PROTOTYPES, base.dim)),
                "scale": torch.tensor(scale),
            }
        )

    def logit_scale(self) -> torch.Tensor:
        scale: torch.Tensor = self.head["scale"].clamp(max=_LARGEST_SCALE).exp()
        return scale

    def prototypes(self, modality: Modality) -> torch.Tensor:
        """Unit rows."""
        return normalize(self.head[f"{modality}_prototypes"], dim=-1)

    def own_uncertainty(self, rows: torch.Tensor, modality: Modality) -> torch.Tensor:
        """1 − K/S, with the prototypes of the other modality."""
        other: Modality = "text" if modality == "image" else "image"
        return ambiguity(self.logit_scale() * rows @ self.prototypes(other).T)

    def loss_parameters(self) -> list[nn.Parameter]:
        return list(self.head.parameters())


def ambiguity(logits: torch.Tensor) -> torch.Tensor:
    """1 − K/S of each row of ``logits`` (n, K), with evidence exp(logit/τ)."""
    return 1 - uncertainty(logits, _TAU)


def uncertainty_loss(logits: torch.Tensor, prototype_logits: torch.Tensor) -> torch.Tensor:
    """Squared difference between 1 − K/S and how similar the others are on average, brought to the same mean.

    ``logits`` (n, n) of queries and candidates with the positives on the diagonal, ``prototype_logits`` (n, K).
    """
    others = logits.masked_fill(torch.eye(len(logits), dtype=torch.bool, device=logits.device), 0).mean(1)
    found = ambiguity(prototype_logits)
    return mse_loss(found, found.mean() / others.mean() * others)


def diversity_loss(logits: torch.Tensor) -> torch.Tensor:
    """Mean square of the similarities between different prototypes, (K, K)."""
    return logits.masked_fill(torch.eye(len(logits), dtype=torch.bool, device=logits.device), 0).square().mean()


class Pau(Implementation):
    """InfoNCE, with prototypes that learn the ambiguity of each query."""

    def wrap(self, base: DualEncoder, captions: Sequence[Sequence[str]]) -> DualEncoder:
        del captions
        return PauEncoder(base, base.start_scale)

    def rebuild(self, base: DualEncoder, options: dict[str, Any]) -> DualEncoder:
        del options
        return PauEncoder(base)

    def loss(self, batch: Features, lesson: MethodLesson) -> dict[str, torch.Tensor]:
        encoder = lesson.encoder
        assert isinstance(encoder, PauEncoder)
        scale, image, text = encoder.logit_scale(), batch.image.float(), batch.text.float()
        similarity, images, texts = image @ text.T, encoder.prototypes("image"), encoder.prototypes("text")
        logits = scale * similarity
        unsure = uncertainty_loss(logits, scale * image @ texts.T) + uncertainty_loss(logits.T, scale * text @ images.T)
        alike = diversity_loss(scale * texts @ texts.T) + diversity_loss(scale * images @ images.T)
        return {
            "infonce": info_nce_loss(similarity, scale=scale, ignore=lesson.ignored(batch)),
            "uncertainty": _UNCERTAINTY_WEIGHT * unsure / 2,
            "diversity": _DIVERSITY_WEIGHT * alike,
        }


METHOD = Pau()
