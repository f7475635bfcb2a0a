"""The rows of this machine's gallery and of the parts on others, searched exactly as if all lay here.

The head and the log-sum-exp of disjoint rows merge into those of all (`evidex.retrieval.scan.partial`), so hits,
scores and uncertainty are those of the whole. A part that does not answer fails the query: an answer of less than the
whole would look like a certain one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from evidex.errors import NotFoundError, PartError
from evidex.retrieval.certainty.calibration import LEAST_QUERIES, Calibration
from evidex.retrieval.certainty.calibration_store import domain_digest
from evidex.retrieval.certainty.common_questions import COMMON_QUESTIONS
from evidex.retrieval.certainty.policy import Policy
from evidex.retrieval.certainty.scores import DEFAULT_SCORE, certainty_lost
from evidex.retrieval.copies import Copies, same_content
from evidex.retrieval.encoding import encode
from evidex.retrieval.filters import NO_FILTERS, Filters, Target
from evidex.retrieval.out_of_domain import out_of_domain_words
from evidex.retrieval.parts.part import Part
from evidex.retrieval.parts.wire import PartFound
from evidex.retrieval.queries import Direction
from evidex.retrieval.rows import Row
from evidex.retrieval.scan.partial import ScanResult, merge_results
from evidex.retrieval.searchable import OwnRows, Selection, passing

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


class _MovedError(Exception):
    """A part's rows changed between two scans of one query."""


class JoinedRows:
    """This machine's rows and those of all parts; ids of rows elsewhere begin with the number of the part.

    Usual queries are measured against the whole (`calibrate_together`), by vacuity: what this gallery learned or was
    given holds for its own rows alone.
    """

    def __init__(self, own: OwnRows, parts: Parts) -> None:
        self._own = own
        self._parts = parts
        self._elsewhere: dict[int, Row] = {}
        self._versions: dict[int, int] = {}

    def refresh(self) -> bool:
        return self._own.refresh()

    def steadily(self, ask: Callable[[], T]) -> T:
        return self._own.steadily(lambda: self._at_one_version_each(ask))

    def _at_one_version_each(self, ask: Callable[[], T]) -> T:
        """A query may scan twice, and a part have new rows in between: then all is asked again."""
        for _ in range(_TRIES):
            self._elsewhere, self._versions = {}, {}
            try:
                return ask()
            except _MovedError:
                continue
        raise PartError("a part changes faster than it can be asked; ask again in a moment")

    def default_target(self) -> Target:
        return self._own.default_target()

    def select(self, filters: Filters, target: Target) -> Selection:
        return self._own.select(filters, target)

    def scan(self, vectors: NDArray[np.float32], selection: Selection, top: int) -> ScanResult:
        others = self._parts.begin(lambda part: part.scan(vectors, selection.filters, selection.target, top))
        whole = self._own.scan(vectors, selection, top)
        for number, found in enumerate(others(), start=1):
            whole = merge_results(whole, self._taken_up(found, number), top)
        return whole

    def _taken_up(self, found: PartFound, number: int) -> ScanResult:
        part = self._parts.parts[number - 1]
        if found.result.temperature != self._own.gallery.temperature:
            raise PartError(f"part {part.address} scans at another temperature; serve the same model everywhere")
        if self._versions.setdefault(number, found.version) != found.version:
            raise _MovedError
        for place, row in zip(found.places.tolist(), found.rows, strict=True):
            self._elsewhere[number << _PLACES | place] = replace(row, id=f"{number}.{row.id}")
        return replace(found.result, ids=found.result.ids | number << _PLACES)

    def look_up(self, ids: Sequence[int]) -> list[Row]:
        here = iter(self._own.look_up([row for row in ids if not row >> _PLACES]))
        return [self._elsewhere[row] if row >> _PLACES else next(here) for row in ids]

    @property
    def gives_more(self) -> bool:
        return False  # every part has a limit of its own

    def copies(self, place: int, row: Row, selection: Selection) -> Copies:
        """Near ones among this machine's own rows; of rows elsewhere, whose vectors do not travel, the same content."""
        if place >> _PLACES:
            here = passing(self._own.copy_index().of_content(row), selection)
        else:
            here = self._own.copies(place, row, selection)
        there = ((where, other) for where, other in self._elsewhere.items() if where != place)
        return (*here, *(pair for pair in there if same_content(row, pair[1])))

    def vector(self, row_id: str) -> NDArray[np.float32]:
        owner = self._parts.owner(row_id)
        return self._own.vector(row_id) if owner is None else owner[0].vector(owner[1], self._own.gallery.dim)

    def policy(self, direction: Direction, target: Target, refine_ratio: float, abstain_ratio: float) -> Policy | None:
        calibration = self._parts.calibrations.get((direction, target))
        return None if calibration is None else Policy.of(calibration, refine_ratio, abstain_ratio)

    def calibrate_together(self, rng: np.random.Generator) -> None:
        """Measure usual queries against the whole: common questions, and pictures of this machine held out of it."""
        self._parts.calibrations = self._own.alone(lambda: self._calibrations(rng))

    def _calibrations(self, rng: np.random.Generator) -> Calibrations:
        gallery = self._own.gallery
        self._elsewhere = {}
        texts = list(COMMON_QUESTIONS)
        vectors = encode(gallery.model, texts, "text")
        new_words = out_of_domain_words(gallery.model.domain, texts, vectors, "text")
        everything = self.select(NO_FILTERS, "images")
        pictures = np.ones(len(gallery), np.bool_) if everything.here is None else everything.here
        places = np.flatnonzero(pictures)
        sample = np.sort(rng.permutation(places)[: min(_MOST_HELD_OUT, len(places) // 2)])
        left = pictures.copy()
        left[sample] = False
        asked: list[tuple[Direction, NDArray[np.float32], Selection]] = [
            ("text", vectors[[not words for words in new_words]], everything),
            ("image", np.asarray(gallery.vectors[sample]), replace(everything, here=left)),
        ]
        calibrations: Calibrations = {}
        for direction, queries, selection in asked:
            self._versions = {}  # no row is looked up
            found = self.scan(queries, selection, 1) if len(queries) >= LEAST_QUERIES else None
            if found is not None and found.count:
                calibrations[direction, "images"] = Calibration(
                    gallery.info.model_fingerprint,
                    direction,
                    found.count,
                    DEFAULT_SCORE,
                    certainty_lost(found),
                    domain_digest=domain_digest(gallery, direction),
                )
        return calibrations
