"""Find → decode (other processes) → encode → commit, again and again until all files are there.

Every commit stands for itself: a run that is cut short leaves rows that count, and the next run goes on from there.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evidex.data.discover import RASTER_SUFFIXES, Findings, FoundFile, printable
from evidex.data.records import Skip
from evidex.data.sidecars import captions_beside
from evidex.progress import Progress
from evidex.retrieval.indexing.decode_worker import Failed, Finished, Fit, Picture, Same, Sign, Task, WorkerSettings
from evidex.retrieval.indexing.decoding import DecodePool
from evidex.retrieval.indexing.known_files import KnownFile, KnownFiles
from evidex.retrieval.indexing.options import Duplicate, IndexOptions, IndexReport, Meter
from evidex.retrieval.rows import Row, item_id

if TYPE_CHECKING:
    from evidex.encoders.model import Model
    from evidex.retrieval.gallery import Gallery

_MOST_WORKERS = 8
_COMMITS_BETWEEN_COMPACTIONS = 128
_PIECES_LEFT = 8


def fit_of(model: Model) -> Fit:
    """How decoding processes can prepare pictures for ``model`` without loading it."""
    kind = model.encoder.spec().get("kind")
    how = {"towers": "square", "clip": "crop"}.get(str(kind), "none")
    return Fit(how, model.encoder.image_size)  # type: ignore[arg-type]


class IndexRun:
    """One pass over the files that were found; `work` does it all."""

    def __init__(self, gallery: Gallery, findings: Findings, options: IndexOptions, progress: Progress) -> None:
        self._gallery = gallery
        self._options = options
        self._findings = findings
        self._known = KnownFiles(gallery)
        self._files = {file.path: file for file in findings.files}
        self._captions, problems = captions_beside(findings.files)
        self._skipped = [*findings.skipped, *problems]
        self._duplicates: list[Duplicate] = []
        self._counts: Counter[str] = Counter()
        self._failed: list[str] = []
        self._unplaced: set[str] = set()
        self._waiting: list[Picture] = []
        self._rows: list[Row] = []
        self._vectors: list[NDArray[np.float32]] = []
        self._uncommitted: Counter[str] = Counter()
        self._written: dict[str, KnownFile] = {}
        self._finished: dict[str, Finished] = {}
        self._copies: list[Same] = []
        self._again: list[Task] = []
        self._commits = 0
        self._last_commit = time.monotonic()
        self._meter = Meter(progress)

    def work(self) -> None:
        tasks = [task for file in self._findings.files if (task := self._task(file)) is not None]
        self._relabel()
        self._meter.expect(len(tasks))
        while tasks:
            self._run(tasks)
            tasks, self._again = self._again, []
        if self._options.prune:
            self._prune()
        if self._gallery.pieces() > _PIECES_LEFT or self._commits:
            self._gallery.compact()

    def _run(self, tasks: Sequence[Task]) -> None:
        settings = WorkerSettings(self._options.read, fit_of(self._gallery.model))
        workers = self._options.workers or min(os.cpu_count() or 1, _MOST_WORKERS)
        with DecodePool(tasks, settings, workers=workers, wanted=self._wanted) as messages:
            try:
                for message in messages:
                    self._take(message)
                self._encode()
            finally:
                # Also when the user interrupts: what is encoded need not be encoded again.
                self._commit()

    def report(self, seconds: float) -> IndexReport:
        return IndexReport(
            found=len(self._findings.files),
            added=self._counts["added"],
            updated=self._counts["updated"],
            unchanged=self._counts["unchanged"],
            moved=self._counts["moved"],
            pruned=self._counts["pruned"],
            duplicates=tuple(self._duplicates),
            skipped=tuple(self._skipped),
            encoded=self._counts["encoded"],
            rows=len(self._gallery),
            seconds=seconds,
            unplaced=len(self._unplaced),
        )

    def _reading(self, path: str) -> str | None:
        return self._options.reading if Path(path).suffix.lower() in RASTER_SUFFIXES else None

    def _task(self, file: FoundFile) -> Task | None:
        state = self._known.as_found(file, self._reading(file.path))
        if state is not None and state.complete:
            self._counts["unchanged"] += 1
            return None
        self._known.sizes[file.size] += 1
        if state is not None:
            return Task(file, known=frozenset(state.places), known_sha256=state.sha256)
        # Only files of equal size can be of equal content; the others need not wait for an answer.
        return Task(file, ask=self._known.sizes[file.size] > 1)

    def _wanted(self, path: str, sha256: str) -> bool:
        state = self._known.with_content(sha256, path)
        return state is None or state.reading != self._reading(path)

    def _take(self, message: object) -> None:
        match message:
            case Picture():
                self._waiting.append(message)
                self._uncommitted[message.path] += 1
                self._meter.cut(message.path, message.item.windows)
                if len(self._waiting) >= self._options.batch_size:
                    self._encode()
            case Sign():
                self._meter.cut(message.path, message.windows)
                self._meter.reached(message.path, message.done)
            case Finished():
                self._finished[message.path] = message
                self._meter.finish(message.path)
            case Same():
                self._copies.append(message)
                self._meter.finish(message.path)
            case Failed():
                self._skipped.append(Skip(printable(message.path), message.reason))
                self._failed.append(message.path)
                self._meter.finish(message.path)
        late = time.monotonic() - self._last_commit > self._options.seconds_a_commit
        if len(self._rows) + len(self._copies) >= self._options.rows_a_commit or (late and self._rows):
            self._commit()

    def _encode(self) -> None:
        if not self._waiting:
            return
        model, pictures = self._gallery.model, self._waiting
        if fit_of(model).how != "none":
            pixels = np.stack([picture.pixels for picture in pictures])
            vectors = model.encode_pixels(pixels, batch_size=self._options.batch_size)
        else:
            from PIL import Image as PillowImage

            vectors = model.encode_images([PillowImage.fromarray(picture.pixels, "RGB") for picture in pictures])
        self._counts["encoded"] += len(pictures)
        for picture, vector in zip(pictures, vectors, strict=True):
            if np.isfinite(vector).all():
                self._rows.append(self._row(picture))
                self._vectors.append(vector)
            else:
                self._uncommitted[picture.path] -= 1
                self._skipped.append(Skip(printable(picture.path), "the model gives no finite vector for it"))
        self._waiting = []

    def _row(self, picture: Picture) -> Row:
        file, item = self._files[picture.path], picture.item
        if item.crs is not None and item.footprint is None:
            self._unplaced.add(picture.path)
        return Row(
            id=item_id(picture.path, item.window),
            path=picture.path,
            kind="image" if item.window is None else "tile",
            sha256=picture.sha256,
            size=file.size,
            mtime_ns=file.mtime_ns,
            width=item.width,
            height=item.height,
            window=item.window,
            footprint=item.footprint,
            crs=item.crs,
            acquired=item.acquired,
            captions=self._captions.get(picture.path, ()),
            rendering=item.rendering,
            reading=self._reading(picture.path),
            complete=picture.last,
        )

    def _commit(self) -> None:
        self._write(self._rows, self._vectors)
        for row in self._rows:
            self._uncommitted[row.path] -= 1
        self._rows, self._vectors = [], []
        self._copy_known()
        for path in [path for path in self._finished if self._uncommitted[path] == 0]:
            self._close(self._finished.pop(path))
            del self._uncommitted[path]
        self._last_commit = time.monotonic()

    def _write(self, rows: Sequence[Row], vectors: Sequence[NDArray[np.float32]]) -> None:
        """Append rows, or put them in the place of those with their ids."""
        if not rows:
            return
        old = {row_id for path in {row.path for row in rows} for row_id in self._known.ids(path)}
        old |= {row_id for row in rows if (state := self._written.get(row.path)) for row_id in state.ids}
        values = np.stack(vectors)
        is_old = np.array([row.id in old for row in rows])
        self._gallery.append([row for row in rows if row.id not in old], values[~is_old])
        self._gallery.replace([row for row in rows if row.id in old], values[is_old])
        for row in rows:
            state = self._written.setdefault(
                row.path, KnownFile(row.path, row.sha256, row.size, row.mtime_ns, row.reading, row.captions)
            )
            state.ids.append(row.id)
            state.complete |= row.complete
        self._commits += 1
        if self._commits % _COMMITS_BETWEEN_COMPACTIONS == 0:
            self._gallery.compact()
        if self._options.committed is not None:
            self._options.committed([row.id for row in rows])

    def _close(self, end: Finished) -> None:
        """All rows of a file are committed: drop those of its earlier states and say what came of it."""
        file = self._files[end.path]
        earlier = self._known.ids(end.path)
        begun = self._known.as_found(file, self._reading(end.path))
        state = self._written.pop(end.path, None)
        kept = begun.ids if begun is not None and begun.sha256 == end.sha256 else []
        if state is None and kept and begun is not None:
            state = replace(begun, complete=True)
            self._mark_complete(kept[-1])
        elif state is not None:
            state.ids += [row_id for row_id in kept if row_id not in set(state.ids)]
        stale = set(earlier) - set(state.ids if state is not None else [])
        if stale:
            self._gallery.remove(sorted(stale))
        if end.unreadable:
            reason = f"{end.unreadable} of {end.windows} windows cannot be read: {end.problem}"
            self._skipped.append(Skip(printable(end.path), reason))
        if state is None:
            if not end.unreadable and not end.pictures:
                self._skipped.append(Skip(printable(end.path), "holds no data: all its windows are empty or alike"))
            self._known.forget(end.path)
            return
        twin = self._known.with_content(end.sha256)
        if twin is not None and twin.path != end.path and os.path.lexists(twin.path):
            self._duplicates.append(Duplicate(printable(end.path), printable(twin.path)))
        self._counts["updated" if earlier else "added"] += 1
        self._known.register(state)

    def _mark_complete(self, row_id: str) -> None:
        pairs = self._gallery.find_with_vectors([row_id])
        self._gallery.replace([replace(row, complete=True) for row, _ in pairs], np.stack([v for _, v in pairs]))

    def _copy_known(self) -> None:
        """Files of known content take the vectors that are there: touched, moved or duplicate files."""
        copies, self._copies = self._copies, []
        sources: dict[str, KnownFile] = {}
        for copy in copies:
            source = self._known.with_content(copy.sha256, copy.path)
            if source is None:
                # It was replaced since the question was asked.
                self._again.append(Task(self._files[copy.path]))
            else:
                sources[copy.path] = source
        pairs = self._gallery.find_with_vectors(
            sorted({row_id for source in sources.values() for row_id in source.ids})
        )
        by_id = {row.id: (row, vector) for row, vector in pairs}
        rows: list[Row] = []
        vectors: list[NDArray[np.float32]] = []
        for path, source in sources.items():
            for row, vector in (by_id[row_id] for row_id in source.ids):
                rows.append(self._row_of_copy(self._files[path], row))
                vectors.append(vector)
        self._write(rows, vectors)
        for path, source in sources.items():
            self._close_copy(self._files[path], source.sha256)

    def _row_of_copy(self, file: FoundFile, row: Row) -> Row:
        return replace(
            row,
            id=item_id(file.path, row.window),
            path=file.path,
            size=file.size,
            mtime_ns=file.mtime_ns,
            captions=self._captions.get(file.path, row.captions if row.path == file.path else ()),
        )

    def _close_copy(self, file: FoundFile, sha256: str) -> None:
        earlier = self._known.ids(file.path)
        state = self._written.pop(file.path)
        source = self._known.with_content(sha256, file.path)
        stale = set(earlier) - set(state.ids)
        if source is None or source.path == file.path:
            self._counts["unchanged"] += 1
        elif os.path.lexists(source.path):
            self._duplicates.append(Duplicate(printable(file.path), printable(source.path)))
            self._counts["updated" if earlier else "added"] += 1
        else:
            stale |= set(self._known.ids(source.path))
            self._known.forget(source.path)
            self._counts["moved"] += 1
        if stale:
            self._gallery.remove(sorted(stale))
        self._known.register(state)

    def _relabel(self) -> None:
        """Give unchanged files the captions that were added or corrected beside them."""
        changed: dict[str, str] = {}
        for path, captions in self._captions.items():
            state = self._known.as_found(self._files[path], self._reading(path))
            if state is not None and state.captions != captions:
                changed.update(dict.fromkeys(state.ids, path))
        pairs = self._gallery.find_with_vectors(list(changed))
        if pairs:
            rows = [replace(row, captions=self._captions[changed[row.id]]) for row, _ in pairs]
            self._gallery.replace(rows, np.stack([vector for _, vector in pairs]))
            self._commits += 1

    def _prune(self) -> None:
        gone = [path for path in self._known.paths() if path not in self._files and self._under_roots(path)]
        gone = [path for path in gone if not os.path.lexists(path)] + self._failed
        ids = [row_id for path in gone for row_id in self._known.ids(path)]
        if ids:
            self._gallery.remove(ids)
            self._counts["pruned"] += sum(bool(self._known.ids(path)) for path in gone)
            self._commits += 1

    def _under_roots(self, path: str) -> bool:
        return any(path == root or path.startswith(root.rstrip(os.sep) + os.sep) for root in self._findings.roots)
