"""What a gallery holds, in a few numbers."""

from __future__ import annotations

from typing import get_args

import numpy as np

from evidex.retrieval.certainty.calibration_store import load_policy
from evidex.retrieval.filters import Target
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.gate import Direction
from evidex.retrieval.retriever import ABSTAIN_RATIO, REFINE_RATIO
from evidex.server.schemas import CalibrationOut, GalleryOut, LimitsOut
from evidex.server.settings import Settings


def overview(gallery: Gallery, settings: Settings) -> GalleryOut:
    """Count rows, places and times; columns are read once a version."""
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
        calibrations=_calibrations(gallery, kinds.get("text", 0), settings.max_top),
        limits=LimitsOut(
            top=settings.max_top,
            batch=settings.largest_batch,
            text=settings.max_text,
            body_bytes=settings.max_body_bytes,
            pixels=settings.max_pixels,
        ),
    )


def _bounds(values: np.ndarray) -> list[float] | None:
    if not len(values):
        return None
    longitudes, latitudes = values[::2], values[1::2]
    return [float(longitudes.min()), float(latitudes.min()), float(longitudes.max()), float(latitudes.max())]


def _calibrations(gallery: Gallery, texts: int, max_top: int) -> list[CalibrationOut]:
    found = []
    rows: dict[Target, int] = {"images": len(gallery) - texts, "texts": texts}
    for direction in get_args(Direction):
        for target in get_args(Target):
            policy = load_policy(gallery, direction, target, REFINE_RATIO, ABSTAIN_RATIO)
            if policy is not None:
                marks = policy.calibration.percentile([policy.refine.threshold, policy.abstain.threshold])
                found.append(
                    CalibrationOut(
                        direction=direction,
                        among=target,
                        queries=len(policy.calibration.scores),
                        score=policy.calibration.score,
                        refine_above=float(marks[0]),
                        abstain_above=float(marks[1]),
                        promise=policy.promise(top=max_top, searched=rows[target]),
                    )
                )
    return found
