"""Poly: universal weighting of the hardest pairs by polynomials of their similarity (Wei et al., 2020)."""

from __future__ import annotations

import torch

from evidex.losses.contrastive import polynomial_loss, triplet_loss
from evidex.losses.total import Features
from evidex.methods.protocol import Implementation, MethodLesson


class Poly(Implementation):
    """The plain encoder; the margin that makes a negative informative is ``loss.margin``.

    Where all pairs are alike, the two polynomials balance at the similarity .5 and hold them there. From towers that
    do not know of each other it can begin with the hinges of all negatives (``loss.all_negatives_epochs``), which is
    ours.
    """

    def loss(self, batch: Features, lesson: MethodLesson) -> dict[str, torch.Tensor]:
        similarity, margin, ignore = batch.similarity(), lesson.config.margin, lesson.ignored(batch)
        if lesson.hardest_alone:
            return {"poly": polynomial_loss(similarity, margin=margin, ignore=ignore)}
        return {"poly": triplet_loss(similarity, hardest=False, margin=margin, ignore=ignore)}


METHOD = Poly()
