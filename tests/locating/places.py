"""Rendered scenes whose contents are known, for the tests of locating."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evidex.encoders.model import Model, load_model
from evidex.scenes.scene import render_scene
from tests.retrieval.archive import write_raster

CELL = 224
TANKS = (("forest", "forest", "desert"), ("forest", "meadow", "storagetanks"))
"""Storage tanks in the middle of the right side of the lower row."""
NO_TANKS = (("forest", "forest"), ("meadow", "forest"))


@cache
def compact() -> Model:
    return load_model("compact")


@cache
def scene(kinds: Sequence[Sequence[str]]) -> NDArray[np.uint8]:
    """(3, height, width): pictures of these kinds side by side."""
    rows = [
        np.concatenate(
            [render_scene(kind, np.random.default_rng([3 * y, x]), CELL).image for x, kind in enumerate(row)], axis=1
        )
        for y, row in enumerate(kinds)
    ]
    return np.ascontiguousarray(np.concatenate(rows).transpose(2, 0, 1))


def write_scene(path: Path, kinds: Sequence[Sequence[str]] = TANKS) -> Path:
    """As a GeoTIFF in UTM zone 33 north with pixels of 10 m."""
    return write_raster(path, scene(kinds))


def in_tanks(x: float, y: float) -> bool:
    return 2 * CELL <= x < 3 * CELL and CELL <= y < 2 * CELL
