"""A gallery's own content as the queries that it is calibrated with."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from evidex.retrieval.certainty.calibrating import CalibrationOutcome, KnownQuery, NothingAnswerable, calibrate
from evidex.retrieval.certainty.calibration import LEAST_QUERIES, Calibration
from evidex.retrieval.certainty.calibration_store import store_calibration
from evidex.retrieval.certainty.captions import MOST_SELF_QUERIES, one_caption_each
from evidex.retrieval.certainty.common_questions import COMMON_QUESTIONS
from evidex.retrieval.certainty.learned_score import LEARNED
from evidex.retrieval.certainty.scores import DEFAULT_SCORE, score_named
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.scan.partial import ScanResult, merge_results

_COPY = 1 - 1e-4  # cosine of two rows that show the same picture
_ROWS_AT_ONCE = 4096


def self_calibrate(gallery: Gallery, rng: np.random.Generator, *, score: str | None = None) -> list[CalibrationOutcome]:
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
    known = [KnownQuery(text, frozenset([row_id])) for row_id, text in one_caption_each(captioned, rng)]
    known += [KnownQuery(text) for text in COMMON_QUESTIONS]
    source = ("captions of the gallery and " if captioned else "") + "common questions about overhead imagery"
    with suppress(NothingAnswerable):
        outcome = calibrate(gallery, known, "text", score=score, rng=rng, among="images", by_itself=True)
        outcomes.append(replace(outcome, source=source))
    if len(pictures) > LEAST_QUERIES:
        sample = np.sort(rng.permutation(pictures)[:MOST_SELF_QUERIES])
        named = DEFAULT_SCORE if score in (None, LEARNED) else score
        values = _scores_among_others(gallery, sample, np.array(pictures), named)
        values = values[np.isfinite(values)]  # not so where all others are copies
        if len(values) > LEAST_QUERIES:
            calibration = Calibration(gallery.info.model_fingerprint, "image", len(pictures) - 1, named, values)
            store_calibration(gallery, calibration, "images", by_itself=True)
            outcomes.append(CalibrationOutcome(calibration, "images", 0, "images of the gallery"))
    return outcomes


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
