"""What an index run is told, what it tells on its way, and what it tells at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from evidex.data.items import ReadOptions
from evidex.data.records import Skip
from evidex.errors import InputError
from evidex.progress import Progress


@dataclass(frozen=True)
class IndexOptions:
    """How files are read, and how much is done at once."""

    read: ReadOptions = field(default_factory=ReadOptions)
    workers: int | None = None
    prune: bool = False
    """Drop rows of files under the given places that are gone or can no longer be read."""
    batch_size: int = 64
    rows_a_commit: int = 256
    seconds_a_commit: float = 2.0
    committed: Callable[[Sequence[str]], None] | None = None
    """Called with the ids of rows that are in the gallery to stay."""

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise InputError(f"workers is {self.workers}; give at least 1")
        if self.batch_size < 1 or self.rows_a_commit < 1:
            raise InputError("batch_size and rows_a_commit must be at least 1")

    @property
    def reading(self) -> str:
        """The options that shape the rows of a raster, in words."""
        tiles = self.read.tiles
        bands = "rgb" if tiles.bands is None else ",".join(map(str, tiles.bands))
        return (
            f"tile {tiles.tile} overlap {tiles.overlap} bands {bands} stretch {tiles.stretch[0]:g},{tiles.stretch[1]:g}"
        )


@dataclass(frozen=True)
class Duplicate:
    """A file whose content was in the gallery already, under another path that still exists."""

    name: str
    of: str


@dataclass(frozen=True)
class IndexReport:
    """What a run did; counts are files unless they say otherwise."""

    found: int
    added: int
    updated: int
    unchanged: int
    moved: int
    pruned: int
    duplicates: tuple[Duplicate, ...]
    skipped: tuple[Skip, ...]
    encoded: int
    """Pictures that went through the encoder."""
    rows: int
    """In the gallery now."""
    seconds: float
    unplaced: int = 0
    """Rasters read now that have coordinates, of which some or all cannot be told in degrees: a place finds less of
    them, or nothing."""


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
