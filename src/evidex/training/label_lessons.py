"""What each step learns from sources that have labels and no captions."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from evidex.config import DataConfig
from evidex.data.function_words import FUNCTION_WORDS
from evidex.data.label_names import is_sentence
from evidex.data.labels import exclusions, spelt_apart
from evidex.data.sources import Source, Sources
from evidex.degrade.text import with_article
from evidex.errors import ConfigError
from evidex.training.foreign import ForeignTexts
from evidex.training.mix import Mix
from evidex.training.splits import Pictures, Pixels, take

_LABELS = 1  # in the seed of a shuffle, so that pictures with labels and pairs share no random numbers


@dataclass(frozen=True)
class Wording:
    """A text that stands for a label."""

    text: str
    holds: np.ndarray
    """(labels,) bool: for pictures of which labels it may be true, the one it stands for among them."""


@dataclass(frozen=True)
class LabelTexts:
    """Each label as one step asks for it, then what is foreign to all; and which pictures are kept from which texts.

    Rows are the labels of the pictures, columns the texts; what is foreign has no pictures, and rows without meaning.
    """

    texts: list[str]
    exclude: np.ndarray


@dataclass(frozen=True)
class LabelLessons:
    """Pictures with labels, and the labels as texts."""

    pixels: Pixels
    names: tuple[str, ...]
    """The distinct labels, as somebody would type them."""
    label: np.ndarray
    """(pictures,) the place of each picture's label among the names."""
    exclude: np.ndarray
    """(names, names) which of them exclude each other."""
    mix: Mix
    per_step: int
    seed: int
    own: tuple[Wording, ...] = ()
    """Each label as it is called; it may be another one's name, too."""
    others: tuple[tuple[Wording, ...], ...] = ()
    """Of each label the other names."""
    captions: tuple[tuple[Wording, ...], ...] = ()
    """Of each label captions of pictures that are not at hand."""
    captions_share: float = 0.0
    foreign: ForeignTexts | None = None
    """What no picture shows."""

    def rows(self, step: int) -> np.ndarray:
        """Which pictures ``step`` shows: the next ones of an endless row of shuffles, each a function of its number."""
        total = sum(self.mix.shown)
        places = np.arange(step * self.per_step, (step + 1) * self.per_step)
        first, last = (int(place) // total for place in (places[0], places[-1]))
        rounds = (np.random.default_rng([self.seed, _LABELS, number]) for number in range(first, last + 1))
        return np.concatenate([self.mix.order(rng) for rng in rounds])[places - first * total]

    def pictures(self, rows: np.ndarray) -> torch.Tensor:
        return take(self.pixels, rows)

    def texts(self, generator: torch.Generator) -> LabelTexts:
        """Each label in one of the forms it is asked in: people type "river", captions say "a river .".

        Half of the time another name stands for the label where it has some, and in their share captions.
        """
        drawn = torch.randint(3, (len(self.names),), generator=generator).tolist()
        texts = [label_forms(name)[form] for name, form in zip(self.names, drawn, strict=True)]
        exclude = self.exclude.copy()
        if any((*self.others, *self.captions)):
            self._call_otherwise(texts, exclude, drawn, generator)
        if self.foreign is None:
            return LabelTexts(texts, exclude)
        beside = self.foreign.draw(generator)
        exclude = np.pad(exclude, (0, len(beside)))
        exclude[: len(texts), len(texts) :] = True
        return LabelTexts(texts + beside, exclude)

    def _call_otherwise(
        self, texts: list[str], exclude: np.ndarray, drawn: Sequence[int], generator: torch.Generator
    ) -> None:
        """Put other names and captions in the place of some labels, and keep them from no picture they hold for."""
        for place, (kind, which) in enumerate(torch.rand(len(self.names), 2, generator=generator).tolist()):
            captions, others = self.captions[place], self.others[place]
            share = self.captions_share if captions else 0.0
            chosen = self.own[place]
            if kind < share:
                chosen = captions[int(which * len(captions))]
                texts[place] = chosen.text
            elif others and kind < (1 + share) / 2:
                chosen = others[int(which * len(others))]
                texts[place] = label_forms(chosen.text)[drawn[place]]
            exclude[:, place] &= ~chosen.holds


def label_forms(name: str) -> tuple[str, str, str]:
    """The bare label, as a thing, and as a caption.

    What is many ("boats at a pier"), or no thing ("where trains stop"), takes no article; a sentence stays as it is.
    """
    if is_sentence(name):
        return name, name, name
    first = list(itertools.takewhile(lambda word: word not in FUNCTION_WORDS, name.split()))
    thing = with_article(name) if first and not first[-1].endswith("s") else name
    return name, thing, f"an aerial image of {thing} ."


def label_names(sources: Sequence[Source], words: Collection[str]) -> tuple[str, ...]:
    """The distinct labels of what trains, as typed with ``words`` and in lower case."""
    return tuple(sorted(set().union(*_names_of_each(sources, words))))


def prepare_labels(
    sources: Sources,
    config: DataConfig,
    pictures: Pictures,
    *,
    seed: int,
    foreign: ForeignTexts | None = None,
) -> LabelLessons | None:
    """Bring the pictures that have labels, and gather what stands for these; None without any."""
    if not sources.labels:
        return None
    words = sources.words
    datasets, names = [source.train for source in sources.labels], label_names(sources.labels, words)
    place = {name: number for number, name in enumerate(names)}
    records = [record for dataset in datasets for record in dataset.records]
    label = np.array([place[spelt_apart(record.label or "", words)] for record in records], dtype=np.int64)
    mix = Mix(tuple(len(source.train) for source in sources.labels), tuple(source.weight for source in sources.labels))
    if not sum(mix.shown):
        raise ConfigError("no picture with a label is shown: the sources' weights are too small; raise them")
    exclude = exclusions(names, _names_of_each(sources.labels, words))
    own, others, captions = _wordings(names, sources, config)
    return LabelLessons(
        pictures(datasets), names, label, exclude, mix, config.labels_per_step, seed,
        own, others, captions, config.label_captions, foreign,
    )  # fmt: skip


def other_names(sources: Sources) -> tuple[str, ...]:
    """What else the labels of ``sources`` are called."""
    names = label_names(sources.labels, sources.words)
    return tuple(sorted({other for name in names for other in sources.label_names.of(name)}))


def _wordings(
    names: Sequence[str], sources: Sources, config: DataConfig
) -> tuple[tuple[Wording, ...], tuple[tuple[Wording, ...], ...], tuple[tuple[Wording, ...], ...]]:
    """Each label itself, its other names, and the captions that stand for it."""
    table = sources.label_names
    holding: dict[str, np.ndarray] = {}

    def wording(text: str, said: str) -> Wording:
        if said not in holding:
            holding[said] = np.array(table.holding(names, said), dtype=bool)
        return Wording(text, holding[said])

    own = tuple(wording(name, name) for name in names)
    others = tuple(tuple(wording(other, other) for other in table.of(name)) for name in names)
    if table.names and not any(others):
        raise ConfigError(
            f"data.label_names = '{config.label_names}' has no name of a label here ({', '.join(names[:3])} …); "
            "write labels as the datasets do"
        )
    if not config.label_captions:
        return own, others, tuple(() for _ in names)
    labelled = [(label, text) for label, text in sources.labelled_texts if label]
    captions = tuple(tuple(wording(text, label) for label, text in table.captions_of(name, labelled)) for name in names)
    return own, others, captions


def _names_of_each(sources: Sequence[Source], words: Collection[str]) -> list[set[str]]:
    return [{spelt_apart(record.label or "", words) for record in source.train.records} for source in sources]
