"""A retriever over this machine's gallery and the parts on others, exact as if all rows lay here.

The head and the log-sum-exp of disjoint rows merge into those of all (`evidex.retrieval.scan.partial`), so hits,
scores and uncertainty are those of the whole. A part that does not answer fails the query: an answer of less than the
whole would look like a certain one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from evidex.errors import NotFoundError, PartError
from evidex.retrieval.answers import Answer
from evidex.retrieval.certainty.calibrating import LEAST_QUERIES
from evidex.retrieval.certainty.calibration_store import Policy, known_texts
from evidex.retrieval.certainty.common_questions import COMMON_QUESTIONS
from evidex.retrieval.certainty.scores import DEFAULT_SCORE
from evidex.retrieval.filters import NO_FILTERS, Filters, Mask, Target
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.gate import Calibration, Direction, certainty_lost
from evidex.retrieval.parts.part import Part
from evidex.retrieval.parts.wire import PartFound
from evidex.retrieval.queries import Query
from evidex.retrieval.retriever import Retriever
from evidex.retrieval.rows import Row
from evidex.retrieval.scan.partial import ScanResult, merge_results

T = TypeVar("T")
_PLACES = 40  # bits of an id that are the place in its gallery; those above number the part, from 1
_MOST_HELD_OUT = 200
_TRIES = 3
Calibrations = dict[tuple[Direction, Target], Calibration]


class Parts:
    """The other servers, asked all at the same time, and what usual queries find in the whole."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = tuple(parts)
        self.calibrations: Calibrations = {}
        self._threads = ThreadPoolExecutor(len(self.parts), thread_name_prefix="parts")

    def each(self, ask: Callable[[Part], T]) -> list[T]:
        """What every part answers; the first error otherwise."""
        return self.begin(ask)()

    def begin(self, ask: Callable[[Part], T]) -> Callable[[], list[T]]:
        """Ask, and wait for the answers when the returned function is called."""
        answers = self._threads.map(ask, self.parts)
        return lambda: list(answers)

    def owner(self, row_id: str) -> tuple[Part, str] | None:
        """The part that gave out ``row_id``, and what it calls the row; None for rows of this machine."""
        number, dot, own = row_id.partition(".")
        if not dot or not (number.isascii() and number.isdecimal()):
            return None
        if not (1 <= int(number[:9]) <= len(self.parts) and own):
            raise NotFoundError(f"'{row_id[:80]}' names a part that there is not; ids come with the hits of a search")
        return self.parts[int(number) - 1], own

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


@dataclass(frozen=True, eq=False)
class Selection:
    """Which rows may be found: here as a mask, elsewhere as what it was made from."""

    here: Mask | None
    filters: Filters
    target: Target


class _MovedError(Exception):
    """A part's rows changed between two scans of one query."""


class JoinedRetriever(Retriever):
    """As a `Retriever` of one gallery that holds all rows; ids of rows elsewhere begin with the number of the part.

    Usual queries are measured against the whole (`calibrate_together`), by vacuity: what this gallery learnt or was
    given holds for its own rows alone.
    """

    def __init__(self, gallery: Gallery, parts: Parts, **options: Any) -> None:
        super().__init__(gallery, **options)
        self._parts = parts
        self._elsewhere: dict[int, Row] = {}
        self._versions: dict[int, int] = {}

    def scan(self, vectors: NDArray[np.float32], rows: Any, top: int) -> ScanResult:
        selection: Selection = rows
        others = self._parts.begin(lambda part: part.scan(vectors, selection.filters, selection.target, top))
        whole = super().scan(vectors, selection.here, top)
        for number, found in enumerate(others(), start=1):
            whole = merge_results(whole, self._taken_up(found, number), top)
        return whole

    def _taken_up(self, found: PartFound, number: int) -> ScanResult:
        part = self._parts.parts[number - 1]
        if found.result.temperature != self.gallery.temperature:
            raise PartError(f"part {part.address} scans at another temperature; serve the same model everywhere")
        if self._versions.setdefault(number, found.version) != found.version:
            raise _MovedError
        for place, row in zip(found.places.tolist(), found.rows, strict=True):
            self._elsewhere[number << _PLACES | place] = replace(row, id=f"{number}.{row.id}")
        return replace(found.result, ids=found.result.ids | number << _PLACES)

    def rows_of(self, ids: Sequence[int]) -> list[Row]:
        here = iter(self.gallery.rows([row for row in ids if not row >> _PLACES]))
        return [self._elsewhere[row] if row >> _PLACES else next(here) for row in ids]

    def _vector_of(self, row_id: str) -> NDArray[np.float32]:
        owner = self._parts.owner(row_id)
        return super()._vector_of(row_id) if owner is None else owner[0].vector(owner[1], self.gallery.dim)

    def _search(
        self, queries: Sequence[Query], direction: Direction, top: int, filters: Filters, among: Target | None
    ) -> list[Answer]:
        return self._at_one_version_each(
            lambda: super(JoinedRetriever, self)._search(queries, direction, top, filters, among)
        )

    def _scan_rows(
        self, vectors: NDArray[np.float32], filters: Filters, target: Target, top: int
    ) -> tuple[ScanResult, dict[int, Row]]:
        return self._at_one_version_each(lambda: super(JoinedRetriever, self)._scan_rows(vectors, filters, target, top))

    def _at_one_version_each(self, ask: Callable[[], T]) -> T:
        """A query may scan twice, and a part have new rows in between: then all is asked again."""
        for _ in range(_TRIES):
            self._elsewhere, self._versions = {}, {}
            try:
                return ask()
            except _MovedError:
                continue
        raise PartError("a part changes faster than it can be asked; ask again in a moment")

    def _selected(self, filters: Filters, target: Target) -> Selection:
        return Selection(super()._selected(filters, target), filters, target)

    def _policy(self, direction: Direction, target: Target) -> Policy | None:
        calibration = self._parts.calibrations.get((direction, target))
        return None if calibration is None else Policy.of(calibration, *self._ratios)

    def calibrate_together(self, rng: np.random.Generator) -> None:
        """Measure usual queries against the whole: common questions, and pictures of this machine held out of it."""
        calibrations: Calibrations = {}
        with self._lock:
            self._elsewhere = {}
            texts = list(COMMON_QUESTIONS)
            vectors = self.encode(texts, "text")
            usual = vectors[[not words for words in self.new_words(texts, vectors, "text")]]
            everything = self._selected(NO_FILTERS, "images")
            pictures = np.ones(len(self.gallery), np.bool_) if everything.here is None else everything.here
            places = np.flatnonzero(pictures)
            sample = np.sort(rng.permutation(places)[: min(_MOST_HELD_OUT, len(places) // 2)])
            left = pictures.copy()
            left[sample] = False
            asked: list[tuple[Direction, NDArray[np.float32], Selection]] = [
                ("text", usual, everything),
                ("image", np.asarray(self.gallery.vectors[sample]), replace(everything, here=left)),
            ]
            for direction, queries, selection in asked:
                self._versions = {}  # no row is looked up
                found = self.scan(queries, selection, 1) if len(queries) >= LEAST_QUERIES else None
                if found is not None and found.count:
                    calibrations[direction, "images"] = Calibration(
                        self.gallery.info.model_fingerprint,
                        direction,
                        found.count,
                        DEFAULT_SCORE,
                        certainty_lost(found),
                        knowing=known_texts(self.gallery, direction),
                    )
            self._parts.calibrations = calibrations
