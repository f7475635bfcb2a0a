"""What rows there are, in a few numbers; those of disjoint rows add up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from evidex.retrieval.filters import Columns, Target


@dataclass(frozen=True)
class Counts:
    """Of rows of one version of a gallery."""

    rows: int
    kinds: Mapping[str, int]
    georeferenced: int
    dated: int
    bounds: tuple[float, float, float, float] | None
    """west, south, east, north; east may run past 180."""
    first: datetime | None
    """When the earliest of the dated rows was taken, and below the latest."""
    last: datetime | None

    @property
    def default_target(self) -> Target:
        """Pictures, unless there are only texts."""
        return "texts" if self.rows and self.kinds.get("text", 0) == self.rows else "images"


def count_rows(rows: Columns) -> Counts:
    import pyarrow.compute as pc

    kinds, acquired, footprints = (rows.column(name) for name in ("kind", "acquired", "footprint"))
    span = pc.min_max(acquired).as_py()
    return Counts(
        len(kinds),
        {entry["values"].as_py(): entry["counts"].as_py() for entry in kinds.value_counts()},
        len(footprints) - footprints.null_count,
        len(acquired) - acquired.null_count,
        _bounds(footprints.flatten().to_numpy(zero_copy_only=False)),
        span["min"],
        span["max"],
    )


def counted_together(parts: Sequence[Counts]) -> Counts:
    """Of all rows, from the counts of disjoint ones."""
    kinds: Counter[str] = Counter()
    for part in parts:
        kinds.update(part.kinds)
    boxes = np.array([part.bounds for part in parts if part.bounds is not None])
    return Counts(
        sum(part.rows for part in parts),
        dict(kinds),
        sum(part.georeferenced for part in parts),
        sum(part.dated for part in parts),
        (*boxes[:, :2].min(axis=0).tolist(), *boxes[:, 2:].max(axis=0).tolist()) if len(boxes) else None,
        min((part.first for part in parts if part.first is not None), default=None),
        max((part.last for part in parts if part.last is not None), default=None),
    )


def _bounds(values: np.ndarray) -> tuple[float, float, float, float] | None:
    if not len(values):
        return None
    longitudes, latitudes = values[::2], values[1::2]
    return float(longitudes.min()), float(latitudes.min()), float(longitudes.max()), float(latitudes.max())
