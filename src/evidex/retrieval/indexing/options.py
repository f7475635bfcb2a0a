"""What an index run is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evidex.data.items import ReadOptions
from evidex.errors import InputError

if TYPE_CHECKING:
    from evidex.retrieval.indexing.workforce import Workforce


@dataclass(frozen=True)
class IndexOptions:
    """How files are read, and how much is done at once."""

    read: ReadOptions = field(default_factory=ReadOptions)
    workers: int | None = None
    prune: bool = False
    """Drop rows of files under the given places that are gone or can no longer be read."""
    force: bool = False
    """Prune also where more than nine in ten files of a given place would go, as when a disk is not mounted."""
    workforce: Workforce | None = None
    """Who decodes and encodes; None: processes of this machine, and this one."""
    batch_size: int = 64
    rows_a_commit: int | None = None
    """None: as many as a commit is worth waiting for, which the gallery's place decides."""
    seconds_a_commit: float = 2.0
    asset: str | None = None
    """Which asset of each item of a catalog is read; None: the one that shows most."""
    committed: Callable[[Sequence[str]], None] | None = None
    """Called with the ids of rows that are in the gallery to stay."""

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise InputError(f"workers is {self.workers}; give at least 1")
        if self.batch_size < 1 or (self.rows_a_commit is not None and self.rows_a_commit < 1):
            raise InputError("batch_size and rows_a_commit must be at least 1")

    @property
    def reading(self) -> str:
        """The options that shape the rows of a raster, in words."""
        return self.read.tiles.words
