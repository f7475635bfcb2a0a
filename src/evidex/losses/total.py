"""ELC's training loss as named parts (Eq. 19)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from evidex.config import LossConfig
from evidex.errors import TrainingError
from evidex.evidence import Temperature
from evidex.losses.edl import edl_parts
from evidex.losses.regression import regression_loss
from evidex.losses.relation import relation_loss
from evidex.losses.ucl import ucl_loss


@dataclass(frozen=True)
class Features:
    """One batch after the encoders: a row each, and what the loss has to know about the pairs."""

    image: torch.Tensor
    text: torch.Tensor
    image_mentor: torch.Tensor | None = None
    text_mentor: torch.Tensor | None = None
    caption_ids: torch.Tensor | None = None  # equal ids mark equal sentences
    image_ids: torch.Tensor | None = None  # equal ids mark the same picture
    facts: torch.Tensor | None = None  # what a method knows of each picture besides (Implementation.facts)

    def similarity(self) -> torch.Tensor:
        """Inner products (images, captions) of unit rows, for both directions (Eq. 1)."""
        return self.image.float() @ self.text.float().T


@dataclass(frozen=True)
class LossParts:
    """The weighted parts of the loss; ``total`` is their sum."""

    total: torch.Tensor
    parts: dict[str, torch.Tensor]

    def detached(self) -> LossParts:
        """The values alone, without what a gradient needs."""
        return LossParts(self.total.detach(), {name: part.detach() for name, part in self.parts.items()})

    def numbers(self) -> dict[str, float]:
        """The parts as numbers, which waits for the device; TrainingError where one is not finite."""
        values = torch.stack([self.total.detach(), *(part.detach().double() for part in self.parts.values())]).tolist()
        if not all(math.isfinite(value) for value in values):
            bad = [name for name, value in zip(self.parts, values[1:], strict=True) if not math.isfinite(value)]
            raise TrainingError(
                f"the loss is not finite (part {', '.join(bad)}); lower the learning rate or its weight"
            )
        return dict(zip(["total", *self.parts], values, strict=True))


def total_loss(features: Features, config: LossConfig, *, epoch: float) -> LossParts:
    """Return ELC's loss of one batch at ``epoch`` (fractional, from 0)."""
    return summed(elc_parts(features, config, epoch=epoch, temperature=config.temperature))


def summed(parts: dict[str, torch.Tensor]) -> LossParts:
    return LossParts(torch.stack([part.double() for part in parts.values()]).sum(), parts)


def elc_parts(
    features: Features, config: LossConfig, *, epoch: float, temperature: Temperature
) -> dict[str, torch.Tensor]:
    """Return the weighted parts of Eq. 19, at ``temperature`` between modalities."""
    similarity = features.similarity()
    ignore = no_negatives(features, config)
    edl = edl_parts(
        similarity,
        temperature=temperature,
        weighted=config.uncertainty_weighting,
        detach_weight=config.detach_weight,
        kl=config.kl,
        kl_reduction=config.kl_reduction,
        ignore=ignore,
    )
    parts = {"edl": edl.likelihood}
    if config.kl:
        parts["kl"] = annealed(config, epoch) * edl.kl  # Eqs. 8–9
    if config.ucl:
        ramp = ucl_ramp(config, epoch)
        alignment = ucl_loss(similarity, temperature=temperature, target=config.ucl_target, ignore=ignore)
        parts["ucl"] = config.b2 * ramp * alignment
    if config.relation:
        image = _relation(features.image, features.image_mentor, config)
        text = _relation(features.text, features.text_mentor, config)
        parts["relation"] = config.b3 * (image + text)  # Eq. 18
    if config.b4:
        image = regression_loss(features.image, features.image_mentor)
        text = regression_loss(features.text, features.text_mentor)
        parts["regression"] = config.b4 * (image + text)
    return parts


def annealed(config: LossConfig, epoch: float) -> float:
    """Return the KL's weight n_e/b1: with the fraction of ``epoch``, or by its number from 1 as the paper counts."""
    return (epoch if config.annealing == "step" else math.floor(epoch) + 1) / config.b1


def ucl_ramp(config: LossConfig, epoch: float) -> float:
    """Return how much of UCL is switched on: 0 before its start, then linearly up to 1."""
    if config.ucl_ramp_epochs == 0:
        return float(epoch >= config.ucl_start_epoch)
    return min(max((epoch - config.ucl_start_epoch) / config.ucl_ramp_epochs, 0.0), 1.0)


def _relation(student: torch.Tensor, mentor: torch.Tensor | None, config: LossConfig) -> torch.Tensor:
    if mentor is None:
        return student.new_zeros(())
    return relation_loss(student, mentor, temperature=config.relation_temperature)


def no_negatives(features: Features, config: LossConfig) -> torch.Tensor | None:
    """Return the off-diagonal pairs (image i, caption j) where caption j says or shows the same as that of image i."""
    return _alike(features.caption_ids if config.mask_equal_captions else None, features.image_ids)


def same_pictures(features: Features) -> torch.Tensor | None:
    """Return the off-diagonal pairs of images that are the same picture."""
    return _alike(features.image_ids)


def _alike(*ids: torch.Tensor | None) -> torch.Tensor | None:
    equal = [each[:, None] == each for each in ids if each is not None]
    if not equal:
        return None
    return torch.stack(equal).any(0) & ~torch.eye(len(equal[0]), dtype=torch.bool, device=equal[0].device)
