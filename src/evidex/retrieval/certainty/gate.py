"""Which queries are answered at once and which are deferred.

A gate sees one number a query, higher for less certain, and does not mind which. Three ways to set it: the most
uncertain share of a batch (`evidex.retrieval.refine.deferred`, as in the paper), a threshold from stored calibration
queries (`Calibration.gate`), or a threshold with a guarantee (`evidex.retrieval.certainty.guarantee`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Gate:
    """Defers a query whose score is above the threshold."""

    threshold: float

    def defers(self, scores: ArrayLike) -> NDArray[np.bool_]:
        """For each score; one that is NaN is deferred too."""
        return ~(np.asarray(scores, np.float64) <= self.threshold)
