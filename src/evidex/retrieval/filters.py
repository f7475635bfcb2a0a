"""Which rows a query may find: by kind, place, time, path and what a catalog tells, decided before the scan."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from evidex.data.footprints import Bounds
from evidex.errors import InputError

Mask = NDArray[np.bool_]
Target = Literal["images", "texts"]


@dataclass(frozen=True)
class Filters:
    """All that are set must hold; a row that does not know its place, time or clouds fails a filter on it."""

    bbox: Bounds | None = None
    """Rows whose footprint's box touches this one."""
    after: datetime | None = None
    """Taken at this time or later."""
    before: datetime | None = None
    """Taken earlier than this."""
    glob: str | None = None
    """Matches the path, or its end: ``*.tif``, ``2024/*``, ``/archive/**``."""
    collection: str | None = None
    """Of this STAC collection."""
    max_cloud: float | None = None
    """With no more clouds than this, in percent."""

    def __post_init__(self) -> None:
        if self.max_cloud is not None and not 0.0 <= self.max_cloud <= 100.0:
            raise InputError(f"max_cloud is {self.max_cloud:g}; give percent, 0 to 100")
        if self.bbox is not None:
            _check_box(self.bbox)
        for name in ("after", "before"):
            time = getattr(self, name)
            if time is not None and time.tzinfo is None:
                raise InputError(f"{name} {time} has no time zone; give one, e.g. UTC")
        if self.glob is not None and not self.glob.strip():
            raise InputError("an empty glob matches no file; give a pattern such as '*.tif', or leave it out")


NO_FILTERS = Filters()


class Columns(Protocol):
    """Rows of one version of a gallery, all or some, column by column."""

    @property
    def version(self) -> int: ...

    def column(self, name: str) -> Any:
        """As an Arrow array."""


class Selector:
    """Answers filters over one version of a gallery's rows; columns are read when first needed."""

    def __init__(self, rows: Columns) -> None:
        self._rows = rows
        self.version = rows.version
        kinds = rows.column("kind").dictionary_encode()
        names = kinds.dictionary.to_pylist()
        is_text = np.array([name == "text" for name in names] or [False])
        self._texts: Mask = is_text[kinds.indices.to_numpy(zero_copy_only=False)] if names else np.zeros(0, np.bool_)
        self._boxes: NDArray[np.float64] | None = None
        self._times: NDArray[np.float64] | None = None

    def default_target(self) -> Target:
        """Pictures, unless there are only texts."""
        return "texts" if len(self._texts) and self._texts.all() else "images"

    def select(self, filters: Filters, target: Target) -> Mask | None:
        """The rows that may be found; None means all."""
        kept = self._texts if target == "texts" else ~self._texts
        if filters.bbox is not None:
            kept = kept & self._in_box(filters.bbox)
        if filters.after is not None:
            kept = kept & (self._acquired() >= filters.after.timestamp())
        if filters.before is not None:
            kept = kept & (self._acquired() < filters.before.timestamp())
        if filters.glob is not None:
            kept = kept & self._matches(filters.glob)
        if filters.collection is not None:
            kept = kept & self._in_collection(filters.collection)
        if filters.max_cloud is not None:
            clouds = self._rows.column("cloud_cover").to_numpy(zero_copy_only=False)
            kept = kept & (clouds <= filters.max_cloud)  # NaN, where unknown, is not
        return None if kept.all() else kept

    def _in_box(self, box: Bounds) -> Mask:
        if self._boxes is None:
            self._boxes = _boxes(self._rows.column("footprint"))
        west, south, east, north = self._boxes.T
        eastern_end = box.east if box.east >= box.west else box.east + 360.0
        inside = np.zeros(len(west), np.bool_)
        for turn in (-360.0, 0.0, 360.0):
            inside |= (west + turn <= eastern_end) & (east + turn >= box.west)
        return np.asarray(inside & (south <= box.north) & (north >= box.south))

    def _acquired(self) -> NDArray[np.float64]:
        """Seconds since 1970; NaN, which no comparison accepts, where unknown."""
        if self._times is None:
            import pyarrow as pa

            micros = self._rows.column("acquired").cast(pa.int64())
            self._times = micros.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False) / 1e6
        return self._times

    def _in_collection(self, name: str) -> Mask:
        import pyarrow.compute as pc

        same = pc.equal(self._rows.column("collection"), name).fill_null(False)
        return np.asarray(same.to_numpy(zero_copy_only=False), np.bool_)

    def _matches(self, pattern: str) -> Mask:
        paths = self._rows.column("path").dictionary_encode()  # a scene's tiles share one path
        hits = np.array([*map(path_matcher(pattern), paths.dictionary.to_pylist())] or [False])
        return np.asarray(hits[paths.indices.to_numpy(zero_copy_only=False)])


def path_matcher(pattern: str) -> Callable[[str], bool]:
    """Whether a path, or its end, matches ``pattern``; letters count as they are written."""
    whole = re.compile(fnmatch.translate(pattern))
    tail = re.compile(fnmatch.translate(f"*/{pattern.removeprefix('./').lstrip('/')}"))  # paths have no "./"
    return lambda path: bool(whole.match(path) or tail.match(path))


def _boxes(column: Any) -> NDArray[np.float64]:
    """West, south, east, north of each footprint; NaN where there is none."""
    boxes = np.full((len(column), 4), np.nan)
    lengths = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    present = np.flatnonzero(lengths > 0)
    if len(present):
        points = column.flatten().to_numpy(zero_copy_only=False).reshape(-1, 2)
        starts = np.concatenate([[0], np.cumsum(lengths[present] // 2)[:-1]])
        boxes[present, :2] = np.minimum.reduceat(points, starts)
        boxes[present, 2:] = np.maximum.reduceat(points, starts)
    return boxes


def _check_box(box: Bounds) -> None:
    shown = f"{box.west:g},{box.south:g},{box.east:g},{box.north:g}"
    values = np.array([box.west, box.south, box.east, box.north])
    if not np.isfinite(values).all() or np.abs(values[[0, 2]]).max() > 180 or np.abs(values[[1, 3]]).max() > 90:
        raise InputError(f"box {shown} leaves the earth; give west,south,east,north in degrees")
    if box.south > box.north:
        raise InputError(f"box {shown} has its south above its north; give west,south,east,north")
