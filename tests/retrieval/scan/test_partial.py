from __future__ import annotations

from functools import reduce

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from evidex import evidence
from evidex.errors import InputError
from evidex.retrieval.scan.partial import Partial, ScanResult, empty, merge, merge_results

TEMPERATURE = 0.1


def partial_of(scores: NDArray[np.float64], ids: NDArray[np.int64], top: int) -> Partial:
    """The naive way: sort everything, sum everything."""
    order = sorted(range(len(ids)), key=lambda i: (-scores[i], ids[i]))[:top]
    total = np.logaddexp.reduce(scores / TEMPERATURE) if len(scores) else -np.inf
    return Partial(ids[order], scores[order], float(total), len(ids), TEMPERATURE)


def assert_same(a: Partial, b: Partial) -> None:
    np.testing.assert_array_equal(a.ids, b.ids)
    np.testing.assert_array_equal(a.scores, b.scores)
    assert a.count == b.count
    assert a.log_sum_exp == pytest.approx(b.log_sum_exp, rel=1e-12)


@pytest.fixture
def scores() -> NDArray[np.float64]:
    # Few distinct values: most of the head is decided by ids.
    return np.random.default_rng(3).integers(-4, 5, 60) / 5.0


def test_merging_parts_in_any_order_equals_the_whole(scores: NDArray[np.float64]) -> None:
    rng = np.random.default_rng(4)
    ids = np.arange(60)
    whole = partial_of(scores, ids, 7)
    for _ in range(20):
        groups = np.array_split(rng.permutation(60), rng.integers(1, 9))
        parts = [partial_of(scores[group], ids[group], 7) for group in groups]
        assert_same(reduce(lambda a, b: merge(a, b, 7), parts), whole)
        assert_same(reduce(lambda a, b: merge(a, b, 7), parts[::-1]), whole)


def test_equal_scores_are_ordered_by_id_whichever_part_they_come_from() -> None:
    low = partial_of(np.array([0.5, 0.5]), np.array([1, 8]), 2)
    high = partial_of(np.array([0.5, 0.5]), np.array([3, 4]), 2)
    assert merge(low, high, 3).ids.tolist() == [1, 3, 4]
    assert merge(high, low, 3).ids.tolist() == [1, 3, 4]


def test_the_empty_part_changes_nothing(scores: NDArray[np.float64]) -> None:
    part = partial_of(scores, np.arange(60), 5)
    assert_same(merge(part, empty(TEMPERATURE), 5), part)
    assert_same(merge(empty(TEMPERATURE), part, 5), part)
    nothing = merge(empty(TEMPERATURE), empty(TEMPERATURE), 5)
    assert (nothing.count, nothing.uncertainty, nothing.best_belief) == (0, 1.0, 0.0)


@pytest.mark.parametrize("temperature", [0.01, 0.1, 10.0])
def test_uncertainty_and_belief_follow_the_dirichlet(scores: NDArray[np.float64], temperature: float) -> None:
    total = float(np.logaddexp.reduce(scores / temperature))
    best = float(scores.max())
    part = Partial(np.array([0]), np.array([best]), total, len(scores), temperature)
    similarity = torch.from_numpy(scores)
    alpha = evidence.concentration(similarity, temperature)
    assert part.uncertainty == pytest.approx(float(evidence.uncertainty(similarity[None], temperature)[0]), rel=1e-9)
    assert part.best_belief == pytest.approx(float(alpha.max() / alpha.sum()), rel=1e-9)


def test_uncertainty_is_finite_where_exp_is_not() -> None:
    sure = Partial(np.array([0]), np.array([1.0]), 1e4, 10, 1e-4)
    lost = Partial(np.array([0]), np.array([-1.0]), -5000.0, 10, 1e-4)
    assert sure.uncertainty == 0.0
    assert lost.uncertainty == 1.0
    assert sure.best_belief == 1.0


def test_log_mean_evidence_does_not_change_when_the_gallery_is_doubled(scores: NDArray[np.float64]) -> None:
    part = partial_of(scores, np.arange(60), 5)
    copy = partial_of(scores, np.arange(60, 120), 5)
    doubled = merge(part, copy, 5)
    assert doubled.log_mean_evidence == pytest.approx(part.log_mean_evidence, rel=1e-12)
    assert doubled.log_sum_exp > part.log_sum_exp


def test_a_batch_merges_like_its_queries(scores: NDArray[np.float64]) -> None:
    halves = []
    for ids in (np.arange(30), np.arange(30, 60)):
        rows = [partial_of(values[ids], ids, 4) for values in (scores, -scores)]
        stacked = np.stack([row.ids for row in rows]), np.stack([row.scores for row in rows])
        halves.append(ScanResult(*stacked, np.array([row.log_sum_exp for row in rows]), 30, TEMPERATURE))
    merged = merge_results(halves[0], halves[1], 4)
    assert len(merged) == 2
    for got, values in zip(merged, (scores, -scores), strict=True):
        want = partial_of(values, np.arange(60), 4)
        assert_same(got, want)
    np.testing.assert_allclose(merged.uncertainty, [part.uncertainty for part in merged])
    np.testing.assert_allclose(merged.best_belief, [part.best_belief for part in merged])


def test_parts_that_do_not_belong_together_are_refused() -> None:
    with pytest.raises(InputError, match=r"0\.1 and 0\.2"):
        merge(empty(0.1), empty(0.2), 3)
    one = ScanResult(np.zeros((1, 0), np.int64), np.zeros((1, 0)), np.zeros(1), 0, 0.1)
    two = ScanResult(np.zeros((2, 0), np.int64), np.zeros((2, 0)), np.zeros(2), 0, 0.1)
    with pytest.raises(InputError, match="1 and of 2 queries"):
        merge_results(one, two, 3)
