"""Query → encoder → scan → gate → refinement → answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from evidex.errors import InputError, NotFoundError
from evidex.retrieval.answers import Answer, Hit, Refinement, Timings, Verdict
from evidex.retrieval.certainty.calibration_store import Policy, load_policy
from evidex.retrieval.filters import NO_FILTERS, Filters, Selector, Target
from evidex.retrieval.found import Found
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.gate import Direction
from evidex.retrieval.phrasing import asked_for
from evidex.retrieval.queries import Query, check_query, picture_of, shown
from evidex.retrieval.refine import Refiner, RsRefiner, refine_queries
from evidex.retrieval.rows import Row
from evidex.retrieval.scan.partial import Partial, ScanResult
from evidex.retrieval.scan.precision import Precision
from evidex.retrieval.scan.scan import scan
from evidex.retrieval.soundness.steady import steadily
from evidex.retrieval.untaught import ignored_words, is_faint, least_match, meant, strange_words

if TYPE_CHECKING:
    from PIL.Image import Image

T = TypeVar("T")
LARGEST_TOP = 10_000
REFINE_RATIO = 0.1  # the paper's deferral ratio
ABSTAIN_RATIO = 0.02
_PICTURES_AT_ONCE = 64


class Retriever:
    """Searches one gallery.

    Without a calibration none is refined, and none refused but texts that are strange to the model or find no match.
    """

    def __init__(
        self,
        gallery: Gallery,
        *,
        refiner: Refiner | None = None,
        refine_ratio: float = REFINE_RATIO,
        abstain_ratio: float = ABSTAIN_RATIO,
        seed: int = 0,
        threads: int | None = None,
        precision: Precision = "float32",
    ) -> None:
        for name, ratio in (("refine_ratio", refine_ratio), ("abstain_ratio", abstain_ratio)):
            if not 0.0 <= ratio <= 1.0:
                raise InputError(f"{name} {ratio:g} is not between 0 and 1")
        self.gallery = gallery
        self._refiner = refiner
        self._refines_as_calibrated = refiner is None
        self._ratios = refine_ratio, abstain_ratio
        self._seed = seed
        self._threads = threads
        self._precision: Precision = precision
        # Rows are looked up by their position in the version that was scanned: no refresh may come in between.
        self._lock = threading.RLock()
        self._selector: Selector | None = None
        self._policies: dict[tuple[Direction, Target], Policy | None] = {}

    def refresh(self) -> bool:
        """Take up rows and calibrations that were added since; whether there are new rows."""
        with self._lock:
            self._policies = {}
            return self.gallery.refresh()

    def search(
        self,
        *,
        text: str | None = None,
        image: str | Path | Image | None = None,
        top: int = 10,
        filters: Filters = NO_FILTERS,
        among: Target | None = None,
    ) -> Answer:
        """Answer one query, a text or an image; ``among`` images (the default, where there are any) or texts."""
        if (text is None) == (image is None):
            raise InputError("give either a text or an image to search for")
        if text is not None:
            return self.search_batch(texts=[text], top=top, filters=filters, among=among)[0]
        return self.search_batch(images=[image], top=top, filters=filters, among=among)[0]  # type: ignore[list-item]

    def search_batch(
        self,
        *,
        texts: Sequence[str] | None = None,
        images: Sequence[str | Path | Image] | None = None,
        top: int = 10,
        filters: Filters = NO_FILTERS,
        among: Target | None = None,
    ) -> list[Answer]:
        """Answer many queries of one kind in one scan, each as `search` would."""
        if (texts is None) == (images is None):
            raise InputError("give either texts or images to search for")
        if not 1 <= top <= LARGEST_TOP:
            raise InputError(f"top is {top}; give 1 to {LARGEST_TOP}")
        direction: Direction = "text" if texts is not None else "image"
        queries: Sequence[Query] = texts if texts is not None else images or ()
        if not len(queries):
            return []
        for query in queries:
            check_query(query, direction)
        return self._at_a_version_that_is_there(lambda: self._search(queries, direction, top, filters, among))

    def _at_a_version_that_is_there(self, ask: Callable[[], T]) -> T:
        with self._lock:
            return steadily(self.gallery, self.refresh, ask)

    def scan_rows(
        self, vectors: NDArray[np.float32], filters: Filters, target: Target, top: int
    ) -> tuple[ScanResult, dict[int, Row]]:
        """The best rows for encoded queries and the evidence of all that pass, with the rows that the ids stand for."""
        return self._at_a_version_that_is_there(lambda: self._scan_rows(vectors, filters, target, top))

    def _scan_rows(
        self, vectors: NDArray[np.float32], filters: Filters, target: Target, top: int
    ) -> tuple[ScanResult, dict[int, Row]]:
        found = self.scan(vectors, self._selected(filters, target), top)
        ids = np.unique(found.ids).tolist()
        return found, dict(zip(ids, self.rows_of(ids), strict=True))

    def neighbours(self, ids: Sequence[str], top: int) -> list[list[Hit] | NotFoundError]:
        """For each id of a row the rows most like it; where it is unknown the error, so that the others get theirs."""
        return self._at_a_version_that_is_there(lambda: self._neighbours(ids, top))

    def _neighbours(self, ids: Sequence[str], top: int) -> list[list[Hit] | NotFoundError]:
        vectors: dict[str, NDArray[np.float32]] = {}
        unknown: dict[str, NotFoundError] = {}
        for row_id in ids:
            try:
                vectors[row_id] = self._vector_of(row_id)
            except NotFoundError as error:
                unknown[row_id] = error
        hits: dict[str, list[Hit]] = {}
        if vectors:
            target = self._current_selector().default_target()
            found, rows = self._scan_rows(np.stack(list(vectors.values())), NO_FILTERS, target, top + 1)
            for row_id, part in zip(vectors, found, strict=True):
                like = zip((rows[row] for row in part.ids.tolist()), part.scores.tolist(), strict=True)
                others = [(row, score) for row, score in like if row.id != row_id][:top]
                hits[row_id] = [Hit.of(row, rank, score) for rank, (row, score) in enumerate(others, start=1)]
        return [hits[row_id] if row_id in hits else unknown[row_id] for row_id in ids]

    def vector_of(self, row_id: str) -> NDArray[np.float32]:
        """Of the row with this id; NotFoundError where there is none."""
        return self._at_a_version_that_is_there(lambda: self._vector_of(row_id))

    def _vector_of(self, row_id: str) -> NDArray[np.float32]:
        import pyarrow.compute as pc

        place = pc.index(self.gallery.column("id"), row_id).as_py()
        if place < 0:
            raise NotFoundError(f"'{row_id}' is not in the gallery; ids come with the hits of a search")
        return np.asarray(self.gallery.vectors[place])

    def _search(
        self, queries: Sequence[Query], direction: Direction, top: int, filters: Filters, among: Target | None
    ) -> list[Answer]:
        selector = self._current_selector()
        target = among or selector.default_target()
        policy = self._policy(direction, target)
        floor = self._floor(direction, target, policy)
        found = self._find(queries, direction, self._selected(filters, target), policy, floor, top)
        promise = None
        if policy is not None and filters == NO_FILTERS and self._refines_as_calibrated:
            promise = policy.promise(top=top, searched=found.first.count)
        least = least_match(self.gallery.model.acquaintance, direction, target)
        return [replace(answer, least_match=least) for answer in self._answers(queries, found, promise)]

    def _selected(self, filters: Filters, target: Target) -> Any:
        """What `scan` needs to know of the rows that may be found."""
        return self._current_selector().select(filters, target)

    def _current_selector(self) -> Selector:
        if self._selector is None or self._selector.version != self.gallery.version:
            self._selector = Selector(self.gallery)
        return self._selector

    def _policy(self, direction: Direction, target: Target) -> Policy | None:
        key = direction, target
        if key not in self._policies:
            self._policies[key] = load_policy(self.gallery, direction, target, *self._ratios)
        return self._policies[key]

    def _find(
        self,
        queries: Sequence[Query],
        direction: Direction,
        rows: Any,
        policy: Policy | None,
        floor: float | None,
        top: int,
    ) -> Found:
        self.gallery.model  # noqa: B018 (loading it is no part of the query's time)
        start = time.perf_counter()
        vectors = self.encode(queries, direction)
        encoded = time.perf_counter()
        seen = self.scan(vectors, rows, top if policy is None else max(top, policy.least_top))
        first = replace(seen, ids=seen.ids[:, :top], scores=seen.scores[:, :top])
        scanned = time.perf_counter()
        none = np.zeros(len(queries), np.bool_)
        new_words = self.new_words(queries, vectors, direction)
        strange = np.array([bool(words) for words in new_words]) if self._ratios[1] > 0 else none
        weak = none if floor is None or not first.count else ~strange & ~(first.scores[:, 0] >= floor)
        final = list(first)
        refined, abstained, percentiles, chances = none, strange | weak if first.count else ~none, None, None
        if policy is not None and first.count:
            scores = policy.score(seen, vectors, self.gallery.vectors)
            percentiles = policy.calibration.percentile(scores)
            chances = policy.chances(scores, searched=first.count)
            refined, abstained = policy.refine.defers(scores) & ~abstained, policy.abstain.defers(scores) | abstained
            again = np.flatnonzero(refined).tolist()
            if again:
                second = self.scan(self.refine([queries[i] for i in again], direction), rows, top)
                for place, part in zip(again, second, strict=True):
                    final[place] = part
        end = time.perf_counter()
        encode_ms, scan_ms, refine_ms = (1e3 * span for span in (encoded - start, scanned - encoded, end - scanned))
        chance_top = None if policy is None else policy.chance_top
        return Found(
            first, final, refined, abstained, percentiles, encode_ms, scan_ms, refine_ms, chances, chance_top,
            weak, floor, new_words, ignored_words(self.gallery.model.acquaintance, queries, new_words, direction),
            [direction == "text" and not self.gallery.model.reads_all(asked_for(query)) for query in queries],
        )  # fmt: skip

    def _floor(self, direction: Direction, target: Target, policy: Policy | None) -> float | None:
        """The least similarity of a best match that counts as one; None where nobody knows, or known answers say more.

        A calibration compares a query with others in the same rows. Of what all of these are without it cannot tell.
        """
        if self._ratios[1] == 0 or (policy is not None and policy.given):
            return None
        return least_match(self.gallery.model.acquaintance, direction, target)

    def new_words(
        self, queries: Sequence[Query], vectors: NDArray[np.float32], direction: Direction
    ) -> list[tuple[str, ...]]:
        """The words that make each query strange to the model (`evidex.encoders.acquaintance`), mostly none."""
        return strange_words(self.gallery.model.acquaintance, queries, vectors, direction)

    def encode(self, queries: Sequence[Query], direction: Direction) -> NDArray[np.float32]:
        """Unit rows of texts or images, from the gallery's model."""
        model = self.gallery.model
        if direction == "text":
            return model.encode_texts([asked_for(query) for query in queries])
        parts = [queries[start : start + _PICTURES_AT_ONCE] for start in range(0, len(queries), _PICTURES_AT_ONCE)]
        return np.concatenate([model.encode_images([picture_of(query) for query in part]) for part in parts])

    def refine(self, queries: Sequence[Query], direction: Direction) -> NDArray[np.float32]:
        """The same for queries that are asked again in other forms."""
        if self._refiner is None:
            self._refiner = RsRefiner()
        # Every query draws as if it were the only one: the same query gets the same answer in any batch.
        alone = [0] * len(queries)
        asked = [asked_for(query) if direction == "text" else picture_of(query) for query in queries]
        return refine_queries(self.gallery.model, asked, direction, self._refiner, self._seed, indices=alone)

    def rows_of(self, ids: Sequence[int]) -> list[Row]:
        """The rows that the ids of a scan stand for."""
        return self.gallery.rows(ids)

    def scan(self, vectors: NDArray[np.float32], rows: Any, top: int) -> ScanResult:
        """The best rows and the evidence of all, for encoded queries against the selected rows."""
        gallery = self.gallery
        held = gallery.scan_vectors(self._precision)
        return scan(
            vectors,
            held.scanned,
            temperature=gallery.temperature,
            top=top,
            threads=self._threads,
            rows=rows,
            exact=held.exact,
            ensure=held.ensure,
        )

    def _answers(self, queries: Sequence[Query], found: Found, promise: str | None) -> list[Answer]:
        start = time.perf_counter()
        wanted = np.unique(np.concatenate([found.first.ids.ravel(), *(part.ids for part in found.final)]))
        rows = dict(zip(wanted.tolist(), self.rows_of(wanted.tolist()), strict=True))
        row_ms = 1e3 * (time.perf_counter() - start) / len(queries)
        deferred = max(int(found.refined.sum()), 1)
        known = self.gallery.model.acquaintance
        answers = []
        for i, query in enumerate(queries):
            refined, abstained = bool(found.refined[i]), bool(found.abstained[i])
            verdict: Verdict = "abstained" if abstained else "refined" if refined else "answered"
            # What is strange is left out of the calibration, and what finds no match is nothing it knows about.
            weak = found.weak is not None and bool(found.weak[i])
            apart = weak or bool(found.new_words[i])
            final = found.final[i]
            answers.append(
                Answer(
                    query=shown(query),
                    hits=tuple(
                        Hit.of(rows[int(row)], rank, float(score))
                        for rank, (row, score) in enumerate(zip(final.ids, final.scores, strict=True), start=1)
                    ),
                    verdict=verdict,
                    uncertainty=final.uncertainty,
                    percentile=None if found.percentiles is None or apart else float(found.percentiles[i]),
                    chance=None if found.chances is None or refined or apart else float(found.chances[i]),
                    chance_top=None if found.chances is None or refined or apart else found.chance_top,
                    floor=found.floor if weak else None,
                    new_words=found.new_words[i],
                    ignored_words=found.ignored_words[i],
                    read_in_part=found.read_in_part[i],
                    did_you_mean=meant(known, found.new_words[i] or found.ignored_words[i]),
                    faint=found.floor is not None and is_faint(known, final.scores),
                    searched=final.count,
                    promise=None if abstained or apart else promise,
                    refinement=self._change(found.first[i], final, rows) if refined else None,
                    timings=Timings(
                        encode=found.encode_ms / len(queries),
                        scan=found.scan_ms / len(queries),
                        refine=found.refine_ms / deferred if refined else 0.0,
                        rows=row_ms,
                    ),
                )
            )
        return answers

    def _change(self, first: Partial, final: Partial, rows: dict[int, Row]) -> Refinement:
        before, after = first.ids.tolist(), final.ids.tolist()
        return Refinement(
            copies=getattr(self._refiner, "copies", 0),
            entered=tuple(rows[row].id for row in after if row not in set(before)),
            left=tuple(rows[row].id for row in before if row not in set(after)),
            reordered=before != after,
            uncertainty_before=first.uncertainty,
        )
