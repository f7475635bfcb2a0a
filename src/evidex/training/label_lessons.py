"""What each step learns from sources that have labels and no captions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from evidex.data.datasets import joined
from evidex.data.labels import exclusions, spelt_apart
from evidex.data.sources import Source
from evidex.degrade.text import takes_an
from evidex.encoders.protocol import DualEncoder
from evidex.errors import ConfigError
from evidex.progress import Progress
from evidex.training.mix import Mix
from evidex.training.splits import prepare_pixels, take

_LABELS = 1  # in the seed of a shuffle, so that pictures with labels and pairs share no random numbers


@dataclass(frozen=True)
class LabelLessons:
    """Pictures with labels, and the labels as texts."""

    pixels: np.ndarray | torch.Tensor
    names: tuple[str, ...]
    """The distinct labels, as somebody would type them."""
    label: np.ndarray
    """(pictures,) the place of each picture's label among the names."""
    exclude: np.ndarray
    """(names, names) which of them exclude each other."""
    mix: Mix
    per_step: int
    seed: int

    def rows(self, step: int) -> np.ndarray:
        """Which pictures ``step`` shows: the next ones of an endless row of shuffles, each a function of its number."""
        total = sum(self.mix.shown)
        places = np.arange(step * self.per_step, (step + 1) * self.per_step)
        first, last = (int(place) // total for place in (places[0], places[-1]))
        rounds = (np.random.default_rng([self.seed, _LABELS, number]) for number in range(first, last + 1))
        return np.concatenate([self.mix.order(rng) for rng in rounds])[places - first * total]

    def pictures(self, rows: np.ndarray) -> torch.Tensor:
        return take(self.pixels, rows)

    def texts(self, generator: torch.Generator) -> list[str]:
        """Each label in one of the forms it is asked in: people type "river", captions say "a river ."."""
        drawn = torch.randint(3, (len(self.names),), generator=generator).tolist()
        return [label_forms(name)[form] for name, form in zip(self.names, drawn, strict=True)]


def label_forms(name: str) -> tuple[str, str, str]:
    """The bare label, as a thing, and as a caption."""
    thing = name if name.endswith("s") else f"{'an' if takes_an(name) else 'a'} {name}"
    return name, thing, f"an aerial image of {thing} ."


def label_names(sources: Sequence[Source], words: Collection[str]) -> tuple[str, ...]:
    """The distinct labels of what trains, as typed with ``words`` and in lower case."""
    return tuple(sorted(set().union(*_names_of_each(sources, words))))


def prepare_labels(
    sources: Sequence[Source],
    words: Collection[str],
    encoder: DualEncoder,
    *,
    per_step: int,
    seed: int,
    progress: Progress,
) -> LabelLessons | None:
    """Decode the pictures of ``sources``, their labels typed with ``words``; None without any."""
    if not sources:
        return None
    dataset, names = joined([source.train for source in sources]), label_names(sources, words)
    place = {name: number for number, name in enumerate(names)}
    label = np.array([place[spelt_apart(record.label or "", words)] for record in dataset.records], dtype=np.int64)
    mix = Mix(tuple(len(source.train) for source in sources), tuple(source.weight for source in sources))
    if not sum(mix.shown):
        raise ConfigError("no picture with a label is shown: the sources' weights are too small; raise them")
    exclude = exclusions(names, _names_of_each(sources, words))
    return LabelLessons(prepare_pixels(dataset, encoder, progress), names, label, exclude, mix, per_step, seed)


def _names_of_each(sources: Sequence[Source], words: Collection[str]) -> list[set[str]]:
    return [{spelt_apart(record.label or "", words) for record in source.train.records} for source in sources]
