"""All rows of a gallery, scanned by the processes of a cluster, for a retriever.

The head and the log-sum-exp of disjoint rows merge into those of all (`evidex.retrieval.scan.partial`): hits and scores
are those of one machine to the last bit, the evidence to the rounding of its pass. What usual queries find is the
gallery's own calibration, so the verdict is that of one machine too, learned score and guarantee included.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from evidex.cluster.connection import Cluster
from evidex.errors import ClusterError, NotFoundError
from evidex.retrieval.certainty.policy import Policy
from evidex.retrieval.copies import Copies, CopyIndex
from evidex.retrieval.counts import Counts, counted_together
from evidex.retrieval.filters import NO_FILTERS, Filters, Selector, Target
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.queries import Direction
from evidex.retrieval.rows import Row
from evidex.retrieval.scan.partial import ScanResult, merge_results
from evidex.retrieval.searchable import Policies, Selection, passing
from evidex.retrieval.sharded.fleet import Fleet, ShardOptions
from evidex.retrieval.sharded.span import MovedError, Span, cut
from evidex.retrieval.steady import steadily
from evidex.retrieval.vector_file import map_vectors

T = TypeVar("T")
_TRIES = 8
_INLINE_BYTES = 1 << 16
"""More than that is put down once for all shards."""


class ShardedRows:
    """The rows of ``gallery``, whose place every node of the cluster at ``address`` can read."""

    def __init__(self, gallery: Gallery, address: str, options: ShardOptions) -> None:
        self.gallery = gallery
        self._policies = Policies(gallery)
        self._lock = threading.RLock()
        self._spans: tuple[Span, ...] = ()
        self._copies: CopyIndex | None = None
        self._selector: Selector | None = None
        self._counts: Counts | None = None
        place = gallery.place
        self._cluster = Cluster(address)
        try:
            self.fleet = Fleet(str(place.resolve() if isinstance(place, Path) else place), options)
        except BaseException:
            self._cluster.close()
            raise

    def close(self) -> None:
        """End the processes, and the cluster if it was started for this."""
        self.fleet.close()
        self._cluster.close()

    def refresh(self) -> bool:
        with self._lock:
            self._policies.forget()
            return self.gallery.refresh()

    def steadily(self, ask: Callable[[], T]) -> T:
        """A shard may meet a version that is newer than ours, or not see ours yet: then all is asked again."""
        with self._lock:
            seen = 0
            for attempt in range(_TRIES):
                try:
                    return steadily(self.gallery, self.refresh, ask)
                except MovedError as moved:
                    seen = moved.seen
                    time.sleep(0.02 * 2**attempt)
                    self.refresh()
            raise ClusterError(
                f"a shard reads version {seen} of '{self.gallery.place}' where this process reads "
                f"{self.gallery.version}; is it the same gallery on every node?"
            )

    def default_target(self) -> Target:
        return self.counts().default_target

    def counts(self) -> Counts:
        spans = self._current()
        if self._counts is None:
            found = self.fleet.each("counts", {shard: (span,) for shard, span in enumerate(spans)})
            self._counts = counted_together([found[shard] for shard in range(len(spans))])
        return self._counts

    def select(self, filters: Filters, target: Target) -> Selection:
        """Each shard decides for its own rows."""
        return Selection(None, filters, target)

    def scan(self, vectors: NDArray[np.float32], selection: Selection, top: int) -> ScanResult:
        spans = self._current()
        given: Any = vectors if vectors.nbytes <= _INLINE_BYTES else self.fleet.put(vectors)
        calls = {shard: (span, given, selection.filters, selection.target, top) for shard, span in enumerate(spans)}
        found = self.fleet.each("scan", calls)
        results: list[ScanResult] = [found[shard] for shard in range(len(spans))]
        return reduce(lambda a, b: merge_results(a, b, top), results)

    def look_up(self, ids: Sequence[int]) -> list[Row]:
        return self.gallery.rows(ids)

    def vectors(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        spans = self._current()
        owner = np.searchsorted([span.stop for span in spans], ids, side="right")
        found = self.fleet.each("vectors", {int(n): (spans[n], ids[owner == n]) for n in np.unique(owner)})
        vectors = np.empty((len(ids), self.gallery.dim), np.float32)
        for shard, values in found.items():
            vectors[owner == shard] = values
        return vectors

    def copies(self, place: int, row: Row, selection: Selection) -> Copies:
        """Looked for here, by the columns of all rows; the few vectors that it takes come from the shards."""
        gallery = self.gallery
        if self._copies is None or self._copies.version != gallery.version:
            self._copies = CopyIndex(gallery, self.vectors)
        found = self._copies.of(place, row)
        if not found or selection.filters == NO_FILTERS:
            return found
        if self._selector is None or self._selector.version != gallery.version:
            self._selector = Selector(gallery)
        return passing(found, self._selector.select(selection.filters, selection.target))

    def vector(self, row_id: str) -> NDArray[np.float32]:
        found = self.fleet.each("find", {shard: (span, row_id) for shard, span in enumerate(self._current())})
        held = [vector for vector in found.values() if vector is not None]
        if not held:
            raise NotFoundError(f"'{row_id}' is not in the gallery; ids come with the hits of a search")
        return np.asarray(held[0])

    def policy(self, direction: Direction, target: Target, refine_ratio: float, abstain_ratio: float) -> Policy | None:
        return self._policies.get(direction, target, refine_ratio, abstain_ratio)

    def patrol(self) -> Iterator[None]:
        """Each shard reads on in its own vectors and in the table; one of them at a time."""
        for shard, span in enumerate(self._current()):
            while self.fleet.each("patrol", {shard: (span,)})[shard]:
                yield
            yield

    def check(self, seconds: float) -> None:
        self.fleet.check(seconds)

    def _current(self) -> tuple[Span, ...]:
        """The spans of the version that is open here."""
        gallery = self.gallery
        if not self._spans or self._spans[0].version != gallery.version:
            if isinstance(gallery.place, Path):
                # Written by one here, if it is not there yet, before many look for it.
                map_vectors(gallery.place, gallery.dataset, gallery.dim)
            self._spans = cut(gallery.version, len(gallery), self.fleet.shards, self._spans)
            self._counts = None
        return self._spans
