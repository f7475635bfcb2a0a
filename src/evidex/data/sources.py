"""The datasets that a model learns from: each with its role, its weight and a val part of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evidex.config import DataConfig, Role, SourceConfig
from evidex.data.datasets import Dataset, load_dataset
from evidex.data.label_names import LabelNames
from evidex.data.records import read_texts
from evidex.data.val_part import RULE
from evidex.errors import ConfigError

UNSTATED = "not stated"


@dataclass(frozen=True)
class Source:
    """One dataset to learn from, under a name that no other source of the run has."""

    name: str
    role: Role
    weight: float
    terms: str
    train: Dataset
    val: Dataset

    def row(self) -> dict[str, Any]:
        """What a run and its model's card say of this source before anything is measured."""
        return {
            "name": self.name,
            "role": self.role,
            "weight": self.weight,
            "images": len(self.train),
            "captions": len(self.train.captions),
            "val_images": len(self.val),
            "val_drawn": self.val.drawn,
            "terms": self.terms or UNSTATED,
        }


@dataclass(frozen=True)
class Sources:
    """All of them, those with captions before those with labels; at least one has captions."""

    captions: tuple[Source, ...]
    labels: tuple[Source, ...] = ()
    labelled_texts: tuple[tuple[str, str], ...] = ()
    """Captions without pictures, whose words count as taught, each after its label or an empty one."""
    label_names: LabelNames = field(default_factory=LabelNames)

    @property
    def all(self) -> tuple[Source, ...]:
        return self.captions + self.labels

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(text for _, text in self.labelled_texts)

    @property
    def words(self) -> frozenset[str]:
        """Those of the captions that train, in lower case."""
        texts = (text for source in self.captions for text in source.train.captions)
        return frozenset(word.strip(".,;:!?") for text in texts for word in text.lower().split())


def load_sources(config: DataConfig) -> Sources:
    """Return what ``config`` names: ``data.path`` first, then every ``data.source``."""
    named = [*([SourceConfig(config.path)] if config.path else []), *config.source]
    if not any(source.role == "captions" for source in named):
        missing = "no data.source has captions" if named else "data.path is empty"
        raise ConfigError(f"{missing}; name the folder of a dataset, e.g. --set data.path=DATASET")
    taken: set[str] = set()
    sources = [_load(source, config, taken) for source in named]
    return Sources(
        tuple(source for source in sources if source.role == "captions"),
        tuple(source for source in sources if source.role == "labels"),
        tuple(each for path in config.texts for each in read_texts(Path(path))),
        LabelNames.read(Path(config.label_names)) if config.label_names else LabelNames(),
    )


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """The table of sources that a run's record and its model's card hold, for a page."""
    head = "| source | learned from | images | captions | val images | on val | terms |"
    lines = [head, "|---" * head.count(" |") + "|"]
    for row in rows:
        drawn = f" ({RULE})" if row["val_drawn"] else ""
        rsum, names = row.get("val_rsum"), row.get("val_names")
        measured = "–" if rsum is None else f"RSUM {rsum:.1f}"
        measured = measured if names is None else f"{names:.0%} of names"
        counts = f"{row['images']:,} | {row['captions']:,} | {row['val_images']:,}{drawn}"
        lines.append(f"| {row['name']} | {row['role']} | {counts} | {measured} | {row['terms']} |")
    return "\n".join(lines)


def _load(source: SourceConfig, config: DataConfig, taken: set[str]) -> Source:
    path = Path(source.path)
    draws = config.val_split == "val"  # who measures on another split trains with all there is
    train, val = (
        load_dataset(path, split, source.role, draws=draws) for split in (config.train_split, config.val_split)
    )
    number, name = 1, train.name
    while name in taken:
        number += 1
        name = f"{train.name} {number}"
    taken.add(name)
    return Source(name, source.role, source.weight, source.terms, train, val)
