"""The rows that a retriever searches, wherever they lie, and those of one gallery."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from evidex.errors import NotFoundError
from evidex.retrieval.certainty.calibration_store import load_policy
from evidex.retrieval.certainty.policy import Policy
from evidex.retrieval.copies import Copies, CopyIndex
from evidex.retrieval.counts import Counts, count_rows
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
    """Which rows may be found: as a mask, where all rows are here, and as what it is made from."""

    mask: Mask | None
    filters: Filters
    target: Target


def passing(copies: Copies, mask: Mask | None) -> Copies:
    """Those of ``copies`` that are selected."""
    return copies if mask is None else tuple(pair for pair in copies if mask[pair[0]])


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

    def vectors(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Of the rows that the ids of a scan stand for."""

    def copies(self, place: int, row: Row, selection: Selection) -> Copies:
        """The other selected rows that show the picture of ``row``, which a scan gave the id ``place``."""

    def vector(self, row_id: str) -> NDArray[np.float32]:
        """Of the row with this id; NotFoundError where there is none."""

    def counts(self) -> Counts:
        """What rows there are."""

    def patrol(self) -> Iterator[None]:
        """Read everything again, piece by piece; DamagedError where something is not what was written."""

    def check(self, seconds: float) -> None:
        """ClusterError where rows lie elsewhere and are not to be had within ``seconds``; from any thread."""

    def close(self) -> None:
        """Let go of what is held elsewhere."""

    def policy(self, direction: Direction, target: Target, refine_ratio: float, abstain_ratio: float) -> Policy | None:
        """What is known of usual queries against all of these rows."""


class Policies:
    """What is known of usual queries, read once for each kind of them."""

    def __init__(self, gallery: Gallery) -> None:
        self._gallery = gallery
        self._known: dict[tuple[Direction, Target, float, float], Policy | None] = {}

    def get(self, direction: Direction, target: Target, refine_ratio: float, abstain_ratio: float) -> Policy | None:
        key = direction, target, refine_ratio, abstain_ratio
        if key not in self._known:
            self._known[key] = load_policy(self._gallery, *key)
        return self._known[key]

    def forget(self) -> None:
        self._known = {}


class OwnRows:
    """The rows of one gallery on this machine."""

    def __init__(self, gallery: Gallery, *, threads: int | None = None, precision: Precision = "float32") -> None:
        self.gallery = gallery
        self._threads = threads
        self._precision: Precision = precision
        # Rows are looked up by their position in the version that was scanned: no refresh may come in between.
        self._lock = threading.RLock()
        self._selector: Selector | None = None
        self._policies = Policies(gallery)
        self._copies: CopyIndex | None = None

    def refresh(self) -> bool:
        with self._lock:
            self._policies.forget()
            return self.gallery.refresh()

    def steadily(self, ask: Callable[[], T]) -> T:
        with self._lock:
            return steadily(self.gallery, self.refresh, ask)

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
            rows=selection.mask,
            exact=held.exact,
            ensure=held.ensure,
        )

    def look_up(self, ids: Sequence[int]) -> list[Row]:
        return self.gallery.rows(ids)

    def vectors(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        return np.asarray(self.gallery.mapped.values[ids])

    def counts(self) -> Counts:
        return count_rows(self.gallery)

    def patrol(self) -> Iterator[None]:
        yield from self.gallery.patrol()

    def check(self, seconds: float) -> None:
        pass

    def close(self) -> None:
        pass

    def copies(self, place: int, row: Row, selection: Selection) -> Copies:
        if self._copies is None or self._copies.version != self.gallery.version:
            self._copies = CopyIndex(self.gallery)
        return passing(self._copies.of(place, row), selection.mask)

    def vector(self, row_id: str) -> NDArray[np.float32]:
        import pyarrow.compute as pc

        place = pc.index(self.gallery.column("id"), row_id).as_py()
        if place < 0:
            raise NotFoundError(f"'{row_id}' is not in the gallery; ids come with the hits of a search")
        return np.asarray(self.gallery.vectors[place])

    def policy(self, direction: Direction, target: Target, refine_ratio: float, abstain_ratio: float) -> Policy | None:
        return self._policies.get(direction, target, refine_ratio, abstain_ratio)
