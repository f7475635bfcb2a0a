"""All that a run learns from and is measured on, ready for its encoder."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from evidex.config import Config
from evidex.data.datasets import Dataset, joined
from evidex.data.sources import Sources
from evidex.encoders.protocol import DualEncoder
from evidex.methods.protocol import implementation
from evidex.progress import Progress
from evidex.training.label_lessons import label_forms, label_names, other_names, prepare_labels
from evidex.training.lessons import Lessons
from evidex.training.mentoring import mentor_features
from evidex.training.mix import Mix
from evidex.training.splits import prepare_pixels, prepare_split, take
from evidex.training.validation import LabelVal, Val

_AT_ONCE = 64


@dataclass(frozen=True)
class TrainingMaterial:
    """The lessons of what trains, and the val part of each source."""

    lessons: Lessons
    val: Val


def mix_of(sources: Sources, config: Config) -> Mix:
    """How the sources with captions share an epoch: of each picture once, or once with each of its captions."""
    sets = [source.train for source in sources.captions]
    often = [len(each.captions) / len(each) if config.data.epoch == "pairs" else 1.0 for each in sets]
    return Mix(
        tuple(len(each) for each in sets),
        tuple(source.weight * times for source, times in zip(sources.captions, often, strict=True)),
        config.data.batches == "one source",
    )


def train_set(sources: Sources) -> Dataset:
    """The pairs of all sources, one source after another."""
    return joined([source.train for source in sources.captions])


def val_set(sources: Sources) -> Dataset:
    return joined([source.val for source in sources.captions])


def taught_captions(sources: Sources) -> list[tuple[str, ...]]:
    """The captions of each picture that trains."""
    return [record.captions for record in train_set(sources).records]


def taught_texts(sources: Sources) -> list[str]:
    """The sentences that train: captions, and the labels in their forms."""
    names = (*label_names(sources.labels, sources.words), *other_names(sources))
    return train_set(sources).captions + [form for name in names for form in label_forms(name)]


def shows_vectors(config: Config) -> bool:
    """Whether each picture has one vector in all of the run: its tower is locked, and no picture is varied."""
    return config.train.learns == "texts" and not (config.data.augment or config.data.degrade)


@torch.no_grad()
def vectors_of(pixels: np.ndarray | torch.Tensor, encoder: DualEncoder) -> torch.Tensor:
    """What the encoder makes of pictures, computed once instead of at every step."""
    encoder.eval()
    places = range(0, len(pixels), _AT_ONCE)
    parts = [take(pixels, np.arange(start, min(start + _AT_ONCE, len(pixels)))) for start in places]
    return torch.cat([encoder.image_outputs(part.to(encoder.device)) for part in parts])


def prepare(
    config: Config, sources: Sources, encoder: DualEncoder, device: torch.device, progress: Progress
) -> TrainingMaterial:
    """Decode the pictures, tokenise the sentences and ask the mentors, or take all that from the cache."""
    split = prepare_split(train_set(sources), encoder, progress)
    if shows_vectors(config):
        split = replace(split, pixels=vectors_of(split.pixels, encoder))
    mentors = mentor_features(
        config, [source.train for source in sources.captions], split.sentences.texts, device, progress
    )
    labels = None
    if config.loss.labels:
        labels = prepare_labels(sources, config.data, encoder, seed=config.seed, progress=progress)
        if labels is not None and shows_vectors(config):
            labels = replace(labels, pixels=vectors_of(labels.pixels, encoder))
    val = Val(
        {source.name: prepare_split(source.val, encoder, progress) for source in sources.captions},
        {
            source.name: LabelVal(
                prepare_pixels(source.val, encoder, progress), [record.label for record in source.val.records]
            )
            for source in sources.labels
        },
    )
    facts = implementation(config.method_name).facts(encoder, taught_captions(sources))
    lessons = Lessons(
        split,
        mentors,
        config.data,
        mix_of(sources, config),
        labels,
        config.loss.twins > 0,
        None if facts is None else facts.to(device),
    )
    return TrainingMaterial(lessons, val)
