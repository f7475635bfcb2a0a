"""All that a run learns from and is measured on, ready for its encoder."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass

import numpy as np
import torch

from evidex.config import Config
from evidex.data.datasets import Dataset, joined
from evidex.data.function_words import FUNCTION_WORDS
from evidex.data.label_names import is_sentence
from evidex.data.labels import spelt_apart
from evidex.data.sources import Sources
from evidex.encoders.domain import words_of
from evidex.encoders.mentors.tower import LockedTower
from evidex.encoders.protocol import DualEncoder
from evidex.encoders.towers import TowerEncoder
from evidex.errors import ConfigError
from evidex.methods.protocol import implementation
from evidex.progress import Progress
from evidex.training.foreign import ForeignTexts, far_words
from evidex.training.label_lessons import label_forms, label_names, other_names, prepare_labels
from evidex.training.lessons import Lessons
from evidex.training.measure_domain import nearness_to, pretrained_text_tower
from evidex.training.mentoring import image_features, mentor_features
from evidex.training.mix import Mix
from evidex.training.splits import Pictures, decoded, prepare_split
from evidex.training.start import domain_before
from evidex.training.validation import LabelVal, Val


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
    """The texts that teach words: captions, and the labels in their forms.

    Sentences said of labels are not among them: they teach what they mean together, of far more things than one sees.
    """
    names = (*label_names(sources.labels, sources.words), *itertools.filterfalse(is_sentence, other_names(sources)))
    return train_set(sources).captions + [form for name in names for form in label_forms(name)]


def shown_texts(sources: Sources) -> list[str]:
    """All texts that train beside pictures, sentences said of labels too."""
    return taught_texts(sources) + [name for name in other_names(sources) if is_sentence(name)]


def pictured_words(sources: Sources) -> Counter[str]:
    """Beside how many pictures each word stood that is a label by itself, or another name of one."""
    words = sources.words
    labels = Counter(record.label for source in sources.labels for record in source.train.records if record.label)
    shown: Counter[str] = Counter()
    for said, count in labels.items():
        label = spelt_apart(said, words)
        for name in (label, *sources.label_names.of(label)):
            if words_of([name]) == {name}:
                shown[name] += count
    return shown


def foreign_texts(config: Config, sources: Sources, device: torch.device) -> ForeignTexts:
    """Everyday words that are far from all that ``sources`` teach, as the pretrained text tower judges them.

    What is shown or was known before is none, nor are words that name nothing.
    """
    taught, before = [*taught_texts(sources), *sources.texts], domain_before(config)
    nearness = (
        nearness_to(taught, pretrained_text_tower(config.encoder), str(device)) if before is None else before.nearness
    )
    known = words_of([*shown_texts(sources), *sources.texts]) | FUNCTION_WORDS
    words = () if nearness is None else far_words(nearness, known | (frozenset() if before is None else before.words))
    if not words:
        raise ConfigError(
            f"data.foreign = {config.data.foreign} needs a pretrained text tower that judges words, or a model that "
            "has them judged; set it to 0"
        )
    return ForeignTexts(words, config.data.foreign)


def pools_once(config: Config) -> bool:
    """Whether the tower makes the same of a picture in all of the run: it is locked, and no picture is varied."""
    return config.train.learns != "both" and not (config.data.augment or config.data.degrade)


def pictures_of(config: Config, encoder: DualEncoder, device: torch.device, progress: Progress) -> Pictures:
    """How the pictures of datasets are shown: decoded, or as what a locked tower pools of them."""
    if not pools_once(config):
        return decoded(encoder, progress)
    assert isinstance(encoder, TowerEncoder)  # no other's tower can be locked
    tower = LockedTower(encoder)
    return lambda datasets: torch.from_numpy(
        np.concatenate([image_features(dataset, tower, progress) for dataset in datasets])
    ).to(device)


def prepare(
    config: Config, sources: Sources, encoder: DualEncoder, device: torch.device, progress: Progress
) -> TrainingMaterial:
    """Decode the pictures, tokenise the sentences and ask the mentors, or take all that from the cache."""
    pictures = pictures_of(config, encoder, device, progress)
    split = prepare_split(train_set(sources), encoder, pictures([source.train for source in sources.captions]))
    mentors = mentor_features(
        config, [source.train for source in sources.captions], split.sentences.texts, device, progress
    )
    labels = None
    if config.loss.labels:
        foreign = foreign_texts(config, sources, device) if config.data.foreign else None
        labels = prepare_labels(sources, config.data, pictures, seed=config.seed, foreign=foreign)
    val = Val(
        {source.name: prepare_split(source.val, encoder, pictures([source.val])) for source in sources.captions},
        {
            source.name: LabelVal(pictures([source.val]), [record.label for record in source.val.records])
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
