"""What a gallery holds of each file, and the only way in which an index run changes it.

Whatever is written or removed is noted here in the same call: what is known is at all times what the table holds, so a
vector that is taken over for a content is that content's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from evidex.data.discover import FoundFile
from evidex.retrieval.indexing.target import IndexTarget
from evidex.retrieval.rows import Row, WrittenRows

Place = tuple[int, int] | None
Content = tuple[str, str | None]
"""What rows are made of: the bytes, and how they were read."""
Encoded = tuple[Row, NDArray[np.float32]]
_WRITES_BETWEEN_COMPACTIONS = 128
_ROWS_DESCRIBED_AT_ONCE = 10_000

_COLUMNS = (
    "id",
    "path",
    "kind",
    "sha256",
    "size",
    "mtime_ns",
    "ctime_ns",
    "window_x",
    "window_y",
    "reading",
    "complete",
    "captions",
    "catalog",
)


@dataclass(frozen=True, slots=True)
class State:
    """A file at one time, and how it was read; rows of one state belong together."""

    sha256: str
    size: int
    mtime_ns: int
    ctime_ns: int | None
    reading: str | None


@dataclass(slots=True)
class KnownFile:
    """The rows of one file."""

    path: str
    state: State | None
    """None where rows are of several states or doubled, as earlier versions could leave them: none of it is whole."""
    captions: tuple[str, ...] = ()
    ids: dict[str, Place] = field(default_factory=dict)
    """With the place where each tile begins; a picture that is not cut has none."""
    last: str | None = None
    """The row that says that the others are all there."""
    catalog: str | None = None
    """The catalog whose items tell of it."""

    @property
    def complete(self) -> bool:
        return self.state is not None and self.last is not None

    @property
    def content(self) -> Content | None:
        return None if self.state is None else (self.state.sha256, self.state.reading)


class KnownFiles:
    """The files of a gallery by path and by content."""

    def __init__(self, gallery: IndexTarget) -> None:
        self._gallery = gallery
        self._files: dict[str, KnownFile] = {}
        self._with_content: dict[Content, dict[str, None]] = {}  # paths in the order in which they had it
        self._lock = Lock()  # decoding threads ask while the run writes
        self.sizes: Counter[int] = Counter()
        self.writes = 0
        self._tidied = 0
        for record in gallery.records(_COLUMNS):
            if record["kind"] != "text":
                place = None if record["window_x"] is None else (record["window_x"], record["window_y"])
                state = State(*(record[name] for name in ("sha256", "size", "mtime_ns", "ctime_ns", "reading")))
                known = self._files.get(record["path"])
                doubled = known is not None and record["id"] in known.ids
                file = self._noted(record["path"], state, place, record["id"], record["complete"])
                file.captions = tuple(record["captions"] or ())
                file.catalog = record["catalog"]
                if doubled:
                    self._distrust(file)
        lost = gallery.checks.lost
        for path in list(self._files) if lost.words else lost.files:  # without a name it may be any
            if (held := self._files.get(path)) is not None and None not in held.ids.values():
                self._unlist(held)
                held.last = None  # its last tile is there, and others may not be
        self.before = frozenset(self._files)
        """The paths that were known before the run."""
        for file in self._files.values():
            if file.state is not None:
                self.sizes[file.state.size] += 1

    def tidy(self) -> None:
        """Compact the table where many writes have left it in pieces."""
        if self.writes - self._tidied >= _WRITES_BETWEEN_COMPACTIONS:
            self._gallery.compact()
            self._tidied = self.writes

    def catalogs(self) -> dict[str, str | None]:
        """All paths, with the catalog that tells of each."""
        return {path: file.catalog for path, file in self._files.items()}

    def files(self) -> list[KnownFile]:
        return list(self._files.values())

    def get(self, path: str) -> KnownFile | None:
        return self._files.get(path)

    def as_found(self, file: FoundFile, reads_alike: Callable[[str, str], bool]) -> KnownFile | None:
        """The rows that were made of the file as it lies there now; ``reads_alike`` tells whether a raster that was
        read in one way would be read so now."""
        known = self._unchanged(file)
        return known if known is not None and self._is_read_alike(known, reads_alike) else None

    def read_otherwise(self, file: FoundFile, reads_alike: Callable[[str, str], bool]) -> str | None:
        """How the file was read before, where it has rows and has not changed but would be read in another way."""
        known = self._unchanged(file)
        if known is None or known.state is None or self._is_read_alike(known, reads_alike):
            return None
        return known.state.reading

    def _unchanged(self, file: FoundFile) -> KnownFile | None:
        known = self._files.get(file.path)
        if known is None or known.state is None:
            return None
        state, now = known.state, (file.size, file.mtime_ns, file.ctime_ns)
        return known if (state.size, state.mtime_ns, state.ctime_ns) == now else None

    @staticmethod
    def _is_read_alike(known: KnownFile, reads_alike: Callable[[str, str], bool]) -> bool:
        reading = None if known.state is None else known.state.reading
        return reading is None or reads_alike(known.path, reading)

    def with_content(self, sha256: str, reading: str | None, path: str = "", *, own: bool = False) -> KnownFile | None:
        """A file of this content, read in this way, whose rows are all there; that at ``path`` if it is one.

        No other than that where only its ``own`` rows can be taken over: what a catalog tells of a file holds for no
        other.
        """
        known = self._files.get(path)
        if known is not None and known.complete and known.content == (sha256, reading):
            return known
        if own:
            return None
        with self._lock:
            holders = [self._files.get(holder) for holder in self._with_content.get((sha256, reading), ())]
        return next((holder for holder in holders if holder is not None and holder.catalog is None), None)

    def earlier_with_content(self, file: KnownFile) -> Iterator[str]:
        """The files that had the content of ``file`` before it."""
        holders = self._with_content.get(file.content, {}) if file.content is not None else {}
        return takewhile(lambda other: other != file.path, holders)

    def put(self, encoded: Sequence[Encoded]) -> None:
        """Commit rows. A file's rows of another state go before or with this; at no time do the two mix."""
        by_path: dict[str, list[Encoded]] = {}
        for row, vector in encoded:
            by_path.setdefault(row.path, []).append((row, vector))
        gone: list[str] = []
        new: list[Encoded] = []
        instead: list[Encoded] = []
        for path, rows in by_path.items():
            known = self._files.get(path)
            if known is None:
                new += rows
            elif known.state == state_of(rows[0][0]):
                new += [pair for pair in rows if pair[0].id not in known.ids]
                instead += [pair for pair in rows if pair[0].id in known.ids]
            elif known.state is not None and known.ids.keys() <= {row.id for row, _ in rows}:
                instead += rows
            else:
                gone.append(path)
                new += rows
        self.drop(gone)
        if new:
            self._gallery.append([row for row, _ in new], np.stack([vector for _, vector in new]))
            self._note(row for row, _ in new)
        self._replace(instead)

    def put_written(self, written: Sequence[WrittenRows]) -> None:
        """Commit rows that other processes wrote, of files that were not known."""
        if written:
            self._gallery.append_written(written)
            self._note([row for each in written for row in each.rows])

    def drop(self, paths: Iterable[str]) -> None:
        """Remove all rows of these files."""
        dropped = [known for path in paths if (known := self._forget(path)) is not None]
        # Ids go by the thousand: what is left after a crash in between must not look whole.
        ids = [known.last for known in dropped if known.last is not None]
        ids += [row_id for known in dropped for row_id in known.ids if row_id != known.last]
        if ids:
            self._gallery.remove(ids)
            self.writes += 1

    def mark_complete(self, path: str) -> None:
        """Mark the last row of ``path``: the windows after it show nothing."""
        known = self._files[path]
        last = max(known.ids, key=lambda row_id: (known.ids[row_id] or (0, 0))[::-1])
        pairs = self._gallery.find_with_vectors([last])
        self._replace([(replace(row, complete=True), vector) for row, vector in pairs])

    def relabel(self, captions: dict[str, tuple[str, ...]]) -> None:
        """Give files other captions."""
        ids = [row_id for path in captions for row_id in self._files[path].ids]
        pairs = self._gallery.find_with_vectors(ids)
        self._replace([(replace(row, captions=captions[row.path]), vector) for row, vector in pairs])

    def describe(self, paths: Iterable[str], described: Callable[[Row], Row]) -> None:
        """Give the rows of these files other words about them, where they differ; what they were made of stays."""
        ids = [row_id for path in paths for row_id in self._files[path].ids]
        for start in range(0, len(ids), _ROWS_DESCRIBED_AT_ONCE):
            pairs = self._gallery.find_with_vectors(ids[start : start + _ROWS_DESCRIBED_AT_ONCE])
            self._replace([(now, vector) for row, vector in pairs if (now := described(row)) != row])

    def rows_of(self, files: Iterable[KnownFile]) -> dict[str, list[Encoded]]:
        """The rows and vectors of these files, by path."""
        ids = sorted({row_id for file in files for row_id in file.ids})
        found: dict[str, list[Encoded]] = {}
        for row, vector in self._gallery.find_with_vectors(ids):
            found.setdefault(row.path, []).append((row, vector))
        return found

    def _replace(self, encoded: Sequence[Encoded]) -> None:
        if encoded:
            self._gallery.replace([row for row, _ in encoded], np.stack([vector for _, vector in encoded]))
            for path in {row.path for row, _ in encoded if self._files[row.path].state != state_of(row)}:
                self._forget(path)
            self._note(row for row, _ in encoded)

    def _note(self, rows: Iterable[Row]) -> None:
        for row in rows:
            place = (row.window.x, row.window.y) if row.window is not None else None
            file = self._noted(row.path, state_of(row), place, row.id, row.complete)
            file.captions, file.catalog = row.captions, row.item.catalog if row.item else None
        self.writes += 1

    def _noted(self, path: str, state: State, place: Place, row_id: str, last: bool) -> KnownFile:
        known = self._files.setdefault(path, KnownFile(path, state))
        if known.state != state:
            self._distrust(known)
        known.ids[row_id] = place
        if last:
            known.last = row_id
            if known.content is not None:
                with self._lock:
                    self._with_content.setdefault(known.content, {})[path] = None
        return known

    def _distrust(self, known: KnownFile) -> None:
        self._unlist(known)
        known.state = None

    def _forget(self, path: str) -> KnownFile | None:
        known = self._files.pop(path, None)
        if known is not None:
            self._unlist(known)
        return known

    def _unlist(self, known: KnownFile) -> None:
        if known.content is not None:
            with self._lock:
                self._with_content.get(known.content, {}).pop(known.path, None)


def state_of(row: Row) -> State:
    return State(row.sha256, row.size, row.mtime_ns, row.ctime_ns, row.reading)
