"""Teach a gallery how certain usual queries are, so that an unusual one stands out.

Four steps: known queries are *encoded* and scanned, they *teach* a score where they can, those that did not teach are
*judged* by it, and where it is asked for a threshold is found that keeps a *guarantee*.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

import numpy as np
from numpy.typing import NDArray

from evidex.data.reading_notes import readings_of
from evidex.data.rendering import TileOptions
from evidex.errors import InputError
from evidex.retrieval.certainty.calibration import LEAST_QUERIES, Calibration
from evidex.retrieval.certainty.calibration_store import domain_digest, store_calibration
from evidex.retrieval.certainty.captions import one_caption_each
from evidex.retrieval.certainty.guarantee import Guarantee, find_threshold
from evidex.retrieval.certainty.learned_score import LEARNED, LEAST_OF_EACH, Known, fit_learned_score
from evidex.retrieval.certainty.learning import (
    LEAST_KNOWN,
    Lesson,
    Worth,
    known_of,
    learn,
    middle_of,
    worth_of,
)
from evidex.retrieval.certainty.scores import DEFAULT_SCORE, score_named
from evidex.retrieval.certainty.signals import FIRST, Vectors
from evidex.retrieval.encoding import encode, encode_again
from evidex.retrieval.filters import NO_FILTERS, Target
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.out_of_domain import out_of_domain_words
from evidex.retrieval.queries import Direction, Query
from evidex.retrieval.refine import AS_CALIBRATED, REFINE_RATIO
from evidex.retrieval.scan.partial import ScanResult
from evidex.retrieval.searchable import OwnRows, Selection


class NothingAnswerable(InputError):
    """Too few queries are left without those outside the model's domain."""


@dataclass(frozen=True)
class KnownQuery:
    """A query of the kind that will be asked; ``relevant`` names rows (by id, path or file name) that answer it."""

    query: Query
    relevant: frozenset[str] = frozenset()
    none_right: bool = False
    """Whether somebody looked and found none that answers it."""


@dataclass(frozen=True)
class GuaranteeRequest:
    """What is asked of a guaranteed threshold: at most ``alpha`` wrong with confidence 1 - ``delta``."""

    alpha: float = 0.1
    delta: float = 0.1
    top: int = 10
    """An answer is right if a relevant row is among this many hits."""


@dataclass(frozen=True)
class CalibrationOutcome:
    """A calibration that was stored, and where its queries came from."""

    calibration: Calibration
    target: Target
    labelled: int
    """Queries whose answer is in the gallery; only these can teach and found a guarantee."""
    source: str = "given queries"
    worth: Worth | None = None
    """How much better the learned score is than the highest similarity, where it was learned, though not used."""
    taught: int = 0
    """Queries that the score was learned from; the calibration is of the others."""
    out_of_domain: int = 0
    """Queries that were left out: they are refused whatever the gallery holds."""
    unknown: int = 0
    """Queries whose answer was named and is not in the gallery."""

    @property
    def guarantee(self) -> Guarantee | None:
        return self.calibration.guarantees[0] if self.calibration.guarantees else None


@dataclass(frozen=True, eq=False)
class AskedQueries:
    """Known queries and what they find, without those outside the model's domain: these are refused anyway."""

    rows: OwnRows
    selection: Selection
    direction: Direction
    top: int
    """An answer is right if a relevant row is among this many hits."""
    queries: Sequence[KnownQuery]
    vectors: Vectors
    first: ScanResult
    answers: Mapping[int, set[int]]
    """The rows that answer each query, by its number, as far as they are in the gallery."""
    out_of_domain: int
    """Queries that were left out."""

    @property
    def unknown(self) -> int:
        """Queries whose answer was named and is not in the gallery."""
        return sum(bool(query.relevant) and i not in self.answers for i, query in enumerate(self.queries))


def calibrate(
    gallery: Gallery,
    queries: Sequence[KnownQuery],
    direction: Direction,
    *,
    guarantee: GuaranteeRequest | None = None,
    score: str | None = None,
    rng: np.random.Generator,
    among: Target | None = None,
    by_itself: bool = False,
) -> CalibrationOutcome:
    """Store the scores of ``queries`` and, for labelled ones, a threshold that keeps ``guarantee``.

    Without a ``score``, the one that labelled queries teach is used where they are enough, and vacuity elsewhere. One
    half of them teaches; the scores that are stored and the guarantee come from the other queries alone, but which of
    the two scores is used is decided by the answers of both halves. The guarantee counts queries of which no two ask
    for the same row. Answers are judged as the retriever will give them: queries above the refinement threshold are
    refined first, and those outside the model's domain are left out.
    """
    if not by_itself:
        _check_differ([known.query for known in queries])
    asked = _encoded(gallery, queries, direction, among, guarantee.top if guarantee else 10)
    if not asked.answers and asked.unknown:
        raise InputError(
            f"the answers of all {asked.unknown} queries that name some are not in the gallery; "
            "name them by the paths or ids of its rows"
        )
    lesson, worth = None, None
    if score in (None, LEARNED):
        lesson, worth = _taught(asked, score, rng, by_captions=not by_itself)
    calibration, judged = _judged(asked, lesson, score or DEFAULT_SCORE)
    if guarantee is not None and asked.answers:
        calibration = _guaranteed(asked, calibration, judged, guarantee, rng)
    target = asked.selection.target
    store_calibration(gallery, calibration, target, by_itself=by_itself)
    return CalibrationOutcome(
        calibration,
        target,
        len(asked.answers),
        worth=worth,
        taught=0 if lesson is None else int(lesson.taught.sum()),
        out_of_domain=asked.out_of_domain,
        unknown=asked.unknown,
    )


def _check_differ(queries: Sequence[Query]) -> None:
    """Percentiles among repetitions of few questions would refuse nearly every other one."""
    distinct = len({query if isinstance(query, str | Path) else id(query) for query in queries})
    if distinct < LEAST_QUERIES <= len(queries):
        raise InputError(
            f"of {len(queries)} queries only {distinct} differ, too few to calibrate with; "
            f"give at least {LEAST_QUERIES} different ones"
        )


def _encoded(
    gallery: Gallery, queries: Sequence[KnownQuery], direction: Direction, among: Target | None, top: int
) -> AskedQueries:
    """First step: what the queries find."""
    if len(queries) < LEAST_QUERIES:
        raise InputError(f"{len(queries)} queries are too few to calibrate with; give at least {LEAST_QUERIES}")
    if len(gallery) == 0:
        raise InputError("the gallery is empty; index something before it is calibrated")
    rows = OwnRows(gallery)
    selection = rows.select(NO_FILTERS, among or rows.default_target())
    gallery.vectors  # noqa: B018 (held against their checksums, and mended, before anything is learned from them)
    vectors, usable = _answerable(gallery, [known.query for known in queries], direction)
    kept = [known for known, keep in zip(queries, usable, strict=True) if keep]
    out_of_domain = len(queries) - len(kept)
    if len(kept) < LEAST_QUERIES:
        raise NothingAnswerable(
            f"{out_of_domain} of {len(queries)} queries are about things the model was never taught; "
            f"give at least {LEAST_QUERIES} others, or use a model that knows them"
        )
    first = rows.scan(vectors, selection, max(top, FIRST))
    if first.count == 0:
        raise InputError(f"the gallery holds no {selection.target} to calibrate with; index some first")
    return AskedQueries(rows, selection, direction, top, kept, vectors, first, _positions(gallery, kept), out_of_domain)


def _ways(gallery: Gallery, direction: Direction) -> tuple[TileOptions, ...]:
    """How example pictures are read, as a search reads them."""
    return () if direction == "text" else readings_of(gallery.notes)


def _answerable(gallery: Gallery, queries: Sequence[Query], direction: Direction) -> tuple[Vectors, NDArray[np.bool_]]:
    """Vectors of those that are inside the model's domain, and which of ``queries`` these are."""
    vectors = encode(gallery.model, queries, direction, _ways(gallery, direction))
    new_words = out_of_domain_words(gallery.model.domain, queries, vectors, direction)
    usable = np.array([not words for words in new_words])
    return vectors[usable], usable


def _taught(
    asked: AskedQueries, score: str | None, rng: np.random.Generator, *, by_captions: bool
) -> tuple[Lesson | None, Worth | None]:
    """Second step: a score learned from known answers, or from the gallery's captions where these are too few.

    With what it is worth, also where that is too little for it to be used.
    """
    gallery = asked.rows.gallery
    known = known_of(asked.first, asked.vectors, asked.answers, asked.top)
    middle = middle_of(gallery.vectors, asked.selection.mask)
    tried = learn(known, gallery.vectors, middle, rng, top=asked.top)
    lesson = _used(tried, score)
    if lesson is None and by_captions and (asked.direction, asked.selection.target) == ("text", "images"):
        by_them = _taught_by_captions(asked, known, middle, rng)
        lesson, tried = _used(by_them, score), tried or by_them
    if score == LEARNED and lesson is None:
        raise InputError(
            f"{len(asked.answers)} queries with known answers teach too little; give {LEAST_KNOWN} or more, with at "
            f"least {LEAST_OF_EACH} right and {LEAST_OF_EACH} wrong answers in either half, or another score"
        )
    told = lesson or tried
    return lesson, None if told is None else told.worth


def _used(lesson: Lesson | None, score: str | None) -> Lesson | None:
    """A lesson that helps, or that was asked for."""
    return lesson if lesson is not None and (lesson.helps or score == LEARNED) else None


def _taught_by_captions(asked: AskedQueries, judges: Known, middle: Vectors, rng: np.random.Generator) -> Lesson | None:
    """What the gallery's captions teach, of rows that no given query asks for; None where they are too few.

    So few known queries are all left for judging, by a score that was fixed without them.
    """
    gallery = asked.rows.gallery
    asked_for = set().union(*asked.answers.values())
    captioned = [
        (position, record["captions"])
        for position, record in enumerate(gallery.records(["kind", "captions"]))
        if record["kind"] != "text" and record["captions"] and position not in asked_for
    ]
    chosen = one_caption_each(captioned, rng)
    if len(chosen) < LEAST_KNOWN:
        return None
    vectors, usable = _answerable(gallery, [text for _, text in chosen], "text")
    rows = [position for (position, _), kept in zip(chosen, usable, strict=True) if kept]
    if len(rows) < LEAST_KNOWN:
        return None
    first = asked.rows.scan(vectors, asked.selection, max(asked.top, FIRST))
    known = known_of(first, vectors, {i: {position} for i, position in enumerate(rows)}, asked.top)
    if not known.teaches:
        return None
    learned_score = fit_learned_score(known, gallery.vectors, middle, rng, top=asked.top)
    return Lesson(
        learned_score, np.zeros(len(judges.right), np.bool_), worth_of(learned_score, judges, gallery.vectors)
    )


def _judged(asked: AskedQueries, lesson: Lesson | None, score: str) -> tuple[Calibration, dict[int, float]]:
    """Third step: a calibration of all queries that did not teach, and their scores by number."""
    gallery, first = asked.rows.gallery, asked.first
    kept = np.ones(len(first), np.bool_)
    if lesson is None:
        scores, learned_score = score_named(score)(first), None
    else:
        learned_score, score = lesson.learned_score, LEARNED
        scores = learned_score.doubt(first, asked.vectors, gallery.vectors)
        kept[np.array(sorted(asked.answers), np.int64)[lesson.taught]] = False
    calibration = Calibration(
        gallery.info.model_fingerprint,
        asked.direction,
        first.count,
        score,
        scores[kept],
        learned_score=learned_score,
        domain_digest=domain_digest(gallery, asked.direction),
    )
    return calibration, {int(i): float(scores[i]) for i in np.flatnonzero(kept)}


def _guaranteed(
    asked: AskedQueries,
    calibration: Calibration,
    judged: Mapping[int, float],
    guarantee: GuaranteeRequest,
    rng: np.random.Generator,
) -> Calibration:
    """Fourth step: the calibration with a threshold that keeps ``guarantee``, or with the news that there is none."""
    gate = calibration.gate(REFINE_RATIO)
    tested = _independent([i for i in asked.answers if i in judged], asked.answers)
    hits = {i: asked.first.ids[i, : asked.top] for i in tested}
    again = [i for i in tested if gate.defers(judged[i])]
    if again:
        queries = [asked.queries[i].query for i in again]
        gallery = asked.rows.gallery
        ways = _ways(gallery, asked.direction)
        vectors = encode_again(gallery.model, queries, asked.direction, AS_CALIBRATED, ways)
        hits.update(zip(again, asked.rows.scan(vectors, asked.selection, asked.top).ids, strict=True))
    right = np.array([not asked.answers[i].isdisjoint(hits[i].tolist()) for i in tested])
    values = np.array([judged[i] for i in tested])
    found = find_threshold(values, right, alpha=guarantee.alpha, delta=guarantee.delta, rng=rng)
    found = replace(found, top=asked.top, refine_ratio=REFINE_RATIO, gallery_size=asked.first.count)
    return replace(calibration, guarantees=(found,))


def _independent(queries: list[int], answers: Mapping[int, set[int]]) -> list[int]:
    """Queries of which no two ask for the same row, as many as come first: such are right or wrong together.

    A guarantee counts independent queries; five captions of one image would count as five.
    """
    chosen: list[int] = []
    asked_for: set[int] = set()
    for i in queries:
        if asked_for.isdisjoint(answers[i]):
            chosen.append(i)
            asked_for |= answers[i]
    return chosen


def _positions(gallery: Gallery, queries: Sequence[KnownQuery]) -> dict[int, set[int]]:
    """The rows that answer each labelled query, as far as they are in the gallery."""
    names = set().union(*(known.relevant for known in queries))
    if not names and not any(known.none_right for known in queries):
        return {}
    where: dict[str, set[int]] = {}
    for position, record in enumerate(gallery.records(["id", "path"])):
        for name in (record["id"], record["path"], PurePath(record["path"]).name):
            if name in names:
                where.setdefault(name, set()).add(position)
    found = {i: set().union(*(where.get(name, set()) for name in known.relevant)) for i, known in enumerate(queries)}
    return {i: rows for i, rows in found.items() if rows or queries[i].none_right}
