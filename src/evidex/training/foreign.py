"""Texts about things that no overhead picture shows, so that a model learns to find nothing for them.

A contrastive text tower has met captions alone, and gives any text a place among them. Words that the pretrained tower
finds far from all that is taught are shown beside the labels, as texts that every picture excludes (Hendrycks et al.,
"Deep anomaly detection with outlier exposure", 2019).
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

import torch

from evidex.degrade.text import with_article
from evidex.encoders.domain import word_forms
from evidex.encoders.nearness import Nearness

FAR = 0.6
"""Share of common words, the furthest from what is taught, that may be foreign."""
_FRAMES = ("{0}", "{a0}", "a photo of {a0} .", "{0} and {1}", "{a0} on {a1} .", "{1} {0}")


@dataclass(frozen=True)
class ForeignTexts:
    """Everyday words, and how many texts of them a step shows."""

    words: tuple[str, ...]
    per_step: int

    def draw(self, generator: torch.Generator) -> list[str]:
        """The texts of one step: a word bare or with an article, or two of them together."""
        first, second = torch.randint(len(self.words), (2, self.per_step), generator=generator).tolist()
        frames = torch.randint(len(_FRAMES), (self.per_step,), generator=generator).tolist()
        return [
            _FRAMES[frame].format(
                self.words[one], self.words[two], a0=with_article(self.words[one]), a1=with_article(self.words[two])
            )
            for one, two, frame in zip(first, second, frames, strict=True)
        ]


def far_words(nearness: Nearness, taught: Set[str]) -> tuple[str, ...]:
    """The words of the table that are far from what is taught, and in no form among the words ``taught``."""
    return tuple(word for word in nearness.furthest(FAR) if not taught & word_forms(word))
