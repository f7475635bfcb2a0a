"""Rows into the gallery, so many at a time, and what then is told of their files."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from evidex.retrieval.indexing.decode_worker import Finished
from evidex.retrieval.indexing.files_under_way import FilesUnderWay, FileUnderWay, Stage
from evidex.retrieval.indexing.known_files import Encoded, KnownFile, KnownFiles, State
from evidex.retrieval.indexing.options import IndexOptions
from evidex.retrieval.indexing.pruning import is_taken_away
from evidex.retrieval.indexing.report import Tally
from evidex.retrieval.indexing.row_making import RowMaker
from evidex.retrieval.rows import WrittenRows

_COPIED_FOR_ONE_ENCODED = 16  # a copied row is soon copied again; every commit looks through the whole table for it


class Commits:
    """Collects rows until a commit is due. Every commit stands for itself."""

    def __init__(
        self, known: KnownFiles, files: FilesUnderWay, maker: RowMaker, tally: Tally, options: IndexOptions, rows: int
    ) -> None:
        """``rows``: how many are waited for where ``options`` do not say."""
        self._known, self._files, self._maker, self._tally = known, files, maker, tally
        self._options, self._rows = options, options.rows_a_commit or rows
        self._encoded: list[Encoded] = []
        self._written: list[WrittenRows] = []
        self._rows_to_copy = 0
        self._last = time.monotonic()
        self.under_way = False
        """Whether one was begun and did not come to its end."""

    def add(self, encoded: Encoded) -> None:
        self._encoded.append(encoded)

    def add_written(self, written: WrittenRows) -> None:
        self._written.append(written)

    def expect_copies(self, rows: int) -> None:
        self._rows_to_copy += rows

    @property
    def due(self) -> bool:
        late = time.monotonic() - self._last > self._options.seconds_a_commit
        waiting = len(self._encoded) + sum(len(written.rows) for written in self._written)
        many = waiting + self._rows_to_copy / _COPIED_FOR_ONE_ENCODED >= self._rows
        return many or (late and waiting > 0)

    def commit(self, roots: frozenset[str]) -> None:
        """``roots``: the places that were given, from where a file that is gone was taken away."""
        self.under_way = True
        self._copy_known(roots)  # before the rows it takes from are overwritten
        self._put(self._encoded)
        self._put_written()
        for row, _ in self._encoded:
            self._files.row_is_committed(row.path)
        self._encoded = []
        for state in self._files.at(Stage.DECODED):
            if state.uncommitted == 0 and state.end is not None:
                self._close(state.end, state.blank)
                self._files.leave(state)
        self._known.tidy()
        self._last = time.monotonic()
        self.under_way = False

    def _put(self, encoded: Sequence[Encoded]) -> None:
        self._known.put(encoded)
        if encoded and self._options.committed is not None:
            self._options.committed([row.id for row, _ in encoded])

    def _put_written(self) -> None:
        self._known.put_written(self._written)
        rows = [row for written in self._written for row in written.rows]
        if rows and self._options.committed is not None:
            self._options.committed([row.id for row in rows])
        for row in rows:
            self._files.row_is_committed(row.path)
        self._written = []

    def _close(self, end: Finished, blank: int) -> None:
        """All rows of a file are committed: drop those of its earlier state and say what came of it."""
        file = end.file
        now = State(end.sha256, file.size, file.mtime_ns, file.ctime_ns, self._maker.reading(end.path, end.raster))
        reason = _shortfall(end, blank)
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
        self._tally.file(how if end.path in self._known.before else "added", end.path)

    def _copy_known(self, roots: frozenset[str]) -> None:
        """Files of known content take the vectors that are there: touched, moved or duplicate files."""
        self._rows_to_copy = 0
        sources: dict[str, KnownFile] = {}
        copying: list[FileUnderWay] = []
        for state in self._files.at(Stage.COPYING):
            source = self._source(state)
            if source is None:
                self._files.ask_again(state)  # it was replaced since the question was asked
            else:
                sources[state.path] = source
                copying.append(state)
        rows = self._known.rows_of(sources.values())
        self._put(
            [
                self._maker.copied(state.copy, *pair)
                for state in copying
                if state.copy is not None
                for pair in rows[sources[state.path].path]
            ]
        )
        moved = self._moved(sources, roots)
        self._known.drop(moved)
        for state in copying:
            self._tell_copied(state.path, sources[state.path], moved)
            self._files.leave(state)

    def _source(self, state: FileUnderWay) -> KnownFile | None:
        copy = state.copy
        assert copy is not None
        reading, own = self._maker.reading(copy.path, copy.raster), self._maker.is_catalogued(copy.path)
        return self._known.with_content(copy.sha256, reading, copy.path, own=own)

    def _moved(self, sources: Mapping[str, KnownFile], roots: frozenset[str]) -> dict[str, str]:
        """The files that were taken away, and under which of the copies they live on."""
        return {
            source.path: path
            for path, source in sources.items()
            if self._known.get(source.path) is source and source.path != path and is_taken_away(source.path, roots)
        }

    def _tell_copied(self, path: str, source: KnownFile, moved: Mapping[str, str]) -> None:
        if source.path == path:
            self._tally.counts["unchanged"] += 1
        elif moved.get(source.path) == path:
            self._tally.counts["moved"] += 1
        else:
            self._tally.file("updated" if path in self._known.before else "added", path)


def _shortfall(end: Finished, blank: int) -> str | None:
    """Why a file is not wholly in the gallery; None if it is, as far as it shows anything."""
    if end.unreadable:
        return f"{end.unreadable} of {end.windows} windows cannot be read: {end.problem}"
    if blank:
        return "the model gives no finite vector for " + ("it" if end.windows == 1 else f"{blank} of its windows")
    return None
