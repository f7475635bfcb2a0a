"""What a gallery holds, in a few numbers."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import get_args

import numpy as np

from evidex.errors import PartError
from evidex.retrieval.certainty.calibration_store import load_policy
from evidex.retrieval.certainty.policy import ABSTAIN_RATIO, Policy
from evidex.retrieval.filters import Target
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.parts.joined import Parts
from evidex.retrieval.queries import LONGEST_TEXT, Direction
from evidex.retrieval.refine import REFINE_RATIO
from evidex.server.schemas import CalibrationOut, GalleryOut, LimitsOut
from evidex.server.settings import Settings


def overview(gallery: Gallery, settings: Settings, parts: Parts | None = None) -> GalleryOut:
    """Count rows, places and times; columns are read once a version. What lies elsewhere is asked for and added."""
    here = _overview(gallery, settings)
    if parts is None:
        return here
    try:
        others = [GalleryOut.model_validate(about) for about in parts.each(lambda part: part.about())]
    except ValueError:
        raise PartError("a part describes itself in words that are not understood; update both sides") from None
    measured = parts.calibrations.items()
    known = [_calibration(Policy.of(found, REFINE_RATIO, ABSTAIN_RATIO), *key, None) for key, found in measured]
    return _together([here, *others]).model_copy(update={"calibrations": known, "parts": len(others)})


def _together(parts: Sequence[GalleryOut]) -> GalleryOut:
    """Counts of all parts; the version and the limits stay those of the first."""
    kinds: Counter[str] = Counter()
    for part in parts:
        kinds.update(part.kinds)
    boxes = np.array([part.bounds for part in parts if part.bounds is not None])
    return parts[0].model_copy(
        update={
            "rows": sum(part.rows for part in parts),
            "kinds": dict(kinds),
            "georeferenced": sum(part.georeferenced for part in parts),
            "dated": sum(part.dated for part in parts),
            "bounds": (*boxes[:, :2].min(axis=0).tolist(), *boxes[:, 2:].max(axis=0).tolist()) if len(boxes) else None,
            "first": min((part.first for part in parts if part.first is not None), default=None),
            "last": max((part.last for part in parts if part.last is not None), default=None),
        }
    )


def _overview(gallery: Gallery, settings: Settings) -> GalleryOut:
    import pyarrow.compute as pc

    kinds = {entry["values"].as_py(): entry["counts"].as_py() for entry in gallery.column("kind").value_counts()}
    acquired = gallery.column("acquired")
    footprints = gallery.column("footprint")
    span = pc.min_max(acquired).as_py()
    return GalleryOut(
        rows=len(gallery),
        version=gallery.version,
        kinds=kinds,
        georeferenced=len(footprints) - footprints.null_count,
        dated=len(acquired) - acquired.null_count,
        bounds=_bounds(footprints.flatten().to_numpy(zero_copy_only=False)),
        first=span["min"],
        last=span["max"],
        model=gallery.info.model,
        model_fingerprint=gallery.info.model_fingerprint,
        dim=gallery.dim,
        marks=settings.takes_marks and os.access(gallery.path, os.W_OK | os.X_OK),
        calibrations=_calibrations(gallery, kinds.get("text", 0), settings.max_top),
        limits=LimitsOut(
            top=settings.max_top,
            batch=settings.largest_batch,
            text=LONGEST_TEXT,
            body_bytes=settings.max_body_bytes,
            pixels=settings.max_pixels,
        ),
    )


def _bounds(values: np.ndarray) -> tuple[float, float, float, float] | None:
    if not len(values):
        return None
    longitudes, latitudes = values[::2], values[1::2]
    return float(longitudes.min()), float(latitudes.min()), float(longitudes.max()), float(latitudes.max())


def _calibrations(gallery: Gallery, texts: int, max_top: int) -> list[CalibrationOut]:
    found = []
    rows: dict[Target, int] = {"images": len(gallery) - texts, "texts": texts}
    for direction in get_args(Direction):
        for target in get_args(Target):
            policy = load_policy(gallery, direction, target, REFINE_RATIO, ABSTAIN_RATIO)
            if policy is not None:
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
