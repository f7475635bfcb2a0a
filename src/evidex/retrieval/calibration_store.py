"""Where a gallery keeps its calibrations, and what the gates make of one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evidex.retrieval.filters import Target
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.gate import Calibration, Direction, Gate
from evidex.retrieval.guarantee import Guarantee
from evidex.retrieval.partial import Partial, ScanResult
from evidex.retrieval.scores import score_named


@dataclass(frozen=True)
class Policy:
    """When to refine and when to abstain, for one kind of query against one kind of row."""

    calibration: Calibration
    refine: Gate
    abstain: Gate
    refine_ratio: float
    guarantee: Guarantee | None
    """That which the threshold for abstaining comes from."""

    def score(self, result: Partial | ScanResult) -> NDArray[np.float64]:
        return score_named(self.calibration.score)(result)

    def promise(self, *, top: int, searched: int) -> str | None:
        """What is guaranteed of a search for ``top`` hits among ``searched`` rows, none of them filtered out."""
        guarantee = self.guarantee
        if guarantee is None or not guarantee.holds_for(top=top, refine_ratio=self.refine_ratio, gallery_size=searched):
            return None
        return guarantee.describe()


def calibration_path(gallery: Gallery, direction: Direction, target: Target, *, by_itself: bool = False) -> Path:
    """``by_itself``: that which the gallery made of its own content, used where no other is given."""
    return gallery.path / "calibration" / f"{direction}-to-{target}{'-by-itself' * by_itself}.json"


def load_policy(
    gallery: Gallery, direction: Direction, target: Target, refine_ratio: float, abstain_ratio: float
) -> Policy | None:
    """The stored calibration's gates; None if the gallery has none for such queries.

    A guaranteed threshold decides about abstaining where there is one, otherwise the ratio does.
    """
    paths = [calibration_path(gallery, direction, target, by_itself=by_itself) for by_itself in (False, True)]
    path = next((path for path in paths if path.exists()), None)
    if path is None:
        return None
    calibration = Calibration.load(path)
    calibration.check(gallery.info.model_fingerprint, direction, calibration.score)
    refine, abstain, kept = calibration.gate(refine_ratio), calibration.gate(abstain_ratio), None
    for guarantee in calibration.guarantees:
        if guarantee.threshold is not None:
            abstain, kept = Gate(guarantee.threshold), guarantee
            break
    return Policy(calibration, refine, abstain, refine_ratio, kept)
