"""The blended map, held against its definition written out pixel by pixel."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evidex.data.footprints import Window
from evidex.locating.heat import Blend, Heat
from evidex.locating.windows import Scale, scales_of


def _naive(scales: list[Scale], likeness: dict[tuple[int, Window], float], x: float, y: float) -> float:
    """The mean over sizes of the weighted mean of the windows over one point; NaN where there are none."""
    means = []
    for scale in scales:
        top = bottom = 0.0
        for window in scale:
            across, down = (x - window.x) / window.width, (y - window.y) / window.height
            if (scale.size, window) in likeness and 0 <= across < 1 and 0 <= down < 1:
                weight = math.prod(max(math.sin(math.pi * share) ** 2, 1e-3) for share in (across, down))
                top += weight * likeness[scale.size, window]
                bottom += weight
        if bottom:
            means.append(top / bottom)
    return float(np.mean(means)) if means else math.nan


@pytest.mark.parametrize(("width", "height"), [(200, 150), (97, 64), (64, 64), (333, 80)])
def test_the_map_is_the_weighted_mean_of_the_windows_over_each_place(width: int, height: int) -> None:
    rng = np.random.default_rng(width)
    scales = scales_of(width, height, (64, 32))
    blend = Blend(width, height, 32)
    likeness: dict[tuple[int, Window], float] = {}
    for scale in scales:
        windows = [window for window in scale if rng.random() < 0.8]
        values = rng.random(len(windows))
        blend.add(windows, values)
        likeness |= {(scale.size, window): float(value) for window, value in zip(windows, values, strict=True)}
        blend.end_size()
    heat = blend.heat()
    whole = Blend(width, height, 32)
    for scale in scales:
        whole.add(scale, np.ones(len(scale)))
        whole.end_size()
    assert whole.heat().values == pytest.approx(np.ones(heat.values.shape))  # at the edges too
    assert heat.values.shape == (-(-height // heat.cell), -(-width // heat.cell))
    for row in range(height // heat.cell):
        for column in range(width // heat.cell):
            wanted = _naive(scales, likeness, (column + 0.5) * heat.cell, (row + 0.5) * heat.cell)
            assert heat.values[row, column] == pytest.approx(wanted, abs=1e-5, nan_ok=True)


def test_windows_that_show_nothing_alike_pull_a_place_down() -> None:
    def peak(others: float) -> float:
        blend = Blend(128, 128, 64)
        for scale in scales_of(128, 128, (64,)):
            blend.add(scale, np.array([others] * (len(scale) // 2) + [0.9] + [others] * (len(scale) // 2)))
            blend.end_size()
        return blend.heat().peak

    assert peak(0.0) < peak(0.5) < 0.9


def test_pixels_are_drawn_between_the_middles_of_cells_and_blocks_fit_together() -> None:
    values = np.random.default_rng(0).random((5, 7)).astype(np.float32)
    heat = Heat(values, 8, 53, 38)
    whole = heat.block(Window(0, 0, 53, 38))
    assert whole.dtype == np.float32
    assert whole.shape == (38, 53)
    for y, x in ((0, 0), (12, 20), (37, 52), (19, 33)):
        down, across = min(max((y + 0.5) / 8 - 0.5, 0), 4), min(max((x + 0.5) / 8 - 0.5, 0), 6)
        row, column = min(int(down), 3), min(int(across), 5)
        (a, b), (c, d) = values[row : row + 2, column : column + 2].tolist()
        up, left = down - row, across - column
        wanted = (a * (1 - left) + b * left) * (1 - up) + (c * (1 - left) + d * left) * up
        assert whole[y, x] == pytest.approx(wanted, abs=1 / 1024)
    parts = [heat.block(Window(0, 0, 20, 38)), heat.block(Window(20, 0, 33, 38))]
    assert np.array_equal(np.concatenate(parts, axis=1), whole)


def test_a_flat_map_keeps_what_was_not_seen() -> None:
    heat = Heat(np.array([[0.4, np.nan]], np.float32), 8, 16, 8)
    assert heat.peak == pytest.approx(0.4)
    assert np.array_equal(heat.flattened().values, [[0.0, np.nan]], equal_nan=True)
    assert Heat(np.full((1, 1), np.nan, np.float32), 8, 8, 8).peak == 0.0
