"""Asked for a kind of scene by its bare name, how many of the first hits are of that kind?

Recall looks for the one image that a caption was written for, which on data with many look-alikes is mostly luck. This
is what somebody sees who types "airport".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evidex.errors import InputError

FIRST = 10


@dataclass(frozen=True)
class SceneNames:
    """Share of the first hits that are of the scene asked for; fewer hits count where a scene has fewer images."""

    precision: dict[str, float]
    """By label."""
    refused_elsewhere: float | None = None
    """Share of names that find no match among images of one other label alone; None where no least match is known."""
    refused_at_home: float | None = None
    """The same among images of their own label alone."""

    @property
    def mean(self) -> float:
        return float(np.mean(list(self.precision.values())))

    def to_json(self) -> dict[str, Any]:
        return {
            "first": FIRST,
            "mean": self.mean,
            "precision": self.precision,
            "refused_elsewhere": self.refused_elsewhere,
            "refused_at_home": self.refused_at_home,
        }


def scene_names(
    similarity: NDArray[Any], names: Sequence[str], labels: Sequence[str | None], floor: float | None = None
) -> SceneNames:
    """From the similarity (names, images) of each name's query to images of the given ``labels``.

    Among equally similar images all orders are equally likely, and the expectation is taken. ``floor`` is the least
    similarity of a best match that counts as one.
    """
    held = np.array(labels, dtype=object)
    found = {}
    for name, scores in zip(names, similarity, strict=True):
        wanted = held == name
        first = min(FIRST, int(wanted.sum()))
        if first == 0:
            raise InputError(f"no image is labelled '{name}'; ask for labels that the split has")
        last = np.sort(scores)[-first]
        before, level = scores > last, scores == last
        hits = wanted[before].sum() + (first - before.sum()) * wanted[level].mean()
        found[name] = float(hits / first)
    if floor is None or len(names) < 2:
        return SceneNames(found)
    best = np.stack([similarity[:, held == name].max(axis=1) for name in names], axis=1)
    own = np.eye(len(names), dtype=bool)
    return SceneNames(found, float((best[~own] < floor).mean()), float((best[own] < floor).mean()))
