"""The one who searches: owns the gallery's handle, the model and the scans, and lives in one thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from evidex.errors import NotFoundError
from evidex.retrieval.answers import Answer, Hit
from evidex.retrieval.emptiness import with_reasons
from evidex.retrieval.filters import NO_FILTERS, Filters, Selector, Target
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.gate import Direction
from evidex.retrieval.precision import Precision
from evidex.retrieval.retriever import REFINE_RATIO, Retriever
from evidex.server.metrics import Metrics

Mode = Literal["auto", "plain", "careful"]
_REFINE: dict[Mode, float] = {"auto": REFINE_RATIO, "plain": 0.0, "careful": 1.0}


@dataclass(frozen=True)
class Search:
    """What queries must have in common to be answered in one scan."""

    direction: Direction
    top: int
    filters: Filters = NO_FILTERS
    among: Target | None = None
    mode: Mode = "auto"


@dataclass(frozen=True)
class Neighbours:
    """The rows nearest to rows of the gallery; the payloads are ids."""

    top: int


class Engine:
    """Not safe for threads: all calls come from one."""

    def __init__(self, gallery: Gallery, metrics: Metrics, precision: Precision = "float32") -> None:
        self.gallery = gallery
        self._precision: Precision = precision
        self._metrics = metrics
        self._retrievers: dict[Mode, Retriever] = {}
        self._selector: Selector | None = None
        self.is_warm = False

    def warm_up(self) -> None:
        """Load the model and compile the scan before the first query comes."""
        retriever = self._retriever("auto")
        if len(self.gallery):
            for count in (1, 2):
                retriever.search_batch(texts=["a first look"] * count, top=1)
        else:
            self.gallery.model  # noqa: B018 (loading it is the point)
        self._metrics.rows.set(len(self.gallery))
        self.is_warm = True

    def refresh(self) -> bool:
        """Take up new rows and calibrations; whether there are new rows."""
        changed = self.gallery.refresh()
        for retriever in self._retrievers.values():
            retriever.refresh()
        self._metrics.rows.set(len(self.gallery))
        return changed

    def run(self, key: Search | Neighbours, payloads: list[Any]) -> Sequence[Any]:
        """Answer a batch in one scan."""
        if isinstance(key, Neighbours):
            self._metrics.batch_size.labels("neighbours").observe(len(payloads))
            try:
                return self._neighbours(payloads, key.top)
            except (OSError, ValueError):  # the latter is how Arrow tells of a missing file
                # A writer has joined the table's pieces since, and removed those of the version that is open here.
                if not self.gallery.refresh():
                    raise
                return self._neighbours(payloads, key.top)
        self._metrics.batch_size.labels(key.direction).observe(len(payloads))
        answers = self._search(key, payloads)
        for answer in answers:
            self._metrics.verdicts.labels(answer.verdict).inc()
        return answers

    def _search(self, key: Search, payloads: list[Any]) -> list[Answer]:
        search: Callable[..., list[Answer]] = self._retriever(key.mode).search_batch
        queries = {"texts" if key.direction == "text" else "images": payloads}
        answers = search(**queries, top=key.top, filters=key.filters, among=key.among)
        return with_reasons(answers, self.gallery, key.filters, key.among)

    def _retriever(self, mode: Mode) -> Retriever:
        if mode not in self._retrievers:
            self._retrievers[mode] = Retriever(self.gallery, refine_ratio=_REFINE[mode], precision=self._precision)
        return self._retrievers[mode]

    def _neighbours(self, ids: list[str], top: int) -> list[list[Hit] | NotFoundError]:
        """For each id its hits; where it is unknown the error, so that the others get theirs."""
        import pyarrow.compute as pc

        column = self.gallery.column("id")
        places = [pc.index(column, row_id).as_py() for row_id in ids]
        known = [place for place in places if place >= 0]
        found: dict[int, list[Hit]] = {}
        if known:
            if self._selector is None or self._selector.version != self.gallery.version:
                self._selector = Selector(self.gallery)
            rows = self._selector.select(NO_FILTERS, self._selector.default_target())
            vectors = np.asarray(self.gallery.vectors[known])
            for place, part in zip(known, self._retriever("auto").scan(vectors, rows, top + 1), strict=True):
                kept = [
                    (int(row), float(score)) for row, score in zip(part.ids, part.scores, strict=True) if row != place
                ]
                shown = self.gallery.rows([row for row, _ in kept[:top]])
                found[place] = [
                    Hit.of(row, rank, score)
                    for rank, (row, (_, score)) in enumerate(zip(shown, kept, strict=False), start=1)
                ]
        unknown = "'{}' is not in the gallery; ids come with the hits of a search"
        return [
            found[place] if place >= 0 else NotFoundError(unknown.format(row_id))
            for place, row_id in zip(places, ids, strict=True)
        ]
