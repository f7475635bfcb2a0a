"""ELC itself (Eq. 19), for comparison under the same conditions."""

from __future__ import annotations

import torch

from evidex.losses.total import Features, elc_parts
from evidex.methods.protocol import Implementation, MethodLesson


class Elc(Implementation):
    """The plain encoder with the paper's loss; its switches are those of ``[loss]``."""

    def loss(self, batch: Features, lesson: MethodLesson) -> dict[str, torch.Tensor]:
        return elc_parts(batch, lesson.config, epoch=lesson.epoch, temperature=lesson.temperature)


METHOD = Elc()
