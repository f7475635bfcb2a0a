"""What a gallery holds, in a few numbers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import get_args

from evidex.retrieval.certainty.calibration_store import load_policy
from evidex.retrieval.certainty.policy import ABSTAIN_RATIO, Policy
from evidex.retrieval.counts import Counts
from evidex.retrieval.filters import Target
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.queries import LONGEST_TEXT, Direction
from evidex.retrieval.refine import REFINE_RATIO
from evidex.server.schemas import CalibrationOut, GalleryOut, LimitsOut
from evidex.server.settings import Settings


def overview(gallery: Gallery, counts: Counts, settings: Settings) -> GalleryOut:
    """What is in the gallery, whose rows are counted already, and what the server allows."""
    return GalleryOut(
        rows=counts.rows,
        version=gallery.version,
        kinds=dict(counts.kinds),
        georeferenced=counts.georeferenced,
        dated=counts.dated,
        bounds=counts.bounds,
        first=counts.first,
        last=counts.last,
        model=gallery.info.model,
        model_fingerprint=gallery.info.model_fingerprint,
        dim=gallery.dim,
        marks=settings.takes_marks and isinstance(gallery.place, Path) and os.access(gallery.place, os.W_OK | os.X_OK),
        calibrations=_calibrations(gallery, counts, settings.max_top),
        limits=LimitsOut(
            top=settings.max_top,
            batch=settings.largest_batch,
            text=LONGEST_TEXT,
            body_bytes=settings.max_body_bytes,
            pixels=settings.max_pixels,
        ),
    )


def _calibrations(gallery: Gallery, counts: Counts, max_top: int) -> list[CalibrationOut]:
    found = []
    texts = counts.kinds.get("text", 0)
    rows: dict[Target, int] = {"images": counts.rows - texts, "texts": texts}
    for direction in get_args(Direction):
        for target in get_args(Target):
            policy = load_policy(gallery, direction, target, REFINE_RATIO, ABSTAIN_RATIO)
            if policy is not None:
                policy = policy.of_rows(rows[target])  # as answers are judged
                guarantee = policy.guaranteed(top=max_top, searched=rows[target])
                found.append(_calibration(policy, direction, target, guarantee))
    return found


def _calibration(policy: Policy, direction: Direction, target: Target, guarantee: str | None) -> CalibrationOut:
    marks = policy.calibration.percentile([policy.refine.threshold, policy.abstain.threshold])
    return CalibrationOut(
        direction=direction,
        among=target,
        queries=len(policy.calibration.scores),
        score=policy.calibration.score,
        refine_above=float(marks[0]),
        abstain_above=float(marks[1]),
        guarantee=guarantee,
    )
