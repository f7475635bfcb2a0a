"""VSE++: a hinge on the hardest negative of each picture and each sentence (Faghri et al., 2018)."""

from __future__ import annotations

import torch

from evidex.losses.contrastive import triplet_loss
from evidex.losses.total import Features
from evidex.methods.protocol import Implementation, MethodLesson


class Vsepp(Implementation):
    """The plain encoder; the margin is ``loss.margin``.

    It can begin with all negatives, as the authors of VSE∞ do with the same loss: ``loss.all_negatives_epochs``.
    """

    def loss(self, batch: Features, lesson: MethodLesson) -> dict[str, torch.Tensor]:
        margin, hardest = lesson.config.margin, lesson.hardest_alone
        ignore = lesson.ignored(batch)
        return {"triplet": triplet_loss(batch.similarity(), hardest=hardest, margin=margin, ignore=ignore)}


METHOD = Vsepp()
