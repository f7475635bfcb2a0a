"""The one who searches: owns the gallery's handle, the model and the scans, and lives in one thread."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evidex.errors import PartError
from evidex.retrieval.answers import Answer
from evidex.retrieval.emptiness import with_reasons
from evidex.retrieval.filters import Filters, Target
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.parts.joined import JoinedRows, Parts
from evidex.retrieval.parts.wire import PartFound
from evidex.retrieval.retriever import Retriever, Search
from evidex.retrieval.scan.precision import Precision
from evidex.retrieval.searchable import OwnRows
from evidex.retrieval.steady import steadily
from evidex.server.metrics import Metrics

_NOWHERE = "no row passes, neither here nor on the other servers; loosen a filter"
_PATROL_SECONDS = 0.01


@dataclass(frozen=True)
class Neighbours:
    """The rows nearest to rows of the gallery; the payloads are ids."""

    top: int


@dataclass(frozen=True)
class PartScan:
    """What a server that joins parts asks of this one; the payloads are matrices of encoded queries."""

    top: int
    filters: Filters
    among: Target


class Engine:
    """Not safe for threads: all calls come from one."""

    def __init__(
        self, gallery: Gallery, metrics: Metrics, precision: Precision = "float32", parts: Parts | None = None
    ) -> None:
        self.gallery = gallery
        self.parts = parts
        self._parts_state: list[tuple[int, int]] = []
        self._metrics = metrics
        own = OwnRows(gallery, precision=precision)
        self._joined = None if parts is None else JoinedRows(own, parts)
        self._own = Retriever(gallery, rows=own)
        self._whole = self._own if self._joined is None else Retriever(gallery, rows=self._joined)
        self._round: tuple[int, Iterator[None]] | None = None
        self.is_warm = False

    def warm_up(self) -> None:
        """Load the model and compile the scan before the first query comes."""
        self.take_up(self.ask_parts())
        if len(self.gallery):
            for count in (1, 2):
                self._whole.search_batch(texts=["a first look"] * count, top=1)
        else:
            self.gallery.model  # noqa: B018 (loading it is the point)
        self._count_rows()
        self.is_warm = True

    def refresh(self) -> bool:
        """Take up new rows and calibrations; whether there are new rows."""
        changed = self.gallery.refresh()
        self._whole.refresh()
        if changed:
            self._parts_state = []
            self.take_up(self.ask_parts())
        self._count_rows()
        return changed

    def patrol(self) -> None:
        """Hold a little more of the gallery against its checksums, whether or not anything tells of a change.

        Damaged vectors are made again; DamagedError for anything else, and searches say the same from then on.
        """
        steadily(self.gallery, self.gallery.refresh, self._read_on)

    def _read_on(self) -> None:
        if self._round is None or self._round[0] != self.gallery.version:
            self._round = self.gallery.version, self.gallery.patrol()
        end = time.monotonic() + _PATROL_SECONDS
        for _ in self._round[1]:
            if time.monotonic() > end:
                return
        self._round = None

    def ask_parts(self) -> list[tuple[int, int]]:
        """Version and rows of each part; an error where one does not answer or holds vectors of another model.

        May be called from any thread.
        """
        if self.parts is None:
            return []
        abouts = self.parts.each(lambda part: part.about())
        for part, about in zip(self.parts.parts, abouts, strict=True):
            if about["model_fingerprint"] != self.gallery.info.model_fingerprint:
                raise PartError(f"part {part.address} holds vectors of another model; index it with the same one")
            if about.get("parts"):
                raise PartError(f"part {part.address} joins parts itself, whose rows would be missed; name those here")
        return [(int(about["version"]), int(about["rows"])) for about in abouts]

    def take_up(self, state: list[tuple[int, int]]) -> bool:
        """Measure usual queries anew if what `ask_parts` said has changed; whether it has."""
        if state == self._parts_state:
            return False
        if self._joined is not None:
            self._joined.calibrate_together(np.random.default_rng(0))
        self._parts_state = state
        self._count_rows()
        return True

    def _count_rows(self) -> None:
        self._metrics.rows.set(len(self.gallery) + sum(rows for _, rows in self._parts_state))

    def run(self, key: Search | Neighbours | PartScan, payloads: list[Any]) -> Sequence[Any]:
        """Answer a batch in one scan."""
        if isinstance(key, Neighbours):
            self._metrics.batch_size.labels("neighbours").observe(len(payloads))
            return self._whole.neighbours(payloads, key.top)
        if isinstance(key, PartScan):
            self._metrics.batch_size.labels("part").observe(sum(map(len, payloads)))
            return self._part(key, payloads)
        self._metrics.batch_size.labels(key.direction).observe(len(payloads))
        answers = self._search(key, payloads)
        for answer in answers:
            self._metrics.verdicts.labels(answer.verdict).inc()
        return answers

    def _search(self, key: Search, payloads: list[Any]) -> list[Answer]:
        answers = self._whole.answer(payloads, key)
        if self.parts is not None:
            return [answer if answer.searched else replace(answer, emptiness=_NOWHERE) for answer in answers]
        return with_reasons(answers, self.gallery, key.filters, key.among)

    def vector(self, row_id: str) -> NDArray[np.float32]:
        """Of one of this machine's own rows."""
        return self._own.vector_of(row_id)

    def _part(self, key: PartScan, batches: list[NDArray[np.float32]]) -> list[PartFound]:
        """What this machine's own rows say to each batch of queries; what lies elsewhere others are asked for."""
        found, rows = self._own.scan_rows(np.concatenate(batches), key.filters, key.among, key.top)
        parts, first = [], 0
        for batch in batches:
            own = slice(first, first := first + len(batch))
            result = replace(found, ids=found.ids[own], scores=found.scores[own], log_sum_exp=found.log_sum_exp[own])
            places = np.unique(result.ids)
            parts.append(
                PartFound(result, places, tuple(rows[place] for place in places.tolist()), self.gallery.version)
            )
        return parts
