"""A range of a gallery's rows in the process that scans them.

Every call names the span it is about, so a process that was started anew, or that meets a gallery that has grown, opens
what it needs then; nothing has to be told to it before.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from evidex.errors import DamagedError
from evidex.retrieval.counts import Counts, count_rows
from evidex.retrieval.filters import Filters, Mask, Selector, Target
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.rows import vectors_in
from evidex.retrieval.scan.aligned import aligned
from evidex.retrieval.scan.partial import ScanResult
from evidex.retrieval.scan.precision import Precision, scan_vectors
from evidex.retrieval.scan.scan import scan
from evidex.retrieval.sharded.span import MovedError, Span
from evidex.retrieval.steady import steadily
from evidex.retrieval.table import open_at, reading
from evidex.retrieval.taking import Piece, column_between, pieces_between
from evidex.retrieval.vector_file import fragments_of, is_beginning

T = TypeVar("T")
Vectors = NDArray[np.float32]
PieceKey = tuple[str, ...]
_PATROL_SECONDS = 0.01


class ShardHolder:
    """Answers for one span of the gallery at ``place`` at a time, with ``threads`` for a scan."""

    def __init__(self, place: str, threads: int, precision: Precision = "float32") -> None:
        self._place = place
        self._threads = threads
        self._precision: Precision = precision
        self._gallery: Gallery | None = None
        self._rows: HeldRows | None = None
        self._known: tuple[int, int] | None = None
        """A version that was open, and an earlier one whose rows it begins with."""

    def alive(self) -> int:
        """The number of this process."""
        return os.getpid()

    def counts(self, span: Span) -> Counts:
        return self._steadily(span, count_rows)

    def scan(self, span: Span, vectors: Vectors, filters: Filters, target: Target, top: int) -> ScanResult:
        """The best rows, under their places in the whole, and the evidence of all that pass ``filters``."""
        return self._steadily(span, lambda rows: rows.scan(vectors, filters, target, top, self._threads))

    def vectors(self, span: Span, places: NDArray[np.int64]) -> Vectors:
        """Of the rows at these places in the whole."""
        return self._steadily(span, lambda rows: rows.vectors(places))

    def find(self, span: Span, row_id: str) -> Vectors | None:
        """The vector of the row with this id, if it is here."""
        return self._steadily(span, lambda rows: rows.find(row_id))

    def patrol(self, span: Span) -> bool:
        """Hold a little more of the files against their checksums; whether there is more to read."""
        return self._steadily(span, lambda rows: rows.read_on())

    def _steadily(self, span: Span, ask: Callable[[HeldRows], T]) -> T:
        if self._gallery is None:
            self._gallery = Gallery.open(self._place)
        gallery = self._gallery
        return steadily(gallery, gallery.refresh, lambda: ask(self._held(gallery, span)))

    def _held(self, gallery: Gallery, span: Span) -> HeldRows:
        if gallery.version < span.version:
            gallery.refresh()
        if not self._has(gallery, span.version):
            raise MovedError(gallery.version)
        if self._rows is None or self._rows.span != span:
            kept = {} if self._rows is None else self._rows.pieces
            self._rows = HeldRows(gallery, span, self._precision, kept)
        return self._rows

    def _has(self, gallery: Gallery, version: int) -> bool:
        """Whether what is open begins with the rows of ``version``: those who only append keep nobody waiting."""
        versions = gallery.version, version
        if versions[0] != versions[1] and versions != self._known:
            try:
                earlier = fragments_of(open_at(gallery.place, version))
            except DamagedError:  # gone
                return False
            now = fragments_of(gallery.dataset)
            if len(earlier) > len(now) or not is_beginning(earlier, now):
                return False
            self._known = versions
        return True


class HeldRows:
    """The rows of one span: columns when first needed, vectors mapped or, of an object store, in memory.

    ``kept`` are pieces that an earlier version had in memory already.
    """

    def __init__(self, gallery: Gallery, span: Span, precision: Precision, kept: dict[PieceKey, Vectors]) -> None:
        self.span = span
        self.pieces: dict[PieceKey, Vectors] = {}
        self._gallery = gallery
        self._precision: Precision = precision
        self._columns: dict[str, Any] = {}
        self._selector: Selector | None = None
        self._rounded: Any = None
        self._round: Iterator[None] | None = None
        if not isinstance(gallery.place, Path):
            self._read(kept)

    @property
    def version(self) -> int:
        return self.span.version

    def column(self, name: str) -> Any:
        if name not in self._columns:
            with reading(self._gallery.place):
                self._columns[name] = column_between(self._gallery.dataset, name, self.span.first, self.span.stop)
        return self._columns[name]

    def select(self, filters: Filters, target: Target) -> Mask | None:
        if self._selector is None:
            self._selector = Selector(self)
        return self._selector.select(filters, target)

    def scan(self, vectors: Vectors, filters: Filters, target: Target, top: int, threads: int) -> ScanResult:
        first, mask = self.span.first, self.select(filters, target)
        values, ensure = self._values()
        scanned: Any = values
        if self._precision != "float32":
            if self._rounded is None:
                if ensure is not None:
                    ensure(0, len(self.span))
                self._rounded = [scan_vectors(part, self._precision).scanned for part in values]
            scanned = self._rounded
        found = scan(
            vectors,
            scanned,
            temperature=self._gallery.temperature,
            top=top,
            threads=threads,
            rows=mask,
            exact=None if scanned is values else values,
            ensure=ensure,
        )
        return replace(found, ids=found.ids + first)

    def vectors(self, places: NDArray[np.int64]) -> Vectors:
        inside = places - self.span.first
        parts, ensure = self._values()
        if ensure is not None:
            for row in inside.tolist():
                ensure(row, row + 1)
        starts = np.cumsum([0, *(len(part) for part in parts)])
        owner = np.searchsorted(starts, inside, side="right") - 1
        return np.stack([parts[n][row - starts[n]] for n, row in zip(owner, inside, strict=True)])

    def find(self, row_id: str) -> Vectors | None:
        import pyarrow.compute as pc

        place = pc.index(self.column("id"), row_id).as_py()
        return None if place < 0 else self.vectors(np.array([self.span.first + place]))[0]

    def read_on(self) -> bool:
        if self._round is None:
            self._values()
            mapped = isinstance(self._gallery.place, Path)
            self._round = self._gallery.patrol() if mapped else iter(())
        end = time.monotonic() + _PATROL_SECONDS
        for _ in self._round:
            if time.monotonic() > end:
                return True
        self._round = None
        return False

    def _values(self) -> tuple[Sequence[Vectors], Callable[[int, int], None] | None]:
        """The vectors, row after row, and what to call before rows of them are read."""
        if not isinstance(self._gallery.place, Path):
            return list(self.pieces.values()), None
        mapped, (first, stop) = self._gallery.mapped, (self.span.first, self.span.stop)
        mapped.used = first, stop
        mapped.look()
        return [mapped.values[first:stop]], lambda a, b: mapped.ensure(first + a, first + b)

    def _read(self, kept: dict[PieceKey, Vectors]) -> None:
        for piece in pieces_between(self._gallery.dataset, self.span.first, self.span.stop):
            key = _key(piece)
            with reading(self._gallery.place):
                self.pieces[key] = kept[key] if key in kept else _vectors(self._gallery.dataset, piece)


def _key(piece: Piece) -> PieceKey:
    """Names the very rows: files of a table are never written twice under one name."""
    fragment = piece.fragment
    files = (file.path for file in fragment.data_files())
    return *files, str(fragment.deletion_file()), f"{piece.first}-{piece.stop}"


def _vectors(dataset: Any, piece: Piece) -> Vectors:
    table = dataset.scanner(
        columns=["vector"],
        fragments=[piece.fragment],
        offset=piece.first,
        limit=piece.stop - piece.first,
        scan_in_order=True,
    ).to_table()
    vectors = aligned(vectors_in(table))
    vectors.flags.writeable = False
    return vectors
