"""Which rows of a gallery show the same picture: the same content, or nearly, as after encoding it again or resizing.

Neither of two signs is enough for that alone. Vectors of two fields in the same light are near, and so, now and then,
are 64 bits of two pictures that have nothing else in common. Rows without the bits, of earlier versions, are copies by
their content alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evidex.data.footprints import Footprint
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.near_hashes import NearHashes, Places
from evidex.retrieval.rows import Row

MOST_BITS = 8
"""Of 64, that the hashes of copies may differ in."""
LEAST_COSINE = 0.3
"""That the vectors of copies have; both are measured by benchmarks/copies.py."""
MOST_LOOKED_AT = 1024
"""Rows that are compared with a hit: thousands of pictures of open sea look alike, and no search waits for all."""
_LEAST_SHARED = 0.5
_CANDIDATES_AT_ONCE = 4096

Copies = tuple[tuple[int, Row], ...]
"""Places and rows."""
Vectors = Callable[[NDArray[np.int64]], NDArray[np.float32]]


def same_content(one: Row, other: Row) -> bool:
    """Whether two rows were made of the same bytes in the same way."""
    return (one.sha256, one.window, one.reading) == (other.sha256, other.window, other.reading)


def told_apart(one: Row, other: Row) -> bool:
    """Whether two rows are known to show another time or place, however alike they look."""
    if one.path == other.path or one.kind == "text" or other.kind == "text":
        return True  # windows of one scene, or words
    if None not in (one.acquired, other.acquired) and one.acquired != other.acquired:
        return True
    if one.footprint is None or other.footprint is None:
        return False
    return _shared(one.footprint, other.footprint) < _LEAST_SHARED


@dataclass(frozen=True)
class CopyGroup:
    """A picture that is there more than once."""

    row: Row
    copies: tuple[Row, ...]

    @property
    def is_exact(self) -> bool:
        """Whether all are the same bytes."""
        return all(same_content(self.row, other) for other in self.copies)


class CopyIndex:
    """Finds the copies of rows in one version of a gallery."""

    def __init__(self, gallery: Gallery, vectors: Vectors | None = None) -> None:
        """``vectors`` are those of rows by their places, where others hold them; by default the gallery's own."""
        self._gallery, self._vectors = gallery, vectors or _own_vectors(gallery)
        self.version = gallery.version
        self._hashes, self._known = _hashes(gallery)
        self._near = NearHashes(self._hashes, self._known, MOST_BITS)
        self._alone = np.zeros(len(self._known), np.bool_)

    @property
    def unhashed(self) -> int:
        """Pictures without a hash, which are copies by their content alone."""
        return int((self._pictures() & ~self._known).sum())

    def of(self, place: int, row: Row) -> Copies:
        """The other rows that show the picture of ``row``, which is at ``place``; of very many, the first ones."""
        if self._alone[place] or row.kind == "text":
            return ()
        alike = self._alike(place, MOST_LOOKED_AT)
        found = _copies(place, row, self._looked_up(alike) if len(alike) > 1 else {})
        self._alone[place] = not found
        return found

    def groups(self) -> Iterator[CopyGroup]:
        """Pictures that are there more than once, each row in one group; the first row of the table stands for it."""
        taken: set[int] = set()
        for part in _batched(self._candidates(), _CANDIDATES_AT_ONCE):
            rows = self._looked_up(np.unique(np.concatenate([alike for _, alike in part])))
            for place, alike in part:
                others = {where: rows[where] for where in alike.tolist() if where not in taken}
                copies = () if place in taken else _copies(place, rows[place], others)
                if copies:
                    taken.update(where for where, _ in copies)
                    yield CopyGroup(rows[place], tuple(other for _, other in copies))

    def _candidates(self) -> Iterator[tuple[int, Places]]:
        """Pictures that are not alone by hash and vector, or by content where there is no hash; with those alike."""
        for place in np.flatnonzero(self._pictures() & (self._known | self._doubled)).tolist():
            alike = self._alike(place)
            if len(alike) > 1:
                yield place, alike

    def _alike(self, place: int, most: int | None = None) -> Places:
        """Rows that look like that at ``place`` or, without a hash, have its content; at most the first ``most``."""
        if self._known[place]:
            return self._near_to(place, most)
        same = np.flatnonzero(self._content == self._content[place]) if self._doubled[place] else np.array([place])
        return same[:most]

    def _near_to(self, place: int, most: int | None) -> Places:
        """Rows whose hash and vector are near those of the row at ``place``."""
        near = self._near.near(int(self._hashes[place]))[:most]
        if len(near) < 2:
            return near
        own, *others = self._vectors(np.array([place, *near.tolist()], np.int64))
        return np.asarray(near[np.stack(others) @ own >= LEAST_COSINE])

    @cached_property
    def _content(self) -> NDArray[np.int32]:
        """Equal numbers for rows of files with equal content."""
        numbers = self._gallery.column("sha256").dictionary_encode().indices
        return np.asarray(numbers.to_numpy(zero_copy_only=False))

    @cached_property
    def _doubled(self) -> NDArray[np.bool_]:
        """Rows without a hash whose file's content is there more than once."""
        if self._known.all():
            return np.zeros(len(self._known), np.bool_)
        return np.asarray((np.bincount(self._content)[self._content] > 1) & ~self._known)

    def _pictures(self) -> NDArray[np.bool_]:
        import pyarrow.compute as pc

        return np.asarray(pc.not_equal(self._gallery.column("kind"), "text").to_numpy(zero_copy_only=False))

    def _looked_up(self, places: Places) -> dict[int, Row]:
        return dict(zip(places.tolist(), self._gallery.rows(places.tolist()), strict=True))


def _own_vectors(gallery: Gallery) -> Vectors:
    def vectors(places: NDArray[np.int64]) -> NDArray[np.float32]:
        mapped = gallery.mapped
        for where in places.tolist():
            mapped.ensure(where, where + 1)
        return np.asarray(mapped.values[places])

    return vectors


def _copies(place: int, row: Row, others: Mapping[int, Row]) -> Copies:
    """Those of ``others``, which look like ``row`` or have its content, that are copies of it."""
    hashed = row.phash is not None
    return tuple(
        (where, other)
        for where, other in others.items()
        if where != place and (same_content(row, other) or (hashed and not told_apart(row, other)))
    )


def _batched(candidates: Iterator[tuple[int, Places]], size: int) -> Iterator[list[tuple[int, Places]]]:
    while part := list(islice(candidates, size)):
        yield part


def _hashes(gallery: Gallery) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """One a row, and which of them are known."""
    if "phash" not in gallery.dataset.schema.names:
        return np.zeros(len(gallery), np.uint64), np.zeros(len(gallery), np.bool_)
    column: Any = gallery.column("phash")
    known = np.asarray(column.is_valid().to_numpy(zero_copy_only=False))
    return column.fill_null(0).to_numpy(zero_copy_only=False), known


def _shared(one: Footprint, other: Footprint) -> float:
    """The share that the boxes of two footprints have in common of what they cover together."""
    (low, high), (other_low, other_high) = _corners(one), _corners(other)
    common = np.prod(np.clip(np.minimum(high, other_high) - np.maximum(low, other_low), 0.0, None))
    whole = np.prod(high - low) + np.prod(other_high - other_low) - common
    return float(common / whole) if whole > 0 else 0.0


def _corners(footprint: Footprint) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    ring = np.array(footprint.ring)
    return ring.min(axis=0), ring.max(axis=0)
