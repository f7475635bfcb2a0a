"""Differences to a base: what comes back is a plain float64 sum of base and directions, bit for bit the same."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from evidex.weights.differences import Difference, applied, difference, directions


def _pair(shape: tuple[int, ...], spread: float, rank: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """A base, and what training made of it: shrunk, moved along a few directions, and a little everywhere."""
    rng = np.random.default_rng(len(shape))
    base = (0.05 * rng.standard_normal(shape)).astype(np.float16)
    rows, columns = shape[0], int(np.prod(shape[1:]))
    moved = rng.standard_normal((rows, rank)) @ rng.standard_normal((rank, columns)) / rank**0.5
    moved += 0.1 * rng.standard_normal((rows, columns))
    return (base.astype(np.float64) * 0.997 + spread * moved.reshape(shape)).astype(np.float32), base


def _lost(tuned: np.ndarray, base: np.ndarray, share: float) -> float:
    """The part of the difference that does not come back, in squares."""
    changed = tuned - base.astype(np.float64)
    again = applied(difference(directions(tuned, base), share), base)
    return float(np.square(again - tuned).sum() / np.square(changed).sum())


@pytest.mark.parametrize("shape", [(40, 30), (30, 40), (8, 3, 4, 4)])
@pytest.mark.parametrize("spread", [1e-4, 0.003, 0.1, 30.0])
def test_what_comes_back_is_the_base_and_the_written_directions(shape: tuple[int, ...], spread: float) -> None:
    tuned, base = _pair(shape, spread)
    found = difference(directions(tuned, base), 0.01)
    again = applied(found, base)
    assert again.shape == shape

    numbers = np.frombuffer(zlib.decompress(found.coded), np.int8)
    rows, columns = shape[0], base.size // shape[0]
    count = numbers.size // (1 + rows + columns)
    naive = found.factor * base.astype(np.float64).reshape(rows, columns)
    for i in range(count):
        left = numbers[count + i * rows : count + (i + 1) * rows].astype(np.float64)
        begin = count * (1 + rows) + i * columns
        right = numbers[begin : begin + columns].astype(np.float64)
        naive += found.scale * 2.0 ** -float(numbers[i]) * np.outer(left, right)
    np.testing.assert_allclose(again.reshape(rows, columns), naive, rtol=1e-12, atol=1e-12)


def test_the_finer_the_steps_the_less_is_lost_and_the_larger_it_is() -> None:
    tuned, base = _pair((120, 80), 0.003)
    shares = (0.05, 0.02, 0.005, 0.001)
    lost = [_lost(tuned, base, share) for share in shares]
    sizes = [len(difference(directions(tuned, base), share).coded) for share in shares]
    assert lost == sorted(lost, reverse=True)
    assert sizes == sorted(sizes)
    assert lost[0] < 0.1
    assert lost[-1] < 1e-3


def test_a_few_directions_take_few_bits() -> None:
    tuned, base = _pair((400, 300), 0.003)
    assert _lost(tuned, base, 0.03) < 0.05
    assert len(difference(directions(tuned, base), 0.03).coded) < base.size / 8


def test_the_sum_does_not_depend_on_the_order_in_which_a_machine_adds() -> None:
    tuned, base = _pair((60, 50), 0.02, rank=20)
    found = difference(directions(tuned, base), 0.002)
    numbers = np.frombuffer(zlib.decompress(found.coded), np.int8).astype(np.float64)
    count = numbers.size // 111
    left = numbers[count : count * 61].reshape(count, 60)
    right = numbers[count * 61 :].reshape(count, 50)
    weighted = left.T * 2.0 ** -numbers[:count]
    order = np.random.default_rng(0).permutation(count)
    assert count > 20
    np.testing.assert_array_equal(weighted @ right, weighted[:, order] @ right[order])


def test_a_matrix_that_training_only_shrank_takes_next_to_nothing() -> None:
    _, base = _pair((200, 384), 0.0)
    shrunk = 0.99 * base.astype(np.float64)
    found = difference(directions(shrunk, base), 0.03)
    assert found.factor == pytest.approx(0.99, abs=1e-6)
    assert len(found.coded) < 20
    np.testing.assert_allclose(applied(found, base), shrunk, atol=1e-7)


def test_a_base_of_zeros_and_no_difference_are_kept() -> None:
    zeros = np.zeros((3, 4), np.float16)
    np.testing.assert_array_equal(applied(difference(directions(zeros, zeros), 0.03), zeros), zeros)
    ones = np.ones((3, 4), np.float32)
    np.testing.assert_allclose(applied(difference(directions(ones, zeros), 0.03), zeros), ones, rtol=0.02)


def test_a_damaged_or_foreign_difference_is_refused() -> None:
    tuned, base = _pair((40, 30), 0.01)
    found = difference(directions(tuned, base), 0.01)
    with pytest.raises(ValueError, match="none to a matrix of 37 × 30"):
        applied(found, base[:37])
    with pytest.raises(ValueError, match="damaged"):
        applied(Difference(found.factor, found.scale, found.coded[:-3]), base)
