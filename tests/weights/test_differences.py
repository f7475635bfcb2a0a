"""Differences to a base: what comes back is base and difference, within half a step, and bit for bit the same."""

from __future__ import annotations

import numpy as np
import pytest

from evidex.weights.differences import Difference, applied, difference


def _pair(shape: tuple[int, ...], spread: float, dtype: type = np.float32) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(len(shape))
    base = (0.05 * rng.standard_normal(shape)).astype(np.float16)
    return (base.astype(np.float64) * 0.997 + spread * rng.standard_normal(shape)).astype(dtype), base


@pytest.mark.parametrize("shape", [(40, 30), (8, 3, 4, 4)])
@pytest.mark.parametrize("spread", [0.0, 1e-4, 0.02, 3.0])
def test_what_comes_back_is_within_half_a_step_of_a_plain_float64_sum(shape: tuple[int, ...], spread: float) -> None:
    tuned, base = _pair(shape, spread)
    found = difference(tuned, base, 0.04)
    again = applied(found, base)
    assert again.dtype == np.float32
    np.testing.assert_allclose(again, tuned, atol=0.5001 * found.step + 1e-6, rtol=0)

    multiples = np.rint((tuned.astype(np.float64) - found.factor * base.astype(np.float64)) / found.step)
    naive = found.factor * base.astype(np.float64) + found.step * multiples
    np.testing.assert_allclose(again, naive, atol=1e-6 * max(1.0, spread), rtol=1e-6)


def test_a_matrix_that_training_only_shrank_takes_next_to_nothing() -> None:
    _, base = _pair((200, 384), 0.0)
    found = difference((0.99 * base.astype(np.float32)).astype(np.float32), base, 0.04)
    assert found.factor == pytest.approx(0.99, abs=1e-6)
    assert len(found.coded) < base.size / 100


def test_small_changes_take_about_two_bits_a_number() -> None:
    tuned, base = _pair((400, 300), 0.002)
    assert len(difference(tuned, base, 0.04).coded) < 2.5 * base.size / 8


def test_a_base_of_zeros_and_a_difference_of_none_are_kept() -> None:
    zeros = np.zeros((3, 4), np.float16)
    np.testing.assert_array_equal(applied(difference(zeros, zeros, 0.04), zeros), zeros)
    ones = np.ones((3, 4), np.float32)
    np.testing.assert_allclose(applied(difference(ones, zeros, 0.04), zeros), ones, rtol=1e-5)


def test_a_damaged_or_foreign_difference_is_refused() -> None:
    tuned, base = _pair((4, 5), 0.01)
    found = difference(tuned, base, 0.04)
    with pytest.raises(ValueError, match="20 numbers, its base of 10"):
        applied(found, base[:2])
    with pytest.raises(ValueError, match="damaged"):
        applied(Difference(found.factor, found.step, found.coded[:-3]), base)
