"""The indicators of semantic localisation, held against values worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evidex.data.footprints import Window
from evidex.evaluation.localisation import localisation

TRUTH = Window(40, 20, 30, 40)  # centre (55, 40), half diagonal 25, circle of 37.5
CIRCLE = 37.5


def _attention(inside: float, outside: float) -> np.ndarray:
    values = np.full((10, 10), outside, np.float32)
    values[2:6, 4:7] = inside
    return values


def test_all_attention_in_the_truth_with_one_centre_there_is_perfect() -> None:
    found = localisation(_attention(0.7, 0.0), 10, [TRUTH], [(55.0, 40.0)])
    assert found.area == pytest.approx(1.0)
    assert (found.shift, found.discreteness, found.inside, found.hit, found.distance) == (0.0, 1.0, 1.0, True, 0.0)
    assert found.mean == pytest.approx(1.0)


def test_all_attention_in_the_truth_is_perfect_however_it_rounds() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        attention = np.zeros((60, 60), np.float32)
        attention[20:44, 20:44] = rng.random((24, 24))
        found = localisation(attention, 16, [Window(320, 320, 384, 384)], [(512.0, 512.0)])
        assert found.area == pytest.approx(1.0)
        assert found.inside == 1.0


def test_the_area_weighs_attention_by_the_room_there_is() -> None:
    """Even attention: inside over outside is 12/88, times 88/12."""
    even = localisation(_attention(0.3, 0.3), 10, [TRUTH], [])
    assert even.area == pytest.approx(1 - math.exp(-0.707), abs=1e-4)
    assert even.inside == pytest.approx(0.12)
    twice = localisation(_attention(0.6, 0.3), 10, [TRUTH], [])
    assert twice.area == pytest.approx(1 - math.exp(-0.707 * 2), abs=1e-4)


def test_the_shift_is_the_mean_distance_in_the_circle_made_steep() -> None:
    even = _attention(0.5, 0.1)
    found = localisation(even, 10, [TRUTH], [(55.0, 40.0 + CIRCLE / 2), (500.0, 500.0)])
    assert found.shift == pytest.approx((math.exp(1.5) - 1) / (math.exp(3) - 1))
    assert found.hit  # (55, 58.75) lies in the truth
    assert found.distance == pytest.approx(CIRCLE / 2 / math.sqrt(1200))
    assert localisation(even, 10, [TRUTH], [(500.0, 500.0)]).shift == pytest.approx(1.0)
    assert localisation(even, 10, [TRUTH], []).shift == pytest.approx(1.0)
    two = localisation(even, 10, [TRUTH, Window(0, 90, 10, 10)], [(55.0, 40.0)])
    assert two.shift == pytest.approx((math.exp(1.5) - 1) / (math.exp(3) - 1))  # one met, one missed


def test_attention_that_falls_apart_costs() -> None:
    even = _attention(0.5, 0.1)
    assert localisation(even, 10, [TRUTH], []).discreteness == 0.0
    apart = localisation(even, 10, [TRUTH], [(45.0, 40.0), (65.0, 40.0)])
    assert apart.discreteness == pytest.approx(0.5 * (1 - 10 / CIRCLE) + math.exp(-0.5 * 4))
    assert localisation(even, 10, [TRUTH, Window(0, 90, 10, 10)], [(55.0, 40.0)]).discreteness == 0.5


def test_the_mean_is_the_papers_weighting_and_a_flat_map_has_nothing() -> None:
    found = localisation(_attention(0.6, 0.3), 10, [TRUTH], [(45.0, 40.0), (65.0, 40.0)])
    assert found.mean == pytest.approx(0.4 * found.area + 0.35 * (1 - found.shift) + 0.25 * found.discreteness)
    flat = localisation(_attention(0.0, 0.0), 10, [TRUTH], [])
    assert flat.mean == pytest.approx(0.0)
    assert (flat.inside, flat.hit, flat.distance) == (0.0, False, None)
