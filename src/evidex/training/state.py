"""What changes while a run trains, as one object; a checkpoint is this on disk."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from evidex.config import TrainConfig
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
    def begin(encoder: DualEncoder, config: TrainConfig) -> TrainState:
        """The state before the first step of ``encoder``, on its device."""
        scale = nn.Parameter(torch.tensor(encoder.start_scale, device=encoder.device, dtype=torch.float32))
        average = WeightAverage(encoder, config.ema_decay) if config.ema_decay else None
        return TrainState(encoder, average, scale, build_optimizer(encoder, scale, config))

    @property
    def averaged(self) -> DualEncoder | None:
        return self.average.encoder if self.average else None

    @property
    def kept(self) -> DualEncoder:
        """What is evaluated and kept: the averaged weights where there are some."""
        return self.averaged or self.encoder
