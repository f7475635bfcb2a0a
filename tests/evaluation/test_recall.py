from __future__ import annotations

import itertools
import math
import sys
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from evidex.errors import InputError
from evidex.evaluation import hits_i2t, hits_t2i, recall
from evidex.evaluation.recall import BestRanks


def enumerated_hit(scores: list[float], relevant: set[int], k: int) -> float:
    """Share of all orders by falling score, ties in every possible order, that show a relevant item in the top k."""
    orders = {
        order
        for order in itertools.permutations(range(len(scores)))
        if all(scores[a] >= scores[b] for a, b in itertools.pairwise(order))
    }
    return sum(bool(relevant & set(order[:k])) for order in orders) / len(orders)


def enumerated_recall(similarity: NDArray[Any], owner: NDArray[Any], k: int) -> tuple[float, float]:
    images, captions = similarity.shape
    own = [{j for j in range(captions) if owner[j] == i} for i in range(images)]
    i2t = [enumerated_hit(list(similarity[i]), own[i], k) for i in range(images) if own[i]]
    t2i = [enumerated_hit(list(similarity[:, j]), {int(owner[j])}, k) for j in range(captions)]
    return 100 * sum(i2t) / len(i2t), 100 * sum(t2i) / len(t2i)


@pytest.mark.parametrize("seed", range(12))
def test_equals_the_mean_over_all_orders_of_ties(seed: int) -> None:
    rng = np.random.default_rng(seed)
    images, captions = int(rng.integers(1, 6)), int(rng.integers(1, 7))
    similarity = rng.integers(0, 3, size=(images, captions)).astype(np.float64)
    owner = rng.integers(0, images, size=captions)
    for k in (1, 2, 3, 9):
        got = recall(similarity, owner, ks=(k,))
        assert (got.i2t[k], got.t2i[k]) == pytest.approx(enumerated_recall(similarity, owner, k), rel=1e-12)


def test_hand_computed_example() -> None:
    similarity = np.array([[0.9, 0.1, 0.5, 0.5], [0.8, 0.2, 0.6, 0.5]])
    owner = np.array([0, 0, 1, 1])
    got = recall(similarity, owner, ks=(1, 2))
    assert got.i2t == {1: 50.0, 2: 100.0}
    # Caption 1 prefers image 1, caption 3 is torn between both images.
    assert got.t2i == {1: pytest.approx(100 * (1 + 0 + 1 + 0.5) / 4), 2: 100.0}
    assert got.rsum == pytest.approx(50 + 100 + 62.5 + 100)


@pytest.mark.parametrize("value", [0.0, -1.0, 0.3, 1e30])
def test_a_constant_matrix_scores_chance(value: float) -> None:
    images, each = 21, 5
    owner = np.repeat(np.arange(images), each)
    got = recall(np.full((images, images * each), value, dtype=np.float32), owner)
    for k in (1, 5, 10):
        total = images * each
        assert got.t2i[k] == pytest.approx(100 * k / images, rel=1e-14)
        assert got.i2t[k] == pytest.approx(100 * (1 - math.comb(total - each, k) / math.comb(total, k)), rel=1e-13)


def test_chance_of_a_large_constant_matrix_does_not_overflow() -> None:
    standing = BestRanks(np.array([3]), np.array([10**9]), np.array([10**6]))
    exact = -math.expm1(sum(math.log1p(-(10**6) / (10**9 - j)) for j in range(7)))
    assert standing.hits(10)[0] == pytest.approx(exact, rel=1e-12)


def test_order_of_equal_columns_and_rows_gains_nothing() -> None:
    rng = np.random.default_rng(1)
    similarity = rng.normal(size=(6, 12))
    similarity[:, 3] = similarity[:, 7] = similarity[:, 11]
    similarity[4] = similarity[2]
    owner = np.repeat(np.arange(6), 2)
    expected = recall(similarity, owner)
    for _ in range(5):
        rows, columns = rng.permutation(6), rng.permutation(12)
        moved = recall(similarity[np.ix_(rows, columns)], np.argsort(rows)[owner[columns]])
        assert moved.rsum == pytest.approx(expected.rsum, rel=1e-13)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_tensors_and_arrays_agree(dtype: torch.dtype) -> None:
    values = torch.randn(9, 27, generator=torch.Generator().manual_seed(0)).to(dtype)
    owner = np.repeat(np.arange(9), 3)
    assert recall(values.requires_grad_(), owner) == recall(values.detach().double().numpy(), owner)


def test_integers_and_non_contiguous_arrays_work() -> None:
    rng = np.random.default_rng(0)
    base = rng.integers(-5, 5, size=(20, 8))
    owner = np.arange(10) % 8
    assert recall(base.T[:, ::2], owner) == recall(np.ascontiguousarray(base.T[:, ::2]).astype(float), owner)


def test_blocks_do_not_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    similarity = rng.integers(0, 6, size=(31, 93)).astype(np.float32)
    owner = rng.integers(0, 31, size=93)
    whole = recall(similarity, owner)
    monkeypatch.setattr(sys.modules["evidex.evaluation.recall"], "_BLOCK_ELEMENTS", 200)
    assert recall(similarity, owner) == whole


def test_hits_of_every_query_average_to_recall() -> None:
    rng = np.random.default_rng(3)
    similarity = rng.integers(0, 9, size=(30, 60)).astype(np.float32)
    owner = np.repeat(np.arange(30), 2)
    got = recall(similarity, owner)
    for k in (1, 5, 10):
        assert hits_i2t(similarity, owner, k).shape == (30,)
        assert 100 * hits_i2t(similarity, owner, k).mean() == pytest.approx(got.i2t[k])
        assert 100 * hits_t2i(similarity, owner, k).mean() == pytest.approx(got.t2i[k])


def test_an_image_without_captions_is_a_distractor_only() -> None:
    similarity = np.array([[0.9, 0.1], [0.2, 0.3], [0.5, 0.8]])
    owner = np.array([0, 1])
    assert np.isnan(hits_i2t(similarity, owner, 1)[2])
    got = recall(similarity, owner, ks=(1,))
    assert got.i2t[1] == 100.0
    assert got.t2i[1] == 50.0


def test_a_cutoff_beyond_the_gallery_finds_everything() -> None:
    got = recall(np.random.default_rng(0).normal(size=(3, 6)), np.repeat(np.arange(3), 2), ks=(7, 100))
    assert got.rsum == 400.0


def test_infinite_similarities_rank_first_and_last() -> None:
    similarity = np.array([[np.inf, 0.0], [np.inf, -np.inf]])
    got = recall(similarity, np.array([0, 1]), ks=(1,))
    assert got.i2t[1] == 50.0
    assert got.t2i[1] == 25.0


@pytest.mark.parametrize(
    ("similarity", "owner", "words"),
    [
        (np.array([[0.1, np.nan]]), [0, 0], "NaN at row 0, column 1"),
        (np.zeros((2, 3)), [0, 1], "one image index a caption"),
        (np.zeros((2, 2)), [0, 2], "there are 2 images"),
        (np.zeros((2, 2)), [0, -1], "there are 2 images"),
        (np.zeros((2, 2)), [0.0, 1.0], "pass integers"),
        (np.zeros(4), [0, 1], "matrix of images by captions"),
        (np.zeros((0, 0)), [], "non-empty"),
        (np.zeros((2, 2), dtype=complex), [0, 1], "real numbers"),
    ],
)
def test_bad_input_is_refused_in_words(similarity: NDArray[Any], owner: list[Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        recall(similarity, np.array(owner))


@pytest.mark.parametrize("ks", [(), (0,), (-1,), (1.5,)])
def test_bad_cutoffs_are_refused(ks: Any) -> None:
    with pytest.raises(InputError):
        recall(np.zeros((2, 2)), np.array([0, 1]), ks=ks)
