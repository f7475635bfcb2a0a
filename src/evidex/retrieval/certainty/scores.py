"""The numbers a gate may judge a query by; higher means less sure throughout."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from evidex.errors import InputError
from evidex.retrieval.certainty.learned_score import LEARNED
from evidex.retrieval.scan.partial import Partial, ScanResult

Score = Callable[[Partial | ScanResult], NDArray[np.float64]]


def certainty_lost(result: Partial | ScanResult) -> NDArray[np.float64]:
    """-m, the negative log of the mean evidence: u on the scale of a log-odds, whatever the size of the gallery."""
    return -np.asarray(result.log_mean_evidence)


def _dissimilarity(result: Partial | ScanResult) -> NDArray[np.float64]:
    return -np.asarray(result.scores)[..., 0]


def _disbelief(result: Partial | ScanResult) -> NDArray[np.float64]:
    return 1.0 - np.asarray(result.best_belief)


# vacuity: the paper's u, as a log-odds; similarity: the best cosine; belief: 1 - α_max/S.
SCORES: dict[str, Score] = {"vacuity": certainty_lost, "similarity": _dissimilarity, "belief": _disbelief}
DEFAULT_SCORE = "vacuity"


def score_named(name: str) -> Score:
    """A score that a scan alone gives; that which is learned needs a calibration (`Policy.score`)."""
    if name == LEARNED:
        raise InputError(f"score '{name}' must be learned from queries with known answers; calibrate with such queries")
    if name not in SCORES:
        raise InputError(f"score '{name}' is unknown; use one of {', '.join([LEARNED, *SCORES])}")
    return SCORES[name]
