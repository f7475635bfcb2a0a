"""The rows that a retriever searches, wherever they lie, and those of one gallery."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from evidex.errors import NotFoundError
from evidex.retrieval.certainty.calibration_store import load_policy
from evidex.retrieval.certainty.policy import Policy
from evidex.retrieval.copies import Copies, CopyIndex
from evidex.retrieval.filters import Filters, Mask, Selector, Target
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.queries import Direction
from evidex.retrieval.rows import Row
from evidex.retrieval.scan.partial import ScanResult
from evidex.retrieval.scan.precision import Precision
from evidex.retrieval.scan.scan import scan
from evidex.retrieval.steady import steadily

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Selection:
    """Which rows may be found: as a mask of this machine's own, and as what it was made from."""

    here: Mask | None
    filters: Filters
    target: Target


def passing(copies: Copies, selection: Selection) -> Copies:
    """Those of this machine's ``copies`` that are selected."""
    here = selection.here
    return copies if here is None else tuple(pair for pair in copies if here[pair[0]])


class Searchable(Protocol):
    """What a retriever asks of its rows."""

    def refresh(self) -> bool:
        """Take up rows and calibrations that were added since; whether there are new rows."""

    def steadily(self, ask: Callable[[], T]) -> T:
        """What ``ask`` finds, all of it in one version of the rows."""

    def default_target(self) -> Target:
        """What is looked for where nobody says."""

    def select(self, filters: Filters, target: Target) -> Selection: ...

    def scan(self, vectors: NDArray[np.float32], selection: Selection, top: int) -> ScanResult:
        """The best rows and the evidence of all, for encoded queries against the selected rows."""

    def look_up(self, ids: Sequence[int]) -> list[Row]:
        """The rows that the ids of a scan stand for."""

    @property
    def gives_more(self) -> bool:
        """Whether a scan may be asked for any number of best rows."""

    def copies(self, place: int, row: Row, selection: Selection) -> Copies:
        """The other selected rows that show the picture of ``row``, which a scan gave the id ``place``."""

    def vector(self, row_id: str) -> NDArray[np.float32]:
        """Of the row with this id; NotFoundError where there is none."""

    def policy(self, direction: Direction, target: Target, refine_ratio: float, abstain_ratio: float) -> Policy | None:
        """What is known of usual queries against all of these rows."""


class OwnRows:
    """The rows of one gallery on this machine."""

    def __init__(self, gallery: Gallery, *, threads: int | None = None, precision: Precision = "float32") -> None:
        self.gallery = gallery
        self._threads = threads
        self._precision: Precision = precision
        # Rows are looked up by their position in the version that was scanned: no refresh may come in between.
        self._lock = threading.RLock()
        self._selector: Selector | None = None
        self._copies: CopyIndex | None = None
        self._policies: dict[tuple[Direction, Target, float, float], Policy | None] = {}

    def refresh(self) -> bool:
        with self._lock:
            self._policies = {}
            return self.gallery.refresh()

    def steadily(self, ask: Callable[[], T]) -> T:
        return self.alone(lambda: steadily(self.gallery, self.refresh, ask))

    def alone(self, ask: Callable[[], T]) -> T:
        """What ``ask`` finds while nobody else searches or refreshes."""
        with self._lock:
            return ask()

    def default_target(self) -> Target:
        return self._current_selector().default_target()

    def select(self, filters: Filters, target: Target) -> Selection:
        return Selection(self._current_selector().select(filters, target), filters, target)

    def _current_selector(self) -> Selector:
        if self._selector is None or self._selector.version != self.gallery.version:
            self._selector = Selector(self.gallery)
        return self._selector

    def scan(self, vectors: NDArray[np.float32], selection: Selection, top: int) -> ScanResult:
        gallery = self.gallery
        held = gallery.scan_vectors(self._precision)
        return scan(
            vectors,
            held.scanned,
            temperature=gallery.temperature,
            top=top,
            threads=self._threads,
            rows=selection.here,
            exact=held.exact,
            ensure=held.ensure,
        )

    def look_up(self, ids: Sequence[int]) -> list[Row]:
        return self.gallery.rows(ids)

    @property
    def gives_more(self) -> bool:
        return True

    def copies(self, place: int, row: Row, selection: Selection) -> Copies:
        return passing(self.copy_index().of(place, row), selection)

    def copy_index(self) -> CopyIndex:
        if self._copies is None or self._copies.version != self.gallery.version:
            self._copies = CopyIndex(self.gallery)
        return self._copies

    def vector(self, row_id: str) -> NDArray[np.float32]:
        import pyarrow.compute as pc

        place = pc.index(self.gallery.column("id"), row_id).as_py()
        if place < 0:
            raise NotFoundError(f"'{row_id}' is not in the gallery; ids come with the hits of a search")
        return np.asarray(self.gallery.vectors[place])

    def policy(self, direction: Direction, target: Target, refine_ratio: float, abstain_ratio: float) -> Policy | None:
        key = direction, target, refine_ratio, abstain_ratio
        if key not in self._policies:
            self._policies[key] = load_policy(self.gallery, *key)
        return self._policies[key]
