"""The one who searches: owns the gallery's handle, the model and the scans, and lives in one thread."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from evidex.retrieval.answers import Answer
from evidex.retrieval.counts import Counts
from evidex.retrieval.emptiness import with_reasons
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.retriever import Retriever, Search
from evidex.retrieval.searchable import OwnRows, Searchable
from evidex.server.metrics import Metrics

_PATROL_SECONDS = 0.01


@dataclass(frozen=True)
class Neighbours:
    """The rows nearest to rows of the gallery; the payloads are ids."""

    top: int


class Engine:
    """Not safe for threads: all calls come from one."""

    def __init__(self, gallery: Gallery, metrics: Metrics, rows: Searchable | None = None) -> None:
        self.gallery = gallery
        self._metrics = metrics
        self.rows = OwnRows(gallery) if rows is None else rows
        self._retriever = Retriever(gallery, rows=self.rows)
        self._round: tuple[int, Iterator[None]] | None = None
        self.is_warm = False

    def warm_up(self) -> None:
        """Load the model and compile the scan before the first query comes."""
        if len(self.gallery):
            for count in (1, 2):
                self._retriever.search_batch(texts=["a first look"] * count, top=1)
        else:
            self.gallery.model  # noqa: B018 (loading it is the point)
        self._count_rows()
        self.is_warm = True

    def refresh(self) -> bool:
        """Take up new rows and calibrations; whether there are new rows."""
        changed = self._retriever.refresh()
        self._count_rows()
        return changed

    def counts(self) -> Counts:
        return self.rows.steadily(self.rows.counts)

    def patrol(self) -> None:
        """Hold a little more of the gallery against its checksums, whether or not anything tells of a change.

        Damaged vectors are made again; DamagedError for anything else, and searches say the same from then on.
        """
        self.rows.steadily(self._read_on)

    def _read_on(self) -> None:
        if self._round is None or self._round[0] != self.gallery.version:
            self._round = self.gallery.version, self.rows.patrol()
        end = time.monotonic() + _PATROL_SECONDS
        for _ in self._round[1]:
            if time.monotonic() > end:
                return
        self._round = None

    def _count_rows(self) -> None:
        self._metrics.rows.set(len(self.gallery))

    def run(self, key: Search | Neighbours, payloads: list[Any]) -> Sequence[Any]:
        """Answer a batch in one scan."""
        if isinstance(key, Neighbours):
            self._metrics.batch_size.labels("neighbours").observe(len(payloads))
            return self._retriever.neighbours(payloads, key.top)
        self._metrics.batch_size.labels(key.direction).observe(len(payloads))
        answers = self._search(key, payloads)
        for answer in answers:
            self._metrics.verdicts.labels(answer.verdict).inc()
        return answers

    def _search(self, key: Search, payloads: list[Any]) -> list[Answer]:
        return with_reasons(self._retriever.answer(payloads, key), self.gallery, key.filters, key.among)
