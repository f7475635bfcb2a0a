"""What the learned score is worth, measured on queries it has not learned from.

The images of a split are divided into two halves. Queries of one half teach, queries of the other are judged, and the
other way round; captions of one image are never on both sides. The gallery is the whole split throughout, as in use.
The division is repeated with several seeds, and the mean over all halves is reported, with its spread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evidex.evaluation.result import ScoreQuality
from evidex.evaluation.selective import auroc, selective
from evidex.retrieval.certainty.learned_score import Known, LearnedScore, fit_learned_score, halves
from evidex.retrieval.certainty.signals import FIRST
from evidex.retrieval.scan.partial import ScanResult

Vectors = NDArray[np.float32]
Numbers = NDArray[np.float64]
Mask = NDArray[np.bool_]
Labels = Sequence[str | None]

LEARNED_CUTOFF = 10
SEEDS = (0, 1, 2)
_ROWS_AT_ONCE = 512


@dataclass(frozen=True, eq=False)
class Fold:
    """A learned score, and the queries that it may be judged by."""

    learned_score: LearnedScore
    judged: Mask


@dataclass(frozen=True, eq=False)
class DirectionQueries:
    """One direction of a split: queries, the gallery they are asked of and how similar they are."""

    similarity: NDArray[Any]
    """(queries, gallery)"""
    queries: Vectors
    gallery: Vectors
    groups: NDArray[np.int64]
    """(queries,) the image that each query is, or belongs to."""
    temperature: float


def learned_quality(
    asked: DirectionQueries,
    hits: Mapping[int, Numbers],
    *,
    degraded: Mask | None = None,
    labels: tuple[Labels, Labels] | None = None,
    out_of_domain: Vectors | None = None,
) -> ScoreQuality | None:
    """The worth of the learned score, beside that of the others; None where a half does not hold enough to learn from.

    ``hits`` are chances of a right answer by cutoff, NaN for a query without any; ``labels`` of queries and gallery.
    """
    found = scan_of(asked.similarity, asked.temperature)
    known = Known(found, asked.queries, hits[LEARNED_CUTOFF], asked.groups)
    folds = cross_fit(known, asked.gallery)
    if not folds:
        return None
    gone = None if labels is None else _without_class(asked, *labels)
    outside = None if out_of_domain is None else scan_of(out_of_domain @ asked.gallery.T, asked.temperature)
    columns: dict[str, list[float]] = {}
    for fold in folds:
        doubt = fold.learned_score.doubt(found, asked.queries, asked.gallery)
        own = doubt[fold.judged]
        for k, hit in hits.items():
            error = selective(own, hit[fold.judged])
            columns.setdefault(f"auroc {k}", []).append(error.auroc)
            columns.setdefault(f"aurc {k}", []).append(error.aurc)
        if degraded is not None:
            seen = auroc(doubt[fold.judged & degraded], doubt[fold.judged & ~degraded])
            columns.setdefault("degraded", []).append(seen)
        if gone is not None:
            without, usable = gone
            used = fold.judged & usable
            absent = fold.learned_score.doubt(without, asked.queries, asked.gallery)
            columns.setdefault("removed", []).append(auroc(absent[used], doubt[used]))
        if outside is not None and out_of_domain is not None:
            other = fold.learned_score.doubt(outside, out_of_domain, asked.gallery)
            columns.setdefault("out_of_domain", []).append(auroc(other, own))
    mean = {name: float(np.mean(values)) for name, values in columns.items()}
    return ScoreQuality(
        error_auroc={k: mean[f"auroc {k}"] for k in hits},
        aurc={k: mean[f"aurc {k}"] for k in hits},
        degraded_auroc=mean.get("degraded"),
        removed_class_auroc=mean.get("removed"),
        out_of_domain_auroc=mean.get("out_of_domain"),
        error_auroc_spread={k: float(np.std(columns[f"auroc {k}"])) for k in hits},
    )


def cross_fit(known: Known, gallery: Vectors, seeds: Sequence[int] = SEEDS) -> list[Fold]:
    """A fold for each half and seed; none at all where one of them could not be learned. Unknown answers are NaN."""
    answered = ~np.isnan(known.right)
    middle = gallery.mean(axis=0, dtype=np.float64).astype(np.float32)
    folds = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        half = halves(known.groups, rng)
        for side in (half, ~half):
            taught, judged = known.part(side & answered), ~side & answered
            if not (taught.teaches and known.part(judged).teaches):
                return []
            folds.append(Fold(fit_learned_score(taught, gallery, middle, rng), judged))
    return folds


def scan_of(similarity: NDArray[Any], temperature: float) -> ScanResult:
    """What a scan would give of queries whose similarities (queries, gallery) are known; -inf marks rows left out."""
    ids, best, total = [], [], []
    first = min(FIRST, similarity.shape[1])
    for start in range(0, len(similarity), _ROWS_AT_ONCE):
        block = similarity[start : start + _ROWS_AT_ONCE].astype(np.float64)
        order = np.argsort(-block, axis=1, kind="stable")[:, :first]
        scores = np.take_along_axis(block, order, axis=1)
        top = scores[:, :1]
        ids.append(order)
        best.append(scores)
        total.append(np.log(np.exp((block - top) / temperature).sum(axis=1)) + top[:, 0] / temperature)
    return ScanResult(
        np.concatenate(ids), np.concatenate(best), np.concatenate(total), similarity.shape[1], temperature
    )


def _without_class(asked: DirectionQueries, query_labels: Labels, gallery_labels: Labels) -> tuple[ScanResult, Mask]:
    """Every query asked of the gallery without its own class, and which queries that makes sense for."""
    wanted, held = np.array(query_labels, dtype=object), np.array(gallery_labels, dtype=object)
    same = wanted[:, None] == held[None, :]
    left = (~same).sum(axis=1)
    usable = np.array([label is not None for label in query_labels]) & same.any(axis=1) & (left >= FIRST)
    similarity = np.where(same & usable[:, None], -np.inf, asked.similarity)
    found = scan_of(similarity, asked.temperature)
    # The mean evidence is that of the rows that are left.
    size = similarity.shape[1]
    total = found.log_sum_exp + np.log(size) - np.log(np.where(usable, left, size))
    return ScanResult(found.ids, found.scores, total, found.count, found.temperature), usable
