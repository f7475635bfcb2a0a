"""Query → encoder → scan → standing → refinement → answer."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evidex.data.reading_notes import readings_of
from evidex.data.rendering import TileOptions
from evidex.errors import InputError, NotFoundError
from evidex.retrieval.answers import Answer, Timings
from evidex.retrieval.certainty.policy import ABSTAIN_RATIO, Judged, Policy
from evidex.retrieval.composing import asked, composed_readings, encode_composed
from evidex.retrieval.distinct import Ranked, Ranking
from evidex.retrieval.encoding import encode, encode_again
from evidex.retrieval.filters import NO_FILTERS, Filters, Target
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.hits import Hit, Refinement
from evidex.retrieval.out_of_domain import Bar, Reading, readings
from evidex.retrieval.queries import Asking, Direction, Query, check_query
from evidex.retrieval.queries import shown as shown_query
from evidex.retrieval.refine import AS_CALIBRATED, Refining
from evidex.retrieval.rows import Row
from evidex.retrieval.scan.partial import Partial, ScanResult
from evidex.retrieval.searchable import OwnRows, Searchable, Selection
from evidex.retrieval.standing import Case, Standing
from evidex.retrieval.wording import lacking

if TYPE_CHECKING:
    from PIL.Image import Image

LARGEST_TOP = 10_000
_NO_VECTORS = np.empty((0, 0), np.float32)


@dataclass(frozen=True)
class Search:
    """What the queries of a batch have in common."""

    direction: Asking
    top: int = 10
    filters: Filters = NO_FILTERS
    among: Target | None = None
    """Images or texts; None: images, where there are any."""
    refine: Refining = AS_CALIBRATED
    copies: bool = False
    """Whether a picture that is there several times is found as often; otherwise once, with its other places."""


@dataclass(frozen=True, eq=False)
class _Found:
    """One query between the scans and its answer."""

    first: Partial
    final: Partial
    vectors: NDArray[np.float32]
    """(2, dim): what the two were scanned for."""
    standing: Standing
    timings: Timings


class Retriever:
    """Searches one gallery, here or on the Ray cluster at the address ``cluster`` (`evidex.cluster.connection`).

    There ``shards`` processes, one for each node if not said otherwise, hold a range of the rows each, in so many
    ``replicas``. Use it in a ``with`` block or call `close` at the end. ``rows`` are given by who has them already.

    Without a calibration none is refined, and none refused but texts that are out of domain or find no match.
    """

    def __init__(
        self,
        gallery: Gallery,
        *,
        rows: Searchable | None = None,
        cluster: str | None = None,
        shards: int | None = None,
        replicas: int = 1,
        abstain_ratio: float = ABSTAIN_RATIO,
    ) -> None:
        if not 0.0 <= abstain_ratio <= 1.0:
            raise InputError(f"abstain_ratio {abstain_ratio:g} is not between 0 and 1")
        self.gallery = gallery
        if cluster is None and (shards is not None or replicas != 1):
            raise InputError("shards and replicas are of a cluster; give its address too")
        if rows is None:
            rows = OwnRows(gallery) if cluster is None else _sharded(gallery, cluster, shards, replicas)
        self.rows = rows
        self._abstain_ratio = abstain_ratio

    def close(self) -> None:
        """End what was started on a cluster; where there is none, nothing happens."""
        self.rows.close()

    def __enter__(self) -> Retriever:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def refresh(self) -> bool:
        """Take up rows and calibrations that were added since; whether there are new rows."""
        return self.rows.refresh()

    def search(
        self,
        *,
        text: str | None = None,
        image: str | Path | Image | Sequence[str | Path | Image] | None = None,
        without: str | Sequence[str] = (),
        top: int = 10,
        filters: Filters = NO_FILTERS,
        among: Target | None = None,
        refine: Refining = AS_CALIBRATED,
        copies: bool = False,
    ) -> Answer:
        """Answer one query, a text or an image; ``among`` images (the default, where there are any) or texts.

        With both, several images, or something to be found ``without`` (also written "-clouds" in the text), it is a
        question in several parts, whose answer no calibration judges (`evidex.retrieval.composing`).
        A picture that is there several times is one hit that names its other places, unless ``copies`` are wanted.
        """
        images = [] if image is None else list(image) if isinstance(image, list | tuple) else [image]
        direction, query = asked(text, images, [without] if isinstance(without, str) else without)
        return self.answer([query], Search(direction, top, filters, among, refine, copies))[0]

    def search_batch(
        self,
        *,
        texts: Sequence[str] | None = None,
        images: Sequence[str | Path | Image] | None = None,
        top: int = 10,
        filters: Filters = NO_FILTERS,
        among: Target | None = None,
        refine: Refining = AS_CALIBRATED,
        copies: bool = False,
    ) -> list[Answer]:
        """Answer many queries of one kind in one scan, each as `search` would."""
        if (texts is None) == (images is None):
            raise InputError("give either texts or images to search for")
        queries: Sequence[Query] = texts if texts is not None else images or ()
        direction: Direction = "image" if texts is None else "text"
        return self.answer(queries, Search(direction, top, filters, among, refine, copies))

    def answer(self, queries: Sequence[Query], search: Search) -> list[Answer]:
        """Answer queries of one kind in one scan."""
        if not 1 <= search.top <= LARGEST_TOP:
            raise InputError(f"top is {search.top}; give 1 to {LARGEST_TOP}")
        if not len(queries):
            return []
        for query in queries:
            if search.direction != "composed":
                check_query(query, search.direction)
        return self.rows.steadily(lambda: self._answer(queries, search))

    def _looked_up(self, *ids: NDArray[np.int64]) -> dict[int, Row]:
        wanted = np.unique(np.concatenate([part.ravel() for part in ids])).tolist()
        return dict(zip(wanted, self.rows.look_up(wanted), strict=True))

    def neighbours(self, ids: Sequence[str], top: int) -> list[list[Hit] | NotFoundError]:
        """For each id of a row the rows most like it; where it is unknown the error, so that the others get theirs."""
        return self.rows.steadily(lambda: self._neighbours(ids, top))

    def _neighbours(self, ids: Sequence[str], top: int) -> list[list[Hit] | NotFoundError]:
        vectors: dict[str, NDArray[np.float32]] = {}
        unknown: dict[str, NotFoundError] = {}
        for row_id in ids:
            try:
                vectors[row_id] = self.rows.vector(row_id)
            except NotFoundError as error:
                unknown[row_id] = error
        hits: dict[str, list[Hit]] = {}
        if vectors:
            selection = self.rows.select(NO_FILTERS, self.rows.default_target())
            found = self.rows.scan(np.stack(list(vectors.values())), selection, top + 1)
            rows = self._looked_up(found.ids)
            for row_id, part in zip(vectors, found, strict=True):
                like = zip((rows[row] for row in part.ids.tolist()), part.scores.tolist(), strict=True)
                others = [(row, score) for row, score in like if row.id != row_id][:top]
                hits[row_id] = [Hit.of(row, rank, score) for rank, (row, score) in enumerate(others, start=1)]
        return [hits[row_id] if row_id in hits else unknown[row_id] for row_id in ids]

    def _answer(self, queries: Sequence[Query], search: Search) -> list[Answer]:
        target = search.among or self.rows.default_target()
        policy = None
        if search.direction != "composed":
            policy = self.rows.policy(search.direction, target, search.refine.ratio, self._abstain_ratio)
        bar = Bar.of(
            self.gallery.model.domain,
            search.direction,
            target,
            # A calibration compares a query with others in the same rows. Of what all of these are without it cannot
            # tell, unless known answers taught it.
            decides=policy is None or not policy.given,
            refuses=self._abstain_ratio > 0,
        )
        rows = self.rows.select(search.filters, target)
        found = self._find(queries, search, rows, policy, bar)
        guarantee = None
        if policy is not None and search.filters == NO_FILTERS and search.refine.refiner is None:
            guarantee = policy.guaranteed(top=search.top, searched=found[0].first.count)
        ranking = Ranking(self.rows, rows, search.top, once=not search.copies)
        return self._answers(queries, found, ranking, search.refine, guarantee)

    def _find(
        self, queries: Sequence[Query], search: Search, rows: Selection, policy: Policy | None, bar: Bar
    ) -> list[_Found]:
        """Scan, decide which queries are asked again, ask these, and say how the answers stand."""
        model, top = self.gallery.model, search.top
        start = time.perf_counter()
        ways = () if search.direction == "text" else readings_of(self.gallery.notes)
        vectors, read = self._read(queries, search.direction, ways)
        encoded = time.perf_counter()
        seen = self.rows.scan(vectors, rows, top if policy is None else max(top, policy.least_top))
        scanned = time.perf_counter()
        judged: Sequence[Judged | None] = [None] * len(queries)
        if policy is not None and seen.count:
            judged = self._judged(self._in_force(policy, rows, seen.count), seen, vectors)
        first = replace(seen, ids=seen.ids[:, :top], scores=seen.scores[:, :top])
        composed = search.direction == "composed"
        cases = [
            Case(part, reading, said, bar, composed) for part, reading, said in zip(first, read, judged, strict=True)
        ]
        final, asked_for = list(first), vectors.copy()
        again = [i for i, case in enumerate(cases) if case.asks_again]
        if again and search.direction != "composed":
            forms = encode_again(model, [queries[i] for i in again], search.direction, search.refine, ways)
            for place, part in zip(again, self.rows.scan(forms, rows, top), strict=True):
                final[place] = part
            asked_for[again] = forms
        ended = time.perf_counter()
        encode_ms, scan_ms = (1e3 * span / len(queries) for span in (encoded - start, scanned - encoded))
        refine_ms = 1e3 * (ended - scanned) / max(len(again), 1)
        return [
            _Found(
                case.first,
                part,
                np.stack(pair),
                case.standing(part),
                Timings(encode_ms, scan_ms, refine_ms if case.asks_again else 0.0, rows=0.0),
            )
            for case, part, *pair in zip(cases, final, vectors, asked_for, strict=True)
        ]

    def _in_force(self, policy: Policy, rows: Selection, searched: int) -> Policy:
        """``policy`` without a guarantee that was made of other rows than are held now."""
        if policy.guarantee is None:
            return policy
        if rows.filters == NO_FILTERS:
            return policy.of_rows(searched)
        counts = self.rows.counts()
        texts = counts.kinds.get("text", 0)
        return policy.of_rows(texts if rows.target == "texts" else counts.rows - texts)

    def _judged(self, policy: Policy, seen: ScanResult, vectors: NDArray[np.float32]) -> list[Judged]:
        """A learned score looks at the vectors of the best rows, wherever they lie; they are numbered anew for it."""
        if not policy.looks_at_rows:
            return policy.judge(seen, vectors, _NO_VECTORS)
        best, place = np.unique(seen.ids[:, : policy.least_top], return_inverse=True)
        numbered = replace(seen, ids=place.reshape(len(seen), -1), scores=seen.scores[:, : policy.least_top])
        return policy.judge(numbered, vectors, self.rows.vectors(best))

    def _read(
        self, queries: Sequence[Query], direction: Asking, ways: Sequence[TileOptions]
    ) -> tuple[NDArray[np.float32], list[Reading]]:
        """Unit rows of the queries, and how their words read to the model."""
        model = self.gallery.model
        if direction == "composed":
            return encode_composed(model, queries, self.rows.vector, ways), composed_readings(model, queries)
        vectors = encode(model, queries, direction, ways)
        return vectors, readings(model, queries, vectors, direction)

    def _answers(
        self,
        queries: Sequence[Query],
        found: Sequence[_Found],
        ranking: Ranking,
        refine: Refining,
        guarantee: str | None,
    ) -> list[Answer]:
        start = time.perf_counter()
        ranking.look_up([part for one in found for part in (one.first, one.final)])
        shown = [ranking.of(one.final, one.vectors[1]) for one in found]
        before = [ranking.of(one.first, one.vectors[0]) if one.standing.refined else None for one in found]
        row_ms = 1e3 * (time.perf_counter() - start) / len(queries)
        return [
            Answer(
                query=shown_query(query),
                hits=_hits(after),
                standing=one.standing,
                uncertainty=one.final.uncertainty,
                searched=one.final.count,
                guarantee=guarantee if one.standing.may_guarantee else None,
                refinement=None if earlier is None else _change(earlier, after, refine),
                timings=replace(one.timings, rows=row_ms),
                lacking=lacking(self.gallery.checks.lost),
            )
            for query, one, earlier, after in zip(queries, found, before, shown, strict=True)
        ]


def _sharded(gallery: Gallery, address: str, shards: int | None, replicas: int) -> Searchable:
    from evidex.retrieval.sharded.fleet import ShardOptions
    from evidex.retrieval.sharded.rows import ShardedRows

    return ShardedRows(gallery, address, ShardOptions(shards, replicas))


def _hits(ranked: Ranked) -> tuple[Hit, ...]:
    scored = zip(ranked.rows, ranked.part.scores.tolist(), ranked.copies, strict=True)
    return tuple(Hit.of(row, rank, score, copies) for rank, (row, score, copies) in enumerate(scored, start=1))


def _change(first: Ranked, final: Ranked, refine: Refining) -> Refinement:
    before, after = ([row.id for row in ranked.rows] for ranked in (first, final))
    return Refinement(
        copies=getattr(refine.forms, "copies", 0),
        entered=tuple(row for row in after if row not in set(before)),
        left=tuple(row for row in before if row not in set(after)),
        reordered=before != after,
        uncertainty_before=first.part.uncertainty,
    )
