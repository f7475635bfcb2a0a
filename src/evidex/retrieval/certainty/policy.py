"""What is done about a query by where it stands among those of a calibration: answer, ask again, or abstain."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evidex.retrieval.certainty.calibration import Calibration
from evidex.retrieval.certainty.gate import Gate
from evidex.retrieval.certainty.guarantee import Guarantee
from evidex.retrieval.certainty.scores import score_named
from evidex.retrieval.certainty.signals import FIRST, Vectors
from evidex.retrieval.scan.partial import ScanResult

ABSTAIN_RATIO = 0.02
_LIKE_SIZE = 1.25


@dataclass(frozen=True)
class Judged:
    """One query beside those of the calibration."""

    percentile: float
    """Share of the calibration's queries that were more certain."""
    unsure: bool
    """Whether it is to be asked again."""
    unsupported: bool
    """Whether the calibration says to refuse it."""
    chance: float | None = None
    """That a right row is among the first ``chance_top`` of the first ranking; None where not learned."""
    chance_top: int | None = None
    unpromised: bool = False
    """Whether it is refused for a guarantee alone: as well supported as most, yet such answers are wrong too often."""
    lapsed: bool = False
    """Whether there was a guarantee, which the rows have outlived."""


@dataclass(frozen=True)
class Policy:
    """When to refine and when to abstain, for one kind of query against one kind of row."""

    calibration: Calibration
    refine: Gate
    abstain: Gate
    refine_ratio: float
    guarantee: Guarantee | None
    """That which the threshold for abstaining comes from."""
    usual: Gate
    """The gate for abstaining if there were no guarantee."""
    given: bool = False
    """Whether somebody gave the queries; otherwise the gallery made the calibration of its own content."""
    lapsed: bool = False
    """Whether a guarantee was left out, as it is of other rows."""

    @classmethod
    def of(cls, calibration: Calibration, refine_ratio: float, abstain_ratio: float, *, given: bool = False) -> Policy:
        """A guaranteed threshold decides about abstaining where there is one, otherwise the ratio does."""
        refine, kept = calibration.gate(refine_ratio), None
        # Of few queries that somebody thought of none is among the last 2 % of what is asked, and they are easy ones.
        tells_last = not given or abstain_ratio * len(calibration.scores) >= 1 or abstain_ratio == 0
        usual = abstain = calibration.gate(abstain_ratio) if tells_last else Gate(np.inf)
        for guarantee in calibration.guarantees:
            if guarantee.threshold is not None:
                abstain, kept = Gate(guarantee.threshold), guarantee
                break
        return cls(calibration, refine, abstain, refine_ratio, kept, usual, given)

    def of_rows(self, count: int) -> Policy:
        """The same for a gallery that holds ``count`` rows of this kind.

        A guarantee that was made of more or fewer is promised no more, so nothing is refused for its sake either.
        """
        if self.guarantee is None or self.guarantee.gallery_size == count:
            return self
        return replace(self, abstain=self.usual, guarantee=None, lapsed=True)

    @property
    def looks_at_rows(self) -> bool:
        """Whether the score asks for the vectors of the best rows."""
        return self.calibration.learned_score is not None

    @property
    def least_top(self) -> int:
        """How many rows a scan must give for the score."""
        return 1 if self.calibration.learned_score is None else FIRST

    def score(self, result: ScanResult, queries: Vectors, gallery: Vectors) -> NDArray[np.float64]:
        """Of ``queries`` (queries, dim) whose scan over rows of ``gallery`` (rows, dim) gave ``result``."""
        learned_score = self.calibration.learned_score
        if learned_score is None:
            return score_named(self.calibration.score)(result)
        return learned_score.doubt(result, queries, gallery)

    def chances(self, scores: NDArray[np.float64], *, searched: int) -> NDArray[np.float64] | None:
        """The probability that an answer with such a score is right, among ``searched`` rows.

        None where it was not learned, and where far more or fewer rows were searched: the order of queries survives
        that, but among fewer rows more answers are right.
        """
        learned_score, size = self.calibration.learned_score, self.calibration.gallery_size
        if learned_score is None or not size / _LIKE_SIZE <= searched <= size * _LIKE_SIZE:
            return None
        return learned_score.chances(scores)

    @property
    def chance_top(self) -> int | None:
        """Among how many hits a right row counted when the chances were learned."""
        return None if self.calibration.learned_score is None else self.calibration.learned_score.top

    def guaranteed(self, *, top: int, searched: int) -> str | None:
        """What is guaranteed of a search for ``top`` hits among ``searched`` rows, none of them filtered out."""
        guarantee = self.guarantee
        if guarantee is None or not guarantee.holds_for(top=top, refine_ratio=self.refine_ratio, gallery_size=searched):
            return None
        return guarantee.describe()

    def judge(self, seen: ScanResult, queries: Vectors, gallery: Vectors) -> list[Judged]:
        """Each of ``queries`` (queries, dim) whose scan over rows of ``gallery`` (rows, dim) gave ``seen``."""
        scores = self.score(seen, queries, gallery)
        percentiles = self.calibration.percentile(scores)
        unsure, unsupported = self.refine.defers(scores), self.abstain.defers(scores)
        unpromised = unsupported & ~self.usual.defers(scores)
        chances = self.chances(scores, searched=seen.count)
        return [
            Judged(
                float(percentiles[i]),
                bool(unsure[i]),
                bool(unsupported[i]),
                None if chances is None else float(chances[i]),
                None if chances is None else self.chance_top,
                unpromised=bool(unpromised[i]),
                lapsed=self.lapsed,
            )
            for i in range(len(seen))
        ]
