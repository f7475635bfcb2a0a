"""What an index run tells on its way and at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from evidex.data.discover import printable
from evidex.data.records import Skip
from evidex.data.rendering import TileOptions
from evidex.errors import InputError
from evidex.progress import Progress
from evidex.retrieval.indexing.decode_worker import Finished
from evidex.retrieval.indexing.known_files import KnownFile


@dataclass(frozen=True)
class Duplicate:
    """A file whose content was in the gallery already, under another path that still exists."""

    name: str
    of: str


@dataclass(frozen=True)
class IndexReport:
    """What a run did. Files: ``found = added + updated + unchanged + moved + len(skipped)``, each counted once.
    Rows: ``rows = images + tiles + texts``."""

    found: int
    """Files, and folders that could not be looked into."""
    added: int
    updated: int
    unchanged: int
    moved: int
    pruned: int
    """Files dropped; they were not found, or are among the skipped too."""
    read_otherwise: int
    """Files that have not changed, but are read with other options than before."""
    read_before: str
    """With which options most of those were read, and with which now; empty where a catalog, or what lies beside them,
    makes the difference."""
    gone: int
    """Files that are gone from the given places and still have rows, since nothing was to be pruned."""
    duplicates: tuple[Duplicate, ...]
    """They have rows like all others, and are counted with them."""
    skipped: tuple[Skip, ...]
    """What has no row for what it holds now."""
    remarks: tuple[Skip, ...]
    """What was taken in part, and captions that could not be read."""
    encoded: int
    """Pictures that went through the encoder."""
    rows: int
    """In the gallery now."""
    images: int
    tiles: int
    scenes: int
    """Files that the tiles are of."""
    texts: int
    unplaced: int
    """Rasters read now that have coordinates, of which some or all cannot be told in degrees: a place finds less of
    them, or nothing."""
    blank: int
    """Pictures read now all of whose pixels are alike: they have rows, and nothing that a question could mean."""
    passed_over: Mapping[str, int]
    """Pictures in the given folders that were not looked at, so are not among ``found``: how many by their suffix, and
    as ``hidden`` those whose names begin with a dot."""
    seconds: float


class NotPrunedError(InputError):
    """Files were indexed, but nothing was pruned, since too much would have gone; ``report`` tells what was done."""

    def __init__(self, message: str, report: IndexReport) -> None:
        super().__init__(message)
        self.report = report


class Tally:
    """Counts every file once while a run goes on."""

    def __init__(self, skipped: list[Skip], remarks: list[Skip], passed_over: Mapping[str, int]) -> None:
        self.counts: Counter[str] = Counter()
        self.read_before: Counter[str] = Counter()
        """How files were read before that are read otherwise now."""
        self._skipped = skipped
        self._remarks = remarks
        self._passed_over = passed_over
        self._written: list[str] = []
        self.unplaced: set[str] = set()

    def file(self, how: str, path: str) -> None:
        """Rows of ``path`` were written: it was added, updated, or is unchanged but for what could not be read."""
        self.counts[how] += 1
        self._written.append(path)

    def skip(self, path: str, reason: str) -> None:
        self._skipped.append(Skip(printable(path), reason))

    def finished(self, file: Finished) -> None:
        """What is to be told of a file that was read."""
        if file.blank:
            self.counts["blank"] += file.blank
            self.remark(file.path, "shows nothing, wholly or in part: all pixels there are alike")
        if file.first_only:
            self.remark(file.path, "holds several pictures, as animations and pages do: only the first is indexed")

    def remark(self, path: str, reason: str) -> None:
        self._remarks.append(Skip(printable(path), reason))

    def report(
        self,
        files: Sequence[KnownFile],
        rows: int,
        twin: Callable[[str], str | None],
        seconds: float,
        now: TileOptions,
    ) -> IndexReport:
        """``twin`` names the file that a file is a copy of; ``now`` is how files are read."""
        twins = ((path, twin(path)) for path in self._written)
        scenes = [file for file in files if None not in file.ids.values()]
        images, tiles = len(files) - len(scenes), sum(len(file.ids) for file in scenes)
        done = {name: self.counts[name] for name in ("added", "updated", "unchanged", "moved")}
        return IndexReport(
            found=sum(done.values()) + len(self._skipped),
            **done,
            pruned=self.counts["pruned"],
            read_otherwise=self.read_before.total(),
            read_before=self._read_before(now),
            gone=self.counts["gone"],
            duplicates=tuple(Duplicate(printable(path), printable(of)) for path, of in twins if of is not None),
            skipped=tuple(self._skipped),
            remarks=tuple(self._remarks),
            encoded=self.counts["encoded"],
            rows=rows,
            images=images,
            tiles=tiles,
            scenes=len(scenes),
            texts=rows - images - tiles,
            unplaced=len(self.unplaced),
            blank=self.counts["blank"],
            passed_over=dict(self._passed_over),
            seconds=seconds,
        )

    def _read_before(self, now: TileOptions) -> str:
        for words, _ in self.read_before.most_common(1):
            with suppress(InputError):  # of a version that noted it in other words
                return now.told_apart(TileOptions.of_words(words))
        return ""


class Meter:
    """Progress in windows: a scene counts as many as it is cut into, an image one."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._total = self._done = 0
        self._windows: dict[str, int] = {}
        self._reached: dict[str, int] = {}

    def expect(self, files: int) -> None:
        self._total = files
        self._progress(0, files)

    def cut(self, path: str, windows: int) -> None:
        if windows > 1 and path not in self._windows:
            self._windows[path] = windows
            self._total += windows - 1

    def reached(self, path: str, done: int) -> None:
        self._done += done - self._reached.get(path, 0)
        self._reached[path] = done
        self._progress(self._done, self._total)

    def finish(self, path: str) -> None:
        self.reached(path, self._windows.pop(path, 1))
        del self._reached[path]
