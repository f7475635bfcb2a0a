"""Find → decode (other processes) → encode → commit, again and again until all files are there.

Every commit stands for itself: a run that is cut short leaves rows that count, and the next run goes on from there.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evidex.data.discover import FoundFile
from evidex.data.items import Piece
from evidex.data.sidecars import captions_beside, may_have_lost
from evidex.data.stac.finding import Found
from evidex.errors import InputError
from evidex.progress import Progress
from evidex.retrieval.indexing.commits import Commits
from evidex.retrieval.indexing.decode_worker import (
    Content,
    DecodeTask,
    Failed,
    Finished,
    Fit,
    Picture,
    Same,
    Sign,
    WorkerSettings,
)
from evidex.retrieval.indexing.decoding import DecodePool
from evidex.retrieval.indexing.files_under_way import FilesUnderWay, Stage
from evidex.retrieval.indexing.known_files import KnownFile, KnownFiles
from evidex.retrieval.indexing.options import IndexOptions
from evidex.retrieval.indexing.pruning import Pruning, is_gone
from evidex.retrieval.indexing.report import IndexReport, Meter, Tally
from evidex.retrieval.indexing.row_making import PIECES, RowMaker
from evidex.retrieval.indexing.workforce import EncodedFiles, Job
from evidex.retrieval.rows import Row

if TYPE_CHECKING:
    from evidex.encoders.model import Model
    from evidex.retrieval.indexing.target import IndexTarget

_MOST_WORKERS = 8
_PIECES_LEFT = 8


def fit_of(model: Model) -> Fit:
    """How decoding processes can prepare pictures for ``model`` without loading it."""
    kind = model.encoder.spec().get("kind")
    how = {"towers": "square", "clip": "crop"}.get(str(kind), "none")
    return Fit(how, model.encoder.image_size)  # type: ignore[arg-type]


def encode_pictures(model: Model, pictures: Sequence[Picture], batch_size: int) -> NDArray[np.float32]:
    """A row for each picture; of one that shows nothing to the model it is not finite."""
    if fit_of(model).how != "none":
        return model.encode_pixels(np.stack([picture.pixels for picture in pictures]), batch_size=batch_size)
    from PIL import Image as PillowImage

    return model.encode_images([PillowImage.fromarray(picture.pixels, "RGB") for picture in pictures])


class IndexRun:
    """One pass over the files that were found; `work` does it all. `FileUnderWay` draws the way of each file."""

    def __init__(
        self,
        gallery: IndexTarget,
        findings: Found,
        options: IndexOptions,
        progress: Progress,
        captions: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        """``captions`` by path; where they are not given, those that lie beside the files."""
        self._gallery, self._findings, self._options = gallery, findings, options
        captions, problems = captions_beside(findings.files) if captions is None else (captions, ())
        self._known = KnownFiles(gallery)
        if problems:  # a caption file that cannot be read takes nothing away
            held = {file.path: known.captions for file in findings.files if (known := self._known.get(file.path))}
            lost = {path: held[path] for path in held if may_have_lost(path, problems)}
            captions = lost | dict(captions)
        self._maker = RowMaker(captions, options.reading, findings.assets)
        self._tally = Tally(list(findings.skipped), [*problems, *findings.remarks], findings.passed_over)
        self._files = FilesUnderWay()
        self._commits = Commits(self._known, self._files, self._maker, self._tally, options, gallery.rows_a_commit)
        self._waiting: list[Picture] = []
        self._meter = Meter(progress)
        self.refusal: InputError | None = None
        """Why nothing was pruned, though that was asked for; all else is done all the same."""

    def work(self) -> None:
        pruning = Pruning.of(self._findings, self._known.catalogs(), self._options.force)
        if self._options.prune:
            pruning.check_before()
        tasks = [task for file in self._findings.files if (task := self._task(file)) is not None]
        self._relabel()
        self._meter.expect(len(tasks))
        while tasks:
            self._run(tasks)
            tasks = [self._anew(file) for file in self._files.again()]
        if self._options.prune:
            self._prune(pruning)
        else:
            self._tally.counts["gone"] = sum(self._known.get(path) is not None for path in pruning.gone())
        if self._gallery.pieces() > _PIECES_LEFT or self._known.writes:
            self._gallery.compact()
        self._strike_off(pruning)

    def _strike_off(self, pruning: Pruning) -> None:
        """What a repair gave up is lost no longer where it is whole again, or gone from where it was looked for."""
        lost = self._gallery.checks.lost
        left = tuple(path for path in lost.files if not (self._is_whole(path) or pruning.is_given_up(path)))
        self._gallery.note_losses(replace(lost, files=left))

    def _is_whole(self, path: str) -> bool:
        known = self._known.get(path)
        return known is not None and known.complete

    def _prune(self, pruning: Pruning) -> None:
        unreadable = (state.path for state in self._files.at(Stage.UNREADABLE))
        dropped = [path for path in {*pruning.gone(), *unreadable} if self._known.get(path) is not None]
        try:
            pruning.check(dropped)
        except InputError as refusal:
            self.refusal = refusal
        else:
            self._known.drop(dropped)
            self._tally.counts["pruned"] = len(dropped)

    def _at_work(self, tasks: Sequence[DecodeTask]) -> AbstractContextManager[Iterable[object]]:
        """Those who decode, or decode and encode, and tell of it."""
        options, fit = self._options, fit_of(self._gallery.model)
        # Twice what the encoder takes: it scales down smoothly, and a remote scene is sent no larger than that.
        read = replace(options.read, remote_side=2 * fit.size)
        if options.workforce is not None:
            asked = self._maker.captions, self._findings.assets, self._wanted, self._is_new
            return options.workforce.at_work(Job(tasks, read, options.reading, *asked, options.workers))
        settings = WorkerSettings(read, fit)
        workers = options.workers or min(os.cpu_count() or 1, _MOST_WORKERS)
        return DecodePool(tasks, settings, workers=workers, wanted=self._wanted)

    def _run(self, tasks: Sequence[DecodeTask]) -> None:
        with self._at_work(tasks) as messages:
            try:
                for message in messages:
                    self._take(message)
                    if self._commits.due:
                        self._commit()
                self._encode()
            except BaseException:
                # What is encoded need not be encoded again; but of a commit that was cut short nobody knows how far
                # it came, and rows that follow on lost ones would make their file look whole.
                if not self._commits.under_way:
                    self._commit()
                raise
            self._commit()

    def _commit(self) -> None:
        self._commits.commit(frozenset(self._findings.roots))

    def report(self, seconds: float) -> IndexReport:
        tiles = self._options.read.tiles
        return self._tally.report(self._known.files(), len(self._gallery), self._twin, seconds, tiles)

    def _task(self, file: FoundFile) -> DecodeTask | None:
        known = self._known.as_found(file, self._maker.reads_alike)
        task = self._anew(file)
        if known is not None and known.complete and self._has_all(known, task.pieces):
            self._tally.counts["unchanged"] += 1
            return None
        before = self._known.read_otherwise(file, self._maker.reads_alike)
        if before is not None:
            self._tally.read_before[before] += 1
        self._known.sizes[file.size] += 1
        if known is not None and known.state is not None:
            places = frozenset(place for place in known.ids.values() if place is not None)
            return replace(task, known=places, known_sha256=known.state.sha256)
        # Only files of equal size can be of equal content; the others need not wait for an answer.
        return replace(task, ask=self._known.sizes[file.size] > 1 and not task.pieces)

    def _anew(self, file: FoundFile) -> DecodeTask:
        """To decode the file, and of it what a catalog means, as a catalog says."""
        return DecodeTask(file, pieces=self._maker.pieces(file.path), told=self._maker.told(file.path))

    @staticmethod
    def _has_all(known: KnownFile, pieces: Sequence[Piece]) -> bool:
        """Whether nothing of the file is missing: it was read whole, or the pieces that are wanted are there."""
        places = {None if piece.window is None else (piece.window.x, piece.window.y) for piece in pieces}
        in_pieces = known.state is not None and PIECES in (known.state.reading or "")
        return places <= set(known.ids.values()) if in_pieces else True

    def _is_new(self, path: str) -> bool:
        return self._known.get(path) is None

    def _wanted(self, content: Content) -> bool:
        reading = self._maker.reading(content.path, content.raster)
        own = self._maker.is_catalogued(content.path)
        return self._known.with_content(content.sha256, reading, content.path, own=own) is None

    def _take(self, message: object) -> None:
        match message:
            case Picture():
                self._waiting.append(message)
                self._files.picture(message.path)
                self._meter.cut(message.path, message.item.windows)
                if len(self._waiting) >= self._options.batch_size:
                    self._encode()
            case EncodedFiles():
                self._take_encoded(message)
            case Sign():
                self._meter.cut(message.path, message.windows)
                self._meter.reached(message.path, message.done)
            case Finished():
                self._files.finished(message)
                self._tally.finished(message)
                self._meter.finish(message.path)
            case Same():
                self._files.same(message)
                source = self._known.with_content(message.sha256, self._maker.reading(message.path, message.raster))
                self._commits.expect_copies(len(source.ids) if source is not None else 1)
                self._meter.finish(message.path)
            case Failed():
                self._tally.skip(message.path, message.reason)
                if not message.changed:
                    self._files.failed(message.path)
                self._meter.finish(message.path)

    def _take_encoded(self, message: EncodedFiles) -> None:
        self._tally.counts["encoded"] += len(message.rows) + len(message.blank)
        for row in message.rows:
            self._files.picture(row.path)
            self._tell_unplaced(row)
        for path in message.blank:
            self._files.picture(path)
            self._files.picture_is_blank(path)
        if message.written is not None:
            self._commits.add_written(message.written)
        elif message.vectors is not None:
            for pair in zip(message.rows, message.vectors, strict=True):
                self._commits.add(pair)
        for end in message.ends:
            if isinstance(end, Finished):
                self._meter.cut(end.path, end.windows)
            self._take(end)

    def _encode(self) -> None:
        if not self._waiting:
            return
        pictures = self._waiting
        vectors = encode_pictures(self._gallery.model, pictures, self._options.batch_size)
        self._tally.counts["encoded"] += len(pictures)
        self._waiting = []
        for picture, vector in zip(pictures, vectors, strict=True):
            if not np.isfinite(vector).all():
                self._files.picture_is_blank(picture.path)
                continue
            row = self._maker.row(picture)
            self._tell_unplaced(row)
            self._commits.add((row, vector))

    def _tell_unplaced(self, row: Row) -> None:
        if row.crs is not None and row.footprint is None:
            self._tally.unplaced.add(row.path)

    def _twin(self, path: str) -> str | None:
        """A file that had the content of ``path`` before, and is still there."""
        known = self._known.get(path)
        earlier = self._known.earlier_with_content(known) if known is not None else ()
        return next((other for other in earlier if not is_gone(other)), None)

    def _relabel(self) -> None:
        """Give unchanged files the captions that lie beside them now, and what catalogs tell of them now."""
        changed: dict[str, tuple[str, ...]] = {}
        for file in self._findings.files:
            known = self._known.as_found(file, self._maker.reads_alike)
            captions = self._maker.captions(file.path)
            if known is not None and known.captions != captions:
                changed[file.path] = captions
        self._known.relabel(changed)
        told_of = (file for file in self._findings.files if self._maker.tells_news(file.path))
        kept = [file.path for file in told_of if self._known.as_found(file, self._maker.reads_alike) is not None]
        self._known.describe(kept, self._maker.labelled)
