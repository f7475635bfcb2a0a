"""Poly: universal weighting of the hardest pairs by polynomials of their similarity (Wei et al., 2020)."""

from __future__ import annotations

import torch

from evidex.losses.contrastive import polynomial_loss
from evidex.losses.total import Features
from evidex.methods.protocol import Implementation, MethodLesson


class Poly(Implementation):
    """The plain encoder; the margin that makes a negative informative is ``loss.margin``."""

    def loss(self, batch: Features, lesson: MethodLesson) -> dict[str, torch.Tensor]:
        margin = lesson.config.margin
        return {"poly": polynomial_loss(batch.similarity(), margin=margin, ignore=lesson.ignored(batch))}


METHOD = Poly()
