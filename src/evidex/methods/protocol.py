"""What a method brings: a loss, and where it needs them a network around the plain encoder and state of its own.

Everything else, which is data, schedule, validation, model file and evaluation, is the same for all of them. A method
sees a batch as rows, one a picture and one a sentence, so that feature caching and several processes work for it as
they do for ELC: what its loss needs of a picture beyond the feature is put into the row (`DualEncoder.image_outputs`).
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from evidex.config import LossConfig
from evidex.encoders.protocol import DualEncoder, PlacedEncoder
from evidex.errors import ConfigError, ModelError
from evidex.evidence import Temperature
from evidex.losses.total import Features, no_negatives
from evidex.methods.registry import OURS, TRAINABLE


@dataclass(frozen=True)
class MethodLesson:
    """One step as a loss sees it."""

    config: LossConfig
    epoch: float
    """Fractional, from 0; see ``loss.annealing``."""
    scale: torch.Tensor
    """The learnable logit scale, already exponentiated."""
    encoder: DualEncoder
    """For the parameters that the loss uses directly; everything else comes with the rows."""
    seed: int = 0
    """Of what a loss draws: the same in every process."""

    @property
    def temperature(self) -> Temperature:
        """τ between modalities, which may be learned."""
        return 1 / self.scale if self.config.learn_temperature else self.config.temperature

    @property
    def hardest_alone(self) -> bool:
        """Whether hinges take the hardest negatives by now, not all of them; see ``loss.all_negatives_epochs``."""
        return self.epoch >= self.config.all_negatives_epochs

    def ignored(self, batch: Features) -> torch.Tensor | None:
        """Pairs that are no negatives: captions equal to the positive's if the configuration says so, and those of the
        same picture where a batch holds it twice."""
        return no_negatives(batch, self.config)


class Implementation(ABC):
    """A method; a part that it does not bring is that of the plain dual encoder."""

    inner_product: bool = True
    """Whether its rows are compared by inner product, so that stored ones can be compared without the model."""

    def wrap(self, base: DualEncoder, captions: Sequence[Sequence[str]]) -> DualEncoder:
        """Return ``base`` with what the method adds; ``captions`` are those of each training picture."""
        del captions
        return base

    def rebuild(self, base: DualEncoder, options: dict[str, Any]) -> DualEncoder:
        """The same for an encoder that is read from a file: ``options`` are what its description says."""
        del base, options
        raise ModelError("this method has no network of its own; the file is damaged")

    def facts(self, encoder: DualEncoder, captions: Sequence[Sequence[str]]) -> torch.Tensor | None:
        """What the loss has to know of each training picture besides its row, (pictures, k); None is nothing."""
        del encoder, captions
        return None

    @abstractmethod
    def loss(self, batch: Features, lesson: MethodLesson) -> dict[str, torch.Tensor]:
        """The weighted parts of the loss of one batch; their sum is minimised."""


def implementation(name: str) -> Implementation:
    """The method that configurations call ``name``."""
    if name not in (*OURS, *TRAINABLE):
        raise ConfigError(f"method '{name}' cannot be trained; choose one of {', '.join((*OURS, *TRAINABLE))}")
    found = importlib.import_module(f"evidex.methods.{name}").METHOD
    assert isinstance(found, Implementation)
    return found


def placed(base: DualEncoder, title: str) -> PlacedEncoder:
    """``base``, if it shows what is inside its towers."""
    if not isinstance(base, PlacedEncoder):
        raise ModelError(f"{title} needs two towers, not a {type(base).__name__}; choose encoder.kind clip or towers")
    return base
