"""Scores of known queries against one gallery: what a new query's score is compared with.

The uncertainty u = K/S of a query depends on the gallery: S sums over its K items. Yet u = sigmoid(-m), where m =
log(S/K - 1) is the log of the *mean* evidence, and a mean keeps its size when the gallery grows by more of the same.
So a calibration holds -m (`evidex.retrieval.certainty.scores.certainty_lost`), or what was learned from it and other
signals (`evidex.retrieval.certainty.learned_score`), and says where a new query stands among the calibration queries;
it remembers the K it was made with, because a gallery of other content is another matter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evidex.errors import InputError, ModelError
from evidex.retrieval.certainty.gate import Gate
from evidex.retrieval.certainty.guarantee import Guarantee
from evidex.retrieval.certainty.learned_score import LEARNED, LearnedScore
from evidex.retrieval.queries import DIRECTIONS, Direction

Scores = NDArray[np.float64]
LEAST_QUERIES = 20
"""Fewer say nothing about what is usual."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """Scores of known queries of one kind against one gallery, with one model."""

    model_fingerprint: str
    direction: Direction
    """What the queries are."""
    gallery_size: int
    score: str
    """Name of the score, so that values of another one are not compared with these."""
    scores: Scores
    """Sorted; higher is less certain."""
    guarantees: tuple[Guarantee, ...] = ()
    learned_score: LearnedScore | None = None
    """Where the score is the learned one: what was learned."""
    domain_digest: str | None = None
    """Which texts the model knew (`Domain.digest`): others were left out. None where that was not told."""

    def __post_init__(self) -> None:
        values = np.sort(np.asarray(self.scores, np.float64))
        if values.ndim != 1 or len(values) == 0 or not np.isfinite(values).all():
            raise InputError(f"calibration scores of shape {values.shape}; give a finite number for each query")
        if self.direction not in DIRECTIONS:
            raise InputError(f"direction is {self.direction!r}; give 'text' or 'image', the kind of the queries")
        if (self.score == LEARNED) != (self.learned_score is not None):
            raise InputError(
                f"score {self.score!r} with{'out' * (self.learned_score is None)} a learned score; calibrate again"
            )
        values.flags.writeable = False
        object.__setattr__(self, "scores", values)

    def percentile(self, scores: ArrayLike) -> Scores:
        """Where new queries stand, in [0, 1]: the share of calibration queries that were more certain, ties by half."""
        values = np.asarray(scores, np.float64)
        below = np.searchsorted(self.scores, values, side="left")
        up_to = np.searchsorted(self.scores, values, side="right")
        return np.asarray((below + up_to) / (2 * len(self.scores)))

    def gate(self, ratio: float) -> Gate:
        """A gate that defers at most the share ``ratio`` of the calibration queries, and as many of them as it can."""
        if not 0 <= ratio <= 1:
            raise InputError(f"deferral ratio {ratio:g} is not between 0 and 1")
        # A product like 0.1 · 30 comes out just above its whole number.
        answered = len(self.scores) - int(np.floor(ratio * len(self.scores) + 1e-9))
        if answered == 0:
            return Gate(-np.inf)
        return Gate(float(self.scores[answered - 1]) if ratio > 0 else np.inf)

    def check(
        self, model_fingerprint: str, direction: Direction, score: str, *, domain_digest: str | None = None
    ) -> None:
        """Refuse to judge queries of another model, kind or score, or with a model that has been told other texts."""
        if model_fingerprint != self.model_fingerprint:
            raise ModelError(
                f"the calibration was made with model {self.model_fingerprint[:12]}, not {model_fingerprint[:12]};"
                " run evidex calibrate with this model"
            )
        if direction != self.direction:
            raise InputError(f"the calibration is for {self.direction} queries, not {direction}; calibrate for those")
        if score != self.score:
            raise InputError(f"the calibration holds the score {self.score!r}, not {score!r}; calibrate with {score!r}")
        if None not in (domain_digest, self.domain_digest) and domain_digest != self.domain_digest:
            raise ModelError(
                f"the calibration of {self.direction} queries was made when the model knew other texts;"
                " run evidex calibrate, and restart servers of this gallery"
            )
