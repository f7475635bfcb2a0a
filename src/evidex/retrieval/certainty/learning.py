"""Learn from a gallery's known queries how likely an answer is right, and say what that is worth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evidex.retrieval.certainty.learned_score import Groups, Known, LearnedScore, fit_learned_score, halves
from evidex.retrieval.certainty.signals import Vectors
from evidex.retrieval.scan.partial import ScanResult

LEAST_KNOWN = 250
"""Fewer known queries teach an order that does not hold, and chances that are far off."""
_ROWS_AT_ONCE = 4096
_SURE = 1.645  # standard errors that a worthless score exceeds once in twenty times


@dataclass(frozen=True)
class Worth:
    """AUROC of wrong against right answers, of queries that did not teach what judges them."""

    queries: int
    learned: float
    similarity: float
    """Of the highest similarity, on the same answers."""
    error: float = 0.0
    """Standard error of the learned score's."""

    @property
    def helps(self) -> bool:
        """Whether it is better than the highest similarity, and than chance by more than chance makes it."""
        return self.shortfall is None

    @property
    def shortfall(self) -> str | None:
        """What it is no better than, and so not used; None where it helps."""
        if not self.learned - _SURE * self.error > 0.5:
            return f"tells wrong answers no better than chance may (AUROC {self.learned:.3f} ± {self.error:.3f})"
        if not self.learned > self.similarity:
            return f"is no better than the highest similarity (AUROC {self.learned:.3f} and {self.similarity:.3f})"
        return None

    def describe(self) -> str:
        """One sentence for people."""
        gain = self.learned - self.similarity
        return (
            f"on queries it has not learned from, the learned score tells wrong answers from right ones at AUROC "
            f"{self.learned:.3f}, {abs(gain):.3f} {'better' if gain >= 0 else 'worse'} than the highest similarity "
            f"({self.similarity:.3f}; {self.queries} queries)"
        )


@dataclass(frozen=True, eq=False)
class Lesson:
    """What was learned from one half of the known queries."""

    learned_score: LearnedScore
    taught: NDArray[np.bool_]
    """(known queries,) those it was learned from: no honest judge of it."""
    worth: Worth | None

    @property
    def helps(self) -> bool:
        """Whether it tells wrong answers well enough (`Worth.helps`), as far as there are queries to tell by."""
        return self.worth is None or self.worth.helps


def learn(known: Known, gallery: Vectors, middle: Vectors, rng: np.random.Generator, *, top: int) -> Lesson | None:
    """Learn from one half of ``known`` and leave the other for judging; None if a half holds too little to learn from.

    Thresholds and guarantees that are found on the other half are then about a score that did not learn from it.
    Whether the score is used at all (`Lesson.helps`) is decided by both halves: a choice of two that no guarantee
    corrects for.
    """
    half = halves(known.groups, rng)
    if len(half) < LEAST_KNOWN or not (known.part(half).teaches and known.part(~half).teaches):
        return None
    lessons = [fit_learned_score(known.part(taught), gallery, middle, rng, top=top) for taught in (half, ~half)]
    judges = known.part(~half), known.part(half)
    parts = [_worth_of(each, judged, gallery) for each, judged in zip(lessons, judges, strict=True)]
    told = np.array([(each.learned, each.similarity, each.error) for each in parts])
    learned, plain = told[:, :2].mean(axis=0).tolist()
    error = float(np.linalg.norm(told[:, 2])) / len(told)
    return Lesson(lessons[0], half, Worth(len(half), learned, plain, error))


def worth_of(learned_score: LearnedScore, judged: Known, gallery: Vectors) -> Worth | None:
    """Of what was learned elsewhere, on known queries; None where these were all right or all wrong."""
    if not 0 < judged.right.sum() < len(judged.right):
        return None
    return _worth_of(learned_score, judged, gallery)


def _worth_of(learned_score: LearnedScore, judged: Known, gallery: Vectors) -> Worth:
    from evidex.evaluation.selective import auroc_error, selective

    doubt = learned_score.doubt(judged.result, judged.queries, gallery)
    similarity = selective(-judged.result.scores[:, 0], judged.right).auroc
    error = auroc_error(doubt, judged.right, judged.groups)
    return Worth(len(judged.right), selective(doubt, judged.right).auroc, similarity, error)


def known_of(first: ScanResult, queries: Vectors, answers: Mapping[int, set[int]], top: int) -> Known:
    """The queries with known ``answers`` (rows by query), right if one of them is among the ``top`` first found."""
    places = np.array(sorted(answers), dtype=np.int64)
    right = [not answers[i].isdisjoint(first.ids[i, :top].tolist()) for i in places.tolist()]
    every = Known(first, queries, np.zeros(len(first)), np.zeros(len(first), np.int64))
    chosen = np.zeros(len(first), np.bool_)
    chosen[places] = True
    part = every.part(chosen)
    groups = group_by_answer([answers[i] for i in places.tolist()])
    return Known(part.result, part.queries, np.array(right, np.float64), groups)


def group_by_answer(answers: list[set[int]]) -> Groups:
    """Equal numbers for queries that share a row, directly or through others."""
    parent = list(range(len(answers)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    owner: dict[int, int] = {}
    for i, rows in enumerate(answers):
        for row in rows:
            parent[root(i)] = root(owner.setdefault(row, i))
    return np.array([root(i) for i in range(len(answers))], dtype=np.int64)


def middle_of(gallery: Vectors, rows: NDArray[np.bool_] | None) -> Vectors:
    """Mean of the selected rows, a few thousand of them in memory at a time."""
    total, count = np.zeros(gallery.shape[1]), 0
    for start in range(0, len(gallery), _ROWS_AT_ONCE):
        block = gallery[start : start + _ROWS_AT_ONCE]
        if rows is not None:
            block = block[rows[start : start + _ROWS_AT_ONCE]]
        total += block.sum(axis=0, dtype=np.float64)
        count += len(block)
    return np.asarray(total / max(count, 1), np.float32)
