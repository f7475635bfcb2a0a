"""VSE++: a hinge on the hardest negative of each picture and each sentence (Faghri et al., 2018)."""

from __future__ import annotations

import torch

from evidex.losses.contrastive import hardest_triplet_loss
from evidex.losses.total import Features
from evidex.methods.protocol import Implementation, MethodLesson


class Vsepp(Implementation):
    """The plain encoder; the margin is ``loss.margin``."""

    def loss(self, batch: Features, lesson: MethodLesson) -> dict[str, torch.Tensor]:
        margin = lesson.config.margin
        return {"triplet": hardest_triplet_loss(batch.similarity(), margin=margin, ignore=lesson.ignored(batch))}


METHOD = Vsepp()
