"""The places that stand out: in order, apart, and none where nothing does."""

from __future__ import annotations

import numpy as np

from evidex.data.footprints import Window
from evidex.locating.heat import Heat
from evidex.locating.peaks import spots_of


def _hill(row: int, column: int, height: float, shape: tuple[int, int] = (20, 30)) -> np.ndarray:
    rows, columns = np.indices(shape)
    return np.asarray(height * np.exp(-((rows - row) ** 2 + (columns - column) ** 2) / 4.0), np.float32)


def test_hills_are_found_the_highest_first_with_how_far_they_reach() -> None:
    heat = Heat(_hill(4, 5, 0.6) + _hill(14, 22, 0.9), 8, 240, 160)
    first, second = spots_of(heat, least=0.1, apart=32, most=10)
    assert (first.x, first.y) == (22.5 * 8, 14.5 * 8)
    assert (second.x, second.y) == (5.5 * 8, 4.5 * 8)
    assert abs(first.score - 0.9) < 0.01
    assert first.box == Window(21 * 8, 13 * 8, 3 * 8, 3 * 8)


def test_what_is_low_or_near_a_higher_one_or_too_many_is_left_out() -> None:
    low = Heat(_hill(4, 5, 0.2) + _hill(14, 22, 0.9), 8, 240, 160)
    assert len(spots_of(low, least=0.1, apart=32, most=10)) == 1  # less than half of the best
    near = Heat(np.maximum(_hill(10, 10, 0.9), _hill(10, 16, 0.8)), 8, 240, 160)
    assert len(spots_of(near, least=0.1, apart=64, most=10)) == 1
    assert len(spots_of(near, least=0.1, apart=16, most=10)) == 2
    assert len(spots_of(near, least=0.1, apart=16, most=1)) == 1
    assert spots_of(near, least=0.95, apart=16, most=10) == []


def test_a_map_that_is_flat_or_was_not_seen_has_no_places() -> None:
    for value in (0.0, np.nan):
        assert spots_of(Heat(np.full((4, 4), value, np.float32), 8, 32, 32), least=0.0, apart=8, most=5) == []


def test_level_ground_has_its_place_in_the_middle() -> None:
    values = np.zeros((20, 20), np.float32)
    values[0:9, 2:7] = 0.5
    values[8, 2] += 1e-6  # rounding, which makes no place
    (spot,) = spots_of(Heat(values, 8, 160, 160), least=0.1, apart=8, most=5)
    assert (spot.x, spot.y) == (4.5 * 8, 4.5 * 8)


def test_a_place_at_the_edge_lies_inside_the_scene() -> None:
    values = np.zeros((3, 3), np.float32)
    values[2, 2] = 0.5
    (spot,) = spots_of(Heat(values, 8, 17, 18), least=0.1, apart=8, most=5)
    assert spot.x < 17
    assert spot.y < 18
    assert spot.box == Window(16, 16, 1, 2)
