"""What changes while a run trains, as one object; a checkpoint is this on disk."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from evidex.config import LossConfig, TrainConfig
from evidex.encoders.protocol import DualEncoder
from evidex.training.schedule import WeightAverage, build_optimizer


@dataclass(frozen=True)
class Progressed:
    """Where a run stands: epochs finished, and what was measured in each."""

    epoch: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)
    best_rsum: float = -1.0


@dataclass
class TrainState:
    """The weights with their average, the logit scale, what moves them, and how far they have come."""

    encoder: DualEncoder
    average: WeightAverage | None
    scale: nn.Parameter
    optimizer: torch.optim.Optimizer
    progressed: Progressed = field(default_factory=Progressed)

    @staticmethod
    def begin(encoder: DualEncoder, config: TrainConfig, loss: LossConfig) -> TrainState:
        """The state before the first step of ``encoder``, on its device."""
        start = -math.log(loss.temperature) if loss.learn_temperature else encoder.start_scale
        scale = nn.Parameter(torch.tensor(start, device=encoder.device, dtype=torch.float32))
        average = WeightAverage(encoder, config.ema_decay) if config.ema_decay else None
        return TrainState(encoder, average, scale, build_optimizer(encoder, scale, config))

    def temperature(self, loss: LossConfig) -> float:
        """The τ that the weights go with."""
        return math.exp(-float(self.scale.detach())) if loss.learn_temperature else loss.temperature

    @property
    def averaged(self) -> DualEncoder | None:
        return self.average.encoder if self.average else None

    @property
    def kept(self) -> DualEncoder:
        """What is evaluated and kept: the averaged weights where there are some."""
        return self.averaged or self.encoder


def scale_bounds(loss: LossConfig) -> tuple[float, float]:
    """Within which the logarithm of the scale 1/τ stays: CLIP's bounds, or those of a τ that is learned."""
    if loss.learn_temperature:
        return -math.log(loss.temperature_most), -math.log(loss.temperature_least)
    return 0.0, math.log(100)
