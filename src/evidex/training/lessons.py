"""A batch as the encoder gets it: pictures and captions on the device, varied, with what the mentors say of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from evidex.config import DataConfig
from evidex.encoders.protocol import DualEncoder
from evidex.training.augment import VARIATIONS, augment, degrade
from evidex.training.batches import Batch
from evidex.training.label_lessons import LabelLessons
from evidex.training.mentoring import MentorFeatures
from evidex.training.mix import Mix
from evidex.training.splits import PreparedSplit
from evidex.training.step import Labelled, Pairs


@dataclass(frozen=True)
class Lessons:
    """The training split with its mentors' features, and how its pairs are varied."""

    split: PreparedSplit
    mentors: MentorFeatures
    config: DataConfig
    mix: Mix
    labels: LabelLessons | None = None
    twins: bool = False
    facts: torch.Tensor | None = None
    """What the method knows of each picture, (pictures, k)."""

    def pairs(self, batch: Batch, encoder: DualEncoder, generator: torch.Generator) -> Pairs:
        """The pairs of ``batch`` on the encoder's device; ``generator`` alone decides how they are varied."""
        device = encoder.device
        label_rows = None if self.labels is None else self.labels.rows(batch.step)
        pixels = self._pixels(batch, label_rows, encoder, generator)
        sentences = self.split.sentences.of_caption[batch.captions.reshape(-1)]
        rows = torch.from_numpy(sentences).to(device)
        has_twin = labelled = None
        if self.twins or self.labels is not None:
            texts, twinned = self._texts(batch, sentences, generator)
            if self.labels is not None and label_rows is not None:
                asked = self.labels.texts(generator)
                texts += asked.texts
                label, exclude = self.labels.label[label_rows], asked.exclude
                labelled = Labelled(torch.from_numpy(label).to(device), torch.from_numpy(exclude).to(device))
            tokens = _tokens(texts, encoder)
            has_twin = torch.from_numpy(twinned).to(device) if self.twins else None
        else:
            tokens = self._plain_tokens(sentences, rows, encoder, generator)
        image, text, graphs = self.mentors.image, self.mentors.text, self.split.graphs
        images = torch.from_numpy(batch.images).to(device)
        return Pairs(
            pixels,
            tokens,
            None if image is None else image[images],
            None if text is None else text[rows],
            rows,
            len(batch.captions),
            image_ids=images if self.mix.repeats else None,
            has_twin=has_twin,
            labels=labelled,
            facts=None if self.facts is None else self.facts[images],
            graphs=None if graphs is None else torch.from_numpy(graphs[batch.images]).to(device),
        )

    def _pixels(
        self, batch: Batch, label_rows: np.ndarray | None, encoder: DualEncoder, generator: torch.Generator
    ) -> torch.Tensor:
        """The pictures of the pairs, then those with labels, varied alike."""
        pixels = self.split.pictures(batch.images).to(encoder.device, non_blocking=True)
        if self.labels is not None and label_rows is not None:
            pixels = torch.cat([pixels, self.labels.pictures(label_rows).to(encoder.device)])
        if self.config.augment:
            pixels = augment(pixels, generator, VARIATIONS[self.config.variation])
        if self.config.degrade:
            pixels = degrade(pixels, self.config.degrade, generator)
        return pixels

    def _plain_tokens(
        self, sentences: np.ndarray, rows: torch.Tensor, encoder: DualEncoder, generator: torch.Generator
    ) -> dict[str, torch.Tensor]:
        if self.config.substitute:
            return _tokens(self._captions(sentences, generator), encoder)
        longest = int(self.split.lengths[sentences].max())
        return {
            name: ids[rows, :longest] if name in encoder.per_token else ids[rows]
            for name, ids in self.split.tokens.items()
        }

    def _captions(self, sentences: np.ndarray, generator: torch.Generator) -> list[str]:
        texts = [self.split.sentences.texts[index] for index in sentences]
        return _substituted(texts, self.config.substitute, generator) if self.config.substitute else texts

    def _texts(self, batch: Batch, sentences: np.ndarray, generator: torch.Generator) -> tuple[list[str], np.ndarray]:
        """Captions, then their twins; and which captions have a twin. Who has none stands in for it."""
        captions = self._captions(sentences, generator)
        twins: list[str | None] = []
        if self.twins:
            records = self.split.dataset.records
            others = [records[image].captions for image in batch.images] * len(batch.captions)
            twins = _twins(captions, others, generator)
        shown = [twin or caption for caption, twin in zip(captions, twins, strict=False)]
        return captions + shown, np.array([twin is not None for twin in twins], dtype=bool)


def _tokens(texts: list[str], encoder: DualEncoder) -> dict[str, torch.Tensor]:
    return {name: ids.to(encoder.device) for name, ids in encoder.tokenize(texts).items()}


def _generator(generator: torch.Generator) -> np.random.Generator:
    return np.random.default_rng(int(torch.randint(2**40, (1,), generator=generator)))


def _substituted(texts: list[str], share: float, generator: torch.Generator) -> list[str]:
    from evidex.degrade import Lexicon

    lexicon, rng = Lexicon.load(), _generator(generator)
    return [lexicon.substitute(text, rng) if rng.random() < share else text for text in texts]


def _twins(captions: list[str], others: list[tuple[str, ...]], generator: torch.Generator) -> list[str | None]:
    from evidex.degrade.twins import Twins

    twins, rng = Twins.load(), _generator(generator)
    return [twins.twin(text, rng, others=true) for text, true in zip(captions, others, strict=True)]
