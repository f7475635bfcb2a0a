from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import comb
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from evidex.evaluation import recall
from evidex.evaluation.recall import BestRanks


@st.composite
def problems(draw: st.DrawFn) -> tuple[NDArray[Any], NDArray[Any]]:
    images, captions = draw(st.integers(1, 7)), draw(st.integers(1, 15))
    values = draw(st.lists(st.integers(-2, 2), min_size=images * captions, max_size=images * captions))
    owner = draw(st.lists(st.integers(0, images - 1), min_size=captions, max_size=captions))
    return np.array(values, dtype=np.float64).reshape(images, captions), np.array(owner)


def naive_hit(scores: NDArray[Any], relevant: NDArray[Any], k: int) -> Fraction:
    """The tie formula of the protocol in exact fractions."""
    best = scores[relevant].max()
    better, tied, own = int((scores > best).sum()), int((scores == best).sum()), int((scores[relevant] == best).sum())
    if k <= better:
        return Fraction(0)
    places = min(k - better, tied)
    return 1 - Fraction(comb(tied - own, places), comb(tied, places))


@given(problems(), st.integers(1, 17))
@settings(max_examples=150, deadline=None)
def test_equals_exact_fractions(problem: tuple[NDArray[Any], NDArray[Any]], k: int) -> None:
    similarity, owner = problem
    got = recall(similarity, owner, ks=(k,))
    asked = sorted(set(owner.tolist()))
    i2t = sum((naive_hit(similarity[i], owner == i, k) for i in asked), Fraction(0)) / len(asked)
    images = np.arange(len(similarity))
    t2i = sum((naive_hit(similarity[:, j], images == i, k) for j, i in enumerate(owner)), Fraction(0)) / len(owner)
    assert got.i2t[k] == pytest.approx(float(100 * i2t), rel=1e-12)
    assert got.t2i[k] == pytest.approx(float(100 * t2i), rel=1e-12)


@given(problems())
@settings(max_examples=60, deadline=None)
def test_grows_with_the_cutoff_and_ignores_monotone_changes(problem: tuple[NDArray[Any], NDArray[Any]]) -> None:
    similarity, owner = problem
    ks = tuple(range(1, 17))
    got = recall(similarity, owner, ks=ks)
    for side in (got.i2t, got.t2i):
        values = list(side.values())
        assert all(low <= high + 1e-9 for low, high in pairwise(values))
        assert values[-1] == 100.0
    assert recall(np.exp(similarity) * 7 - 3, owner, ks=ks) == got


@given(st.integers(0, 300), st.integers(1, 3000), st.data())
@settings(max_examples=150, deadline=None)
def test_hit_chance_is_exact_for_any_standing(better: int, tied: int, data: st.DataObject) -> None:
    own, k = data.draw(st.integers(1, tied)), data.draw(st.integers(1, 400))
    got = BestRanks(np.array([better]), np.array([tied]), np.array([own])).hits(k)[0]
    places = min(max(k - better, 0), tied)
    assert got == pytest.approx(float(1 - Fraction(comb(tied - own, places), comb(tied, places))), rel=1e-11)
