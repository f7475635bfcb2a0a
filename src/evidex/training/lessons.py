"""A batch as the encoder gets it: pictures and captions on the device, varied, with what the mentors say of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from evidex.config import DataConfig
from evidex.encoders.protocol import DualEncoder
from evidex.training.augment import augment, degrade
from evidex.training.batches import Batch
from evidex.training.mentoring import MentorFeatures
from evidex.training.splits import PreparedSplit
from evidex.training.step import Pairs


@dataclass(frozen=True)
class Lessons:
    """The training split with its mentors' features, and how its pairs are varied."""

    split: PreparedSplit
    mentors: MentorFeatures
    config: DataConfig
    facts: torch.Tensor | None = None
    """What the method knows of each picture, (pictures, k)."""

    def pairs(self, batch: Batch, encoder: DualEncoder, generator: torch.Generator) -> Pairs:
        """The pairs of ``batch`` on the encoder's device; ``generator`` alone decides how they are varied."""
        device = encoder.device
        pixels = self.split.pictures(batch.images).to(device, non_blocking=True)
        if self.config.augment:
            pixels = augment(pixels, generator)
        if self.config.degrade:
            pixels = degrade(pixels, self.config.degrade, generator)
        sentences = self.split.sentences.of_caption[batch.captions.reshape(-1)]
        rows = torch.from_numpy(sentences).to(device)
        tokens = self._tokens(sentences, rows, encoder, generator)
        image, text = self.mentors.image, self.mentors.text
        return Pairs(
            pixels,
            tokens,
            None if image is None else image[torch.from_numpy(batch.images).to(device)],
            None if text is None else text[rows],
            rows,
            len(batch.captions),
            None if self.facts is None else self.facts[torch.from_numpy(batch.images).to(device)],
        )

    def _tokens(
        self, sentences: np.ndarray, rows: torch.Tensor, encoder: DualEncoder, generator: torch.Generator
    ) -> dict[str, torch.Tensor]:
        if self.config.substitute:
            texts = [self.split.sentences.texts[index] for index in sentences]
            varied = encoder.tokenize(_substituted(texts, self.config.substitute, generator))
            return {name: ids.to(encoder.device) for name, ids in varied.items()}
        longest = int(self.split.lengths[sentences].max())
        return {
            name: ids[rows, :longest] if name in encoder.per_token else ids[rows]
            for name, ids in self.split.tokens.items()
        }


def _substituted(texts: list[str], share: float, generator: torch.Generator) -> list[str]:
    from evidex.degrade import Lexicon

    lexicon = Lexicon.load()
    rng = np.random.default_rng(int(torch.randint(2**40, (1,), generator=generator)))
    return [lexicon.substitute(text, rng) if rng.random() < share else text for text in texts]
