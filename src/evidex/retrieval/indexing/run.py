"""Find → decode (other processes) → encode → commit, again and again until all files are there.

Every commit stands for itself: a run that is cut short leaves rows that count, and the next run goes on from there.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evidex.data.discover import Findings, FoundFile
from evidex.data.sidecars import captions_beside
from evidex.errors import InputError
from evidex.progress import Progress
from evidex.retrieval.indexing.beside import Beside
from evidex.retrieval.indexing.decode_worker import (
    Content,
    Failed,
    Finished,
    Fit,
    Picture,
    Same,
    Sign,
    Task,
    WorkerSettings,
)
from evidex.retrieval.indexing.decoding import DecodePool
from evidex.retrieval.indexing.known_files import Encoded, KnownFile, KnownFiles, State
from evidex.retrieval.indexing.options import IndexOptions
from evidex.retrieval.indexing.pruning import Pruning, is_gone, is_taken_away
from evidex.retrieval.indexing.report import IndexReport, Meter, Tally
from evidex.retrieval.rows import Row, item_id

if TYPE_CHECKING:
    from evidex.encoders.model import Model
    from evidex.retrieval.gallery import Gallery

_MOST_WORKERS = 8
_WRITES_BETWEEN_COMPACTIONS = 128
_PIECES_LEFT = 8
_COPIED_FOR_ONE_ENCODED = 16  # a copied row is soon copied again; every commit looks through the whole table for it


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
        self._roots = frozenset(findings.roots)
        self._known = KnownFiles(gallery)
        self._before = frozenset(file.path for file in self._known.files())
        self._beside = Beside()
        self._captions, problems = captions_beside(findings.files)
        self._tally = Tally(list(findings.skipped), list(problems))
        self._failed: list[str] = []
        self._waiting: list[Picture] = []
        self._encoded: list[Encoded] = []
        self._uncommitted: Counter[str] = Counter()
        self._blank: Counter[str] = Counter()
        self._finished: dict[str, Finished] = {}
        self._copies: list[Same] = []
        self._rows_to_copy = 0
        self._again: list[Task] = []
        self._committing = False
        self._compacted = 0
        self._last_commit = time.monotonic()
        self._meter = Meter(progress)
        self.refusal: InputError | None = None
        """Why nothing was pruned, though that was asked for; all else is done all the same."""

    def work(self) -> None:
        pruning = Pruning.of(self._findings, self._before, self._options.force)
        if self._options.prune:
            pruning.check_before()
        tasks = [task for file in self._findings.files if (task := self._task(file)) is not None]
        self._relabel()
        self._meter.expect(len(tasks))
        while tasks:
            self._run(tasks)
            tasks, self._again = self._again, []
        if self._options.prune:
            self._prune(pruning)
        if self._gallery.pieces() > _PIECES_LEFT or self._known.writes:
            self._gallery.compact()

    def _prune(self, pruning: Pruning) -> None:
        dropped = [path for path in {*pruning.gone(), *self._failed} if self._known.get(path) is not None]
        try:
            pruning.check(dropped)
        except InputError as refusal:
            self.refusal = refusal
        else:
            self._known.drop(dropped)
            self._tally.counts["pruned"] = len(dropped)

    def _run(self, tasks: Sequence[Task]) -> None:
        settings = WorkerSettings(self._options.read, fit_of(self._gallery.model))
        workers = self._options.workers or min(os.cpu_count() or 1, _MOST_WORKERS)
        with DecodePool(tasks, settings, workers=workers, wanted=self._wanted) as messages:
            try:
                for message in messages:
                    self._take(message)
                self._encode()
            except BaseException:
                # What is encoded need not be encoded again; but of a commit that was cut short nobody knows how far
                # it came, and rows that follow on lost ones would make their file look whole.
                if not self._committing:
                    self._commit()
                raise
            self._commit()

    def report(self, seconds: float) -> IndexReport:
        return self._tally.report(self._known.files(), len(self._gallery), self._twin, seconds)

    def _reading(self, path: str, raster: bool = True) -> str | None:
        """What bears on the rows of a file besides its content."""
        return self._options.reading + self._beside.of(path) if raster else None

    def _task(self, file: FoundFile) -> Task | None:
        known = self._known.as_found(file, self._reading)
        if known is not None and known.complete:
            self._tally.counts["unchanged"] += 1
            return None
        self._known.sizes[file.size] += 1
        if known is not None and known.state is not None:
            places = frozenset(place for place in known.ids.values() if place is not None)
            return Task(file, known=places, known_sha256=known.state.sha256)
        # Only files of equal size can be of equal content; the others need not wait for an answer.
        return Task(file, ask=self._known.sizes[file.size] > 1)

    def _wanted(self, content: Content) -> bool:
        return (
            self._known.with_content(content.sha256, self._reading(content.path, content.raster), content.path) is None
        )

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
                source = self._known.with_content(message.sha256, self._reading(message.path, message.raster))
                self._rows_to_copy += len(source.ids) if source is not None else 1
                self._meter.finish(message.path)
            case Failed():
                self._tally.skip(message.path, message.reason)
                if not message.changed:
                    self._failed.append(message.path)
                self._meter.finish(message.path)
        late = time.monotonic() - self._last_commit > self._options.seconds_a_commit
        many = len(self._encoded) + self._rows_to_copy / _COPIED_FOR_ONE_ENCODED >= self._options.rows_a_commit
        if many or (late and self._encoded):
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
        self._tally.counts["encoded"] += len(pictures)
        self._waiting = []
        for picture, vector in zip(pictures, vectors, strict=True):
            if np.isfinite(vector).all():
                self._encoded.append((self._row(picture), vector))
            else:
                self._uncommitted[picture.path] -= 1
                self._blank[picture.path] += 1

    def _row(self, picture: Picture) -> Row:
        file, item = picture.file, picture.item
        if item.crs is not None and item.footprint is None:
            self._tally.unplaced.add(picture.path)
        return Row(
            id=item_id(picture.path, item.window),
            path=picture.path,
            kind="image" if item.window is None else "tile",
            sha256=picture.sha256,
            size=file.size,
            mtime_ns=file.mtime_ns,
            ctime_ns=file.ctime_ns,
            width=item.width,
            height=item.height,
            window=item.window,
            footprint=item.footprint,
            crs=item.crs,
            acquired=item.acquired,
            captions=self._captions.get(picture.path, ()),
            rendering=item.rendering,
            reading=self._reading(picture.path, picture.raster),
            complete=picture.last,
        )

    def _commit(self) -> None:
        self._committing = True
        self._copy_known()  # before the rows it takes from are overwritten
        self._put(self._encoded)
        for row, _ in self._encoded:
            self._uncommitted[row.path] -= 1
        self._encoded = []
        for path in [path for path in self._finished if self._uncommitted[path] == 0]:
            self._close(self._finished.pop(path))
            del self._uncommitted[path]
        if self._known.writes - self._compacted >= _WRITES_BETWEEN_COMPACTIONS:
            self._gallery.compact()
            self._compacted = self._known.writes
        self._last_commit = time.monotonic()
        self._committing = False

    def _put(self, encoded: Sequence[Encoded]) -> None:
        self._known.put(encoded)
        if encoded and self._options.committed is not None:
            self._options.committed([row.id for row, _ in encoded])

    def _close(self, end: Finished) -> None:
        """All rows of a file are committed: drop those of its earlier state and say what came of it."""
        file = end.file
        now = State(end.sha256, file.size, file.mtime_ns, file.ctime_ns, self._reading(end.path, end.raster))
        reason = _shortfall(end, self._blank.pop(end.path, 0))
        known = self._known.get(end.path)
        if known is None or known.state != now:
            self._known.drop([end.path])
            self._tally.skip(end.path, reason or "holds no data: all its windows are empty or alike")
            return
        if reason is not None:
            self._tally.remark(end.path, reason)
        elif not known.complete:
            self._known.mark_complete(end.path)
        how = "updated" if end.pictures else "unchanged"
        self._tally.file(how if end.path in self._before else "added", end.path)

    def _twin(self, path: str) -> str | None:
        """A file that had the content of ``path`` before, and is still there."""
        known = self._known.get(path)
        earlier = self._known.earlier_with_content(known) if known is not None else ()
        return next((other for other in earlier if not is_gone(other)), None)

    def _copy_known(self) -> None:
        """Files of known content take the vectors that are there: touched, moved or duplicate files."""
        copies, self._copies, self._rows_to_copy = self._copies, [], 0
        sources: list[tuple[Same, KnownFile]] = []
        for copy in copies:
            source = self._known.with_content(copy.sha256, self._reading(copy.path, copy.raster), copy.path)
            if source is None:
                # It was replaced since the question was asked.
                self._again.append(Task(copy.file))
            else:
                sources.append((copy, source))
        rows = self._known.rows_of(source for _, source in sources)
        self._put([self._copied(copy, *pair) for copy, source in sources for pair in rows[source.path]])
        moved = {
            source.path: copy.path
            for copy, source in sources
            if self._known.get(source.path) is source
            and source.path != copy.path
            and is_taken_away(source.path, self._roots)
        }
        self._known.drop(moved)
        for copy, source in sources:
            if source.path == copy.path:
                self._tally.counts["unchanged"] += 1
            elif moved.get(source.path) == copy.path:
                self._tally.counts["moved"] += 1
            else:
                how = "updated" if copy.path in self._before else "added"
                self._tally.file(how, copy.path)

    def _copied(self, copy: Same, row: Row, vector: NDArray[np.float32]) -> Encoded:
        file = copy.file
        row = replace(
            row, id=item_id(file.path, row.window), path=file.path, captions=self._captions.get(file.path, ())
        )
        return replace(row, size=file.size, mtime_ns=file.mtime_ns, ctime_ns=file.ctime_ns), vector

    def _relabel(self) -> None:
        """Give unchanged files the captions that lie beside them now."""
        changed: dict[str, tuple[str, ...]] = {}
        for file in self._findings.files:
            known = self._known.as_found(file, self._reading)
            captions = self._captions.get(file.path, ())
            if known is not None and known.captions != captions:
                changed[file.path] = captions
        self._known.relabel(changed)


def _shortfall(end: Finished, blank: int) -> str | None:
    """Why a file is not wholly in the gallery; None if it is, as far as it shows anything."""
    if end.unreadable:
        return f"{end.unreadable} of {end.windows} windows cannot be read: {end.problem}"
    if blank:
        return "the model gives no finite vector for " + ("it" if end.windows == 1 else f"{blank} of its windows")
    return None
