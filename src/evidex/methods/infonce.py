"""InfoNCE: symmetric cross entropy of scaled similarities, as CLIP was trained (van den Oord et al., 2018)."""

from __future__ import annotations

import torch

from evidex.losses.contrastive import info_nce_loss
from evidex.losses.total import Features
from evidex.methods.protocol import Implementation, MethodLesson


class InfoNce(Implementation):
    """The plain encoder; the logit scale is learned and starts from CLIP's own where the towers are CLIP's."""

    def loss(self, batch: Features, lesson: MethodLesson) -> dict[str, torch.Tensor]:
        return {"infonce": info_nce_loss(batch.similarity(), scale=lesson.scale, ignore=lesson.ignored(batch))}


METHOD = InfoNce()
