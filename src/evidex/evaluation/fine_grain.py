"""Does a picture prefer its caption to the caption's twin, with one colour, number, relation or object exchanged?

Recall asks which scene is meant; this asks whether the words in a sentence matter. Chance is one half on every axis.
Twins also sound less usual ("grey trees"), which a model may dislike whatever the picture shows: beside the figure
stands that of the same captions put to pictures of other places.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evidex.evaluation.features import EvaluatedModel, encode_texts

if TYPE_CHECKING:
    from evidex.data.records import Record

CHANCE = 0.5
_SEED = 0
_Z = 1.959964  # of a two-sided interval of 95 %


@dataclass(frozen=True)
class Pair:
    """A caption of image ``image``, and its twin on ``axis``."""

    axis: str
    image: int
    caption: str
    twin: str


@dataclass(frozen=True)
class Preference:
    """The share of images that prefer the true caption, with its 95 % interval; ties count half."""

    share: float
    low: float
    high: float
    elsewhere: float
    """The share of pictures of other places that prefer it too: what the words alone give away."""
    images: int
    pairs: int

    def to_json(self) -> dict[str, Any]:
        return {
            "share": self.share,
            "interval": [self.low, self.high],
            "elsewhere": self.elsewhere,
            "images": self.images,
            "pairs": self.pairs,
        }


@dataclass(frozen=True)
class FineGrain:
    """By axis; an axis on which no caption has a twin is missing."""

    axes: dict[str, Preference]

    def to_json(self) -> dict[str, Any]:
        return {"chance": CHANCE, "axes": {axis: found.to_json() for axis, found in self.axes.items()}}


def twin_pairs(records: Sequence[Record]) -> list[Pair]:
    """One twin for each distinct caption of an image and each axis that it has something on; always the same ones."""
    from evidex.degrade.twins import TWIN_AXES, Twins

    twins = Twins.load()
    pairs = []
    for image, record in enumerate(records):
        captions = list(dict.fromkeys(record.captions))
        for place, caption in enumerate(captions):
            for number, axis in enumerate(TWIN_AXES):
                rng = np.random.default_rng([_SEED, image, place, number])
                twin = twins.twin(caption, rng, axis=axis, others=captions)
                if twin is not None:
                    pairs.append(Pair(axis, image, caption, twin))
    return pairs


def fine_grain(model: EvaluatedModel, images: NDArray[np.float32], records: Sequence[Record]) -> FineGrain | None:
    """Measure ``model``, whose features of the records' pictures are ``images`` (n, dim); None without any twin."""
    pairs = twin_pairs(records)
    if not pairs:
        return None
    texts = encode_texts(model, [text for pair in pairs for text in (pair.caption, pair.twin)])
    shown = np.array([pair.image for pair in pairs])
    won = _won(images[shown], texts)
    elsewhere = _won(images[(shown + len(images) // 2) % len(images)], texts)
    axis_of = np.array([pair.axis for pair in pairs])
    return FineGrain(
        {
            str(axis): _preference(shown[axis_of == axis], won[axis_of == axis], elsewhere[axis_of == axis])
            for axis in np.unique(axis_of)
        }
    )


def _won(pictures: NDArray[np.float32], texts: NDArray[np.float32]) -> NDArray[np.float64]:
    """1 where a picture is more similar to its caption than to the twin, ½ where equally; texts take turns."""
    true, twin = ((pictures.astype(np.float64) * texts[first::2]).sum(axis=1) for first in (0, 1))
    return np.asarray((true > twin) + 0.5 * (true == twin))


def _preference(shown: NDArray[np.int64], won: NDArray[np.float64], elsewhere: NDArray[np.float64]) -> Preference:
    """Each image counts once, with the share of its pairs that it gets right."""
    _, image = np.unique(shown, return_inverse=True)
    pairs = np.bincount(image)
    share, other = (float((np.bincount(image, each) / pairs).mean()) for each in (won, elsewhere))
    low, high = wilson(share, len(pairs))
    return Preference(share, low, high, other, len(pairs), len(image))


def wilson(share: float, count: int) -> tuple[float, float]:
    """The 95 % interval of a share of ``count`` (Wilson, 1927), wide enough for shares of fractions too."""
    squared = _Z * _Z / count
    middle = (share + squared / 2) / (1 + squared)
    half = _Z / (1 + squared) * math.sqrt(share * (1 - share) / count + squared / (4 * count))
    return min(max(middle - half, 0.0), share), max(min(middle + half, 1.0), share)
