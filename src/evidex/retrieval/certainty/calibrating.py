"""Teach a gallery how certain usual queries are, so that an unusual one stands out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import PurePath
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from evidex.errors import InputError
from evidex.retrieval.certainty.calibration_store import known_texts, store_calibration
from evidex.retrieval.certainty.common_questions import COMMON_QUESTIONS
from evidex.retrieval.certainty.guarantee import Guarantee, find_threshold
from evidex.retrieval.certainty.learning import (
    LEAST_KNOWN,
    Lesson,
    Worth,
    known_of,
    learn,
    middle_of,
    worth_of,
)
from evidex.retrieval.certainty.reckoning import LEAST_OF_EACH, RECKONED, Known, fit_reckoning
from evidex.retrieval.certainty.scores import DEFAULT_SCORE, score_named
from evidex.retrieval.certainty.signs import FIRST, Vectors
from evidex.retrieval.filters import NO_FILTERS, Selector, Target
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.gate import Calibration, Direction
from evidex.retrieval.queries import Query
from evidex.retrieval.retriever import REFINE_RATIO, Retriever
from evidex.retrieval.scan.partial import ScanResult, merge_results

_Row = TypeVar("_Row")

MOST_SELF_QUERIES = 500
LEAST_QUERIES = 20
_COPY = 1 - 1e-4  # cosine of two rows that show the same picture
_ROWS_AT_ONCE = 4096


class NothingAnswerable(InputError):
    """Too few queries are left without those that are strange to the model."""


@dataclass(frozen=True)
class KnownQuery:
    """A query of the kind that will be asked; ``relevant`` names rows (by id, path or file name) that answer it."""

    query: Query
    relevant: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Promise:
    """What is asked of a guaranteed threshold: at most ``alpha`` wrong with confidence 1 - ``delta``."""

    alpha: float = 0.1
    delta: float = 0.1
    top: int = 10
    """An answer is right if a relevant row is among this many hits."""


@dataclass(frozen=True)
class Outcome:
    """A calibration that was stored, and where its queries came from."""

    calibration: Calibration
    target: Target
    source: str
    labelled: int
    """Queries whose answer is in the gallery; only these can teach and found a guarantee."""
    worth: Worth | None = None
    """How much better the learnt score is than the highest similarity, where it was learnt."""
    taught: int = 0
    """Queries that the score was learnt from; the calibration is of the others."""
    strange: int = 0
    """Queries that were left out: they are refused whatever the gallery holds."""
    unknown: int = 0
    """Queries whose answer was named and is not in the gallery."""

    @property
    def guarantee(self) -> Guarantee | None:
        return self.calibration.guarantees[0] if self.calibration.guarantees else None


def calibrate(
    gallery: Gallery,
    queries: Sequence[KnownQuery],
    direction: Direction,
    *,
    promise: Promise | None = None,
    score: str | None = None,
    rng: np.random.Generator,
    among: Target | None = None,
    source: str = "given queries",
    by_itself: bool = False,
) -> Outcome:
    """Store the scores of ``queries`` and, for labelled ones, a threshold that keeps ``promise``.

    Without a ``score``, the one that labelled queries teach is used where they are enough, and vacuity elsewhere. One
    half of them teaches; the scores that are stored and the promise come from the other queries alone, but which of the
    two scores is used is decided by the answers of both halves. The promise counts queries
    of which no two ask for the same row. Answers are
    judged as the retriever will give them: queries above the refinement threshold are refined first, and those that
    are strange to the model are left out.
    """
    if len(queries) < LEAST_QUERIES:
        raise InputError(f"{len(queries)} queries are too few to calibrate with; give at least {LEAST_QUERIES}")
    if len(gallery) == 0:
        raise InputError("the gallery is empty; index something before it is calibrated")
    top = promise.top if promise else 10
    selector = Selector(gallery)
    target = among or selector.default_target()
    rows = selector.select(NO_FILTERS, target)
    gallery.vectors  # noqa: B018 (held against their checksums, and mended, before anything is learnt from them)
    retriever = Retriever(gallery)
    vectors = retriever.encode([known.query for known in queries], direction)
    usable = _answerable(retriever, queries, vectors, direction)
    strange = len(queries) - int(usable.sum())
    queries, vectors = [known for known, kept in zip(queries, usable, strict=True) if kept], vectors[usable]
    if len(queries) < LEAST_QUERIES:
        raise NothingAnswerable(
            f"{strange} of {strange + len(queries)} queries are about things the model was never taught; "
            f"give at least {LEAST_QUERIES} others, or use a model that knows them"
        )
    asked = [known.query for known in queries]
    first = retriever.scan(vectors, rows, max(top, FIRST))
    if first.count == 0:
        raise InputError(f"the gallery holds no {target} to calibrate with; index some first")
    answers = _positions(gallery, queries)
    lesson = None
    if score in (None, RECKONED):
        known = known_of(first, vectors, answers, top)
        middle = middle_of(gallery.vectors, rows)
        lesson = _used(learn(known, gallery.vectors, middle, rng, top=top), score)
        if lesson is None and direction == "text" and target == "images" and not by_itself:
            asked_for = set().union(*answers.values())
            lesson = _used(_taught_by_captions(retriever, known, asked_for, rows, middle, rng, top), score)
    if score == RECKONED and lesson is None:
        raise InputError(
            f"{len(answers)} queries with known answers teach too little; give {LEAST_KNOWN} or more, with at least "
            f"{LEAST_OF_EACH} right and {LEAST_OF_EACH} wrong answers in either half, or another score"
        )
    calibration, judged = _judge(gallery, direction, first, vectors, lesson, sorted(answers), score or DEFAULT_SCORE)
    if promise is not None and answers:
        gate = calibration.gate(REFINE_RATIO)
        tested = _independent([i for i in answers if i in judged], answers)
        hits = {i: first.ids[i, :top] for i in tested}
        again = [i for i in tested if gate.defers(judged[i])]
        if again:
            second = retriever.scan(retriever.refine([asked[i] for i in again], direction), rows, top)
            hits.update(zip(again, second.ids, strict=True))
        right = np.array([not answers[i].isdisjoint(hits[i].tolist()) for i in tested])
        values = np.array([judged[i] for i in tested])
        found = find_threshold(values, right, alpha=promise.alpha, delta=promise.delta, rng=rng)
        found = replace(found, top=top, refine_ratio=REFINE_RATIO, gallery_size=first.count)
        calibration = replace(calibration, guarantees=(found,))
    store_calibration(gallery, calibration, target, by_itself=by_itself)
    worth, taught = (None, 0) if lesson is None else (lesson.worth, int(lesson.taught.sum()))
    unknown = sum(bool(query.relevant) for query in queries) - len(answers)
    return Outcome(calibration, target, source, len(answers), worth, taught, strange, unknown)


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


def _answerable(
    retriever: Retriever, queries: Sequence[KnownQuery], vectors: Vectors, direction: Direction
) -> NDArray[np.bool_]:
    """Which queries are not strange to the model; the others are refused, so nothing is said about them."""
    new_words = retriever.new_words([known.query for known in queries], vectors, direction)
    return np.array([not words for words in new_words])


def _used(lesson: Lesson | None, score: str | None) -> Lesson | None:
    """A lesson that helps, or that was asked for."""
    return lesson if lesson is not None and (lesson.helps or score == RECKONED) else None


def _taught_by_captions(
    retriever: Retriever,
    judges: Known,
    asked_for: set[int],
    rows: NDArray[np.bool_] | None,
    middle: Vectors,
    rng: np.random.Generator,
    top: int,
) -> Lesson | None:
    """What the gallery's captions teach, of rows that no given query asks for; None where they are too few.

    So few known queries are all left for judging, by a score that was fixed without them.
    """
    gallery = retriever.gallery
    captioned = [
        (position, record["captions"])
        for position, record in enumerate(gallery.records(["kind", "captions"]))
        if record["kind"] != "text" and record["captions"] and position not in asked_for
    ]
    chosen = _one_caption_each(captioned, rng)
    if len(chosen) < LEAST_KNOWN:
        return None
    vectors = retriever.encode([text for _, text in chosen], "text")
    usable = _answerable(retriever, [KnownQuery(text) for _, text in chosen], vectors, "text")
    chosen, vectors = [each for each, kept in zip(chosen, usable, strict=True) if kept], vectors[usable]
    if len(chosen) < LEAST_KNOWN:
        return None
    first = retriever.scan(vectors, rows, max(top, FIRST))
    known = known_of(first, vectors, {i: {position} for i, (position, _) in enumerate(chosen)}, top)
    if not known.teaches:
        return None
    reckoning = fit_reckoning(known, gallery.vectors, middle, rng, top=top)
    return Lesson(reckoning, np.zeros(len(judges.right), np.bool_), worth_of(reckoning, judges, gallery.vectors))


def _judge(
    gallery: Gallery,
    direction: Direction,
    first: ScanResult,
    vectors: Vectors,
    lesson: Lesson | None,
    labelled: Sequence[int],
    score: str,
) -> tuple[Calibration, dict[int, float]]:
    """A calibration of all queries that did not teach, and their scores by number."""
    if lesson is None:
        scores, kept, reckoning = score_named(score)(first), np.ones(len(first), np.bool_), None
    else:
        reckoning, score = lesson.reckoning, RECKONED
        scores, kept = reckoning.doubt(first, vectors, gallery.vectors), np.ones(len(first), np.bool_)
        kept[np.array(labelled, np.int64)[lesson.taught]] = False
    fingerprint = gallery.info.model_fingerprint
    knowing = known_texts(gallery, direction)
    calibration = Calibration(
        fingerprint, direction, first.count, score, scores[kept], reckoning=reckoning, knowing=knowing
    )
    return calibration, {int(i): float(scores[i]) for i in np.flatnonzero(kept)}


def self_calibrate(gallery: Gallery, rng: np.random.Generator, *, score: str | None = None) -> list[Outcome]:
    """Calibrate a gallery by what it holds, for text and for image queries, as far as that goes.

    Text queries: questions that are usual of overhead imagery and, where there are captions, one of each image: they
    say what is right and so teach. Image queries: its own images, each against all others, by vacuity unless
    ``score`` names another. What `calibrate` stored goes before what is stored here.
    """
    outcomes = []
    pictures: list[int] = []
    captioned: list[tuple[str, list[str]]] = []
    for position, record in enumerate(gallery.records(["id", "kind", "captions"])):
        if record["kind"] != "text":
            pictures.append(position)
            if record["captions"]:
                captioned.append((record["id"], record["captions"]))
    if not pictures:
        return []
    # Captions say what is right, common questions how people ask.
    known = [KnownQuery(text, frozenset([row_id])) for row_id, text in _one_caption_each(captioned, rng)]
    known += [KnownQuery(text) for text in COMMON_QUESTIONS]
    source = ("captions of the gallery and " if captioned else "") + "common questions about overhead imagery"
    with suppress(NothingAnswerable):
        outcomes.append(
            calibrate(gallery, known, "text", score=score, rng=rng, among="images", source=source, by_itself=True)
        )
    if len(pictures) > LEAST_QUERIES:
        sample = np.sort(rng.permutation(pictures)[:MOST_SELF_QUERIES])
        named = DEFAULT_SCORE if score in (None, RECKONED) else score
        values = _scores_among_others(gallery, sample, np.array(pictures), named)
        values = values[np.isfinite(values)]  # not so where all others are copies
        if len(values) > LEAST_QUERIES:
            calibration = Calibration(gallery.info.model_fingerprint, "image", len(pictures) - 1, named, values)
            store_calibration(gallery, calibration, "images", by_itself=True)
            outcomes.append(Outcome(calibration, "images", "images of the gallery", 0))
    return outcomes


def _one_caption_each(captioned: Sequence[tuple[_Row, list[str]]], rng: np.random.Generator) -> list[tuple[_Row, str]]:
    """A bounded number of rows, each with one of its captions.

    Captions of one image are right or wrong together; a guarantee counts independent queries.
    """
    chosen = [captioned[i] for i in rng.permutation(len(captioned))[:MOST_SELF_QUERIES]]
    return [(row, captions[int(rng.integers(len(captions)))]) for row, captions in chosen]


def _scores_among_others(
    gallery: Gallery, sample: NDArray[np.int64], pictures: NDArray[np.int64], score: str
) -> NDArray[np.float64]:
    """The score of each sampled row as a query against all pictures but itself and its copies.

    A copy is as like it as itself, which no new picture will be: beside copies all of those would look uncertain.
    """
    tau = gallery.temperature
    queries = gallery.vectors[sample].astype(np.float64)
    parts = []
    for start in range(0, len(pictures), _ROWS_AT_ONCE):
        block = pictures[start : start + _ROWS_AT_ONCE]
        similarity = queries @ gallery.vectors[block].astype(np.float64).T
        # Left out before the sum: a row's own evidence outweighs all other so far that no subtraction could take it
        # away again.
        similarity[(sample[:, None] == block) | (similarity > _COPY)] = -np.inf
        nearest = similarity.argmax(axis=1)[:, None]
        best = np.take_along_axis(similarity, nearest, axis=1)
        evidence = np.logaddexp.reduce(similarity / tau, axis=1)
        parts.append(ScanResult(block[nearest], best, evidence, len(block), tau))
    whole = reduce(lambda a, b: merge_results(a, b, top=1), parts)
    return score_named(score)(replace(whole, count=len(pictures) - 1))


def _positions(gallery: Gallery, queries: Sequence[KnownQuery]) -> dict[int, set[int]]:
    """The rows that answer each labelled query, as far as they are in the gallery."""
    names = set().union(*(known.relevant for known in queries))
    if not names:
        return {}
    where: dict[str, set[int]] = {}
    for position, record in enumerate(gallery.records(["id", "path"])):
        for name in (record["id"], record["path"], PurePath(record["path"]).name):
            if name in names:
                where.setdefault(name, set()).add(position)
    found = {i: set().union(*(where.get(name, set()) for name in known.relevant)) for i, known in enumerate(queries)}
    return {i: rows for i, rows in found.items() if rows}
