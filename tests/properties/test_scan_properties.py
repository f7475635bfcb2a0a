"""The scan against float64 arithmetic without blocks, threads, heaps or shortcuts."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import pairwise
from unittest.mock import patch

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from evidex.retrieval.scan import shards
from evidex.retrieval.scan.partial import ScanResult, merge, merge_results
from evidex.retrieval.scan.quantize import quantize_int8, to_bfloat16
from evidex.retrieval.scan.scan import scan
from evidex.retrieval.scan.shards import Vectors

Floats = NDArray[np.float32]
PLAIN = st.booleans()


@dataclass(frozen=True)
class Case:
    queries: Floats
    vectors: Floats
    temperature: float
    top: int


def by_numpy(plain: bool) -> AbstractContextManager[object]:
    """Scan by numpy alone, or by the compiled kernels; so few rows as here would all go the first way."""
    return patch("evidex.retrieval.scan.scan.are_few", lambda *_: plain)


@st.composite
def cases(draw: st.DrawFn, *, most_rows: int = 1500) -> Case:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows = draw(st.one_of(st.integers(1, 12), st.integers(1, most_rows)))
    dim = draw(st.integers(1, 40))
    queries = rng.standard_normal((draw(st.sampled_from([1, 2, 7, 17, 66])), dim))
    vectors = rng.standard_normal((rows, dim))
    kind = draw(st.sampled_from(["random", "unit", "ties", "duplicates", "all equal"]))
    if kind == "unit":
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    elif kind == "ties":
        # Small multiples of a quarter: sums are exact in float32, so equal scores are truly equal.
        queries, vectors = np.rint(queries), np.rint(vectors * 2) / 4
    elif kind == "duplicates":
        vectors = vectors[rng.integers(0, max(1, rows // 4), size=rows)]
    elif kind == "all equal":
        vectors[:] = vectors[0]
    temperature = draw(st.sampled_from([0.01, 0.05, 0.1, 1.0, 10.0]))
    top = draw(st.one_of(st.integers(1, 12), st.just(rows + 3)))
    return Case(queries.astype(np.float32), vectors.astype(np.float32), temperature, top)


def naive(case: Case, rows: NDArray[np.int64] | None = None) -> ScanResult:
    kept = np.arange(len(case.vectors)) if rows is None else rows
    vectors = case.vectors[kept].astype(np.float64)
    ids, scores, sums = [], [], []
    for query in case.queries.astype(np.float64):
        similarity = (vectors * query).sum(axis=1)
        order = np.lexsort((kept, -similarity))[: case.top]
        ids.append(kept[order])
        scores.append(similarity[order])
        sums.append(np.logaddexp.reduce(similarity / case.temperature))
    return ScanResult(np.stack(ids), np.stack(scores), np.array(sums), len(kept), case.temperature)


def assert_equal(got: ScanResult, want: ScanResult, case: Case) -> None:
    np.testing.assert_array_equal(got.ids, want.ids)
    np.testing.assert_allclose(got.scores, want.scores, rtol=1e-12, atol=1e-12)
    # float32 rounds a similarity in proportion to |q| |v|, and the temperature magnifies that.
    longest = np.linalg.norm(case.queries, axis=1).max() * np.linalg.norm(case.vectors, axis=1).max()
    tolerance = 1e-6 + 2.0**-22 * longest / case.temperature
    np.testing.assert_allclose(got.log_sum_exp, want.log_sum_exp, rtol=0, atol=tolerance)
    assert got.count == want.count


@settings(max_examples=120, deadline=None)
@given(cases(), PLAIN)
def test_scan_equals_the_naive_reference(case: Case, plain: bool) -> None:
    with by_numpy(plain):
        got = scan(case.queries, case.vectors, temperature=case.temperature, top=case.top)
    assert_equal(got, naive(case), case)


@settings(max_examples=60, deadline=None)
@given(cases(), st.integers(1, 800), st.integers(1, 5), st.sampled_from(["float32", "bfloat16", "int8"]))
def test_block_size_and_threads_change_nothing(case: Case, block_rows: int, threads: int, form: str) -> None:
    stored: Vectors = case.vectors
    if form != "float32":
        stored = to_bfloat16(case.vectors) if form == "bfloat16" else quantize_int8(case.vectors)
    with by_numpy(False):
        one = scan(case.queries, stored, temperature=case.temperature, top=case.top, threads=1)
        with patch.object(shards, "_BLOCK_VALUES", block_rows * case.vectors.shape[1]):
            other = scan(case.queries, stored, temperature=case.temperature, top=case.top, threads=threads)
            again = scan(case.queries, stored, temperature=case.temperature, top=case.top, threads=1)
    np.testing.assert_array_equal(one.ids, other.ids)
    np.testing.assert_array_equal(one.scores, other.scores)
    np.testing.assert_allclose(one.log_sum_exp, other.log_sum_exp, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(again.log_sum_exp, other.log_sum_exp)


@settings(max_examples=60, deadline=None)
@given(cases(), st.randoms(use_true_random=False), st.sampled_from([0.02, 0.5, 0.98]), st.booleans(), PLAIN)
def test_a_filter_equals_scanning_the_subset(
    case: Case, random: object, share: float, as_mask: bool, plain: bool
) -> None:
    seed = random.getrandbits(32)  # type: ignore[attr-defined]
    mask = np.random.default_rng(seed).random(len(case.vectors)) < share
    rows = np.flatnonzero(mask)
    chosen = mask if as_mask else rows
    with by_numpy(plain):
        got = scan(case.queries, case.vectors, temperature=case.temperature, top=case.top, rows=chosen)
    assert got.count == len(rows)
    if len(rows):
        assert_equal(got, naive(case, rows), case)


@settings(max_examples=60, deadline=None)
@given(cases(most_rows=300), st.lists(st.floats(0, 1), min_size=2, max_size=2).map(sorted), PLAIN)
def test_merging_is_associative_and_equals_the_whole(case: Case, cuts: list[float], plain: bool) -> None:
    edges = [0, *(round(cut * len(case.vectors)) for cut in cuts), len(case.vectors)]
    parts = []
    for start, stop in pairwise(edges):
        rows = case.vectors[start:stop]
        # The middle part the other way: what is merged may come from either.
        with by_numpy(plain != (start == edges[1])):
            part = scan(case.queries, rows, temperature=case.temperature, top=case.top)
        parts.append(ScanResult(part.ids + start, part.scores, part.log_sum_exp, part.count, part.temperature))
    a, b, c = parts
    left = merge_results(merge_results(a, b, case.top), c, case.top)
    right = merge_results(a, merge_results(c, b, case.top), case.top)
    np.testing.assert_array_equal(left.ids, right.ids)
    np.testing.assert_array_equal(left.scores, right.scores)
    np.testing.assert_allclose(left.log_sum_exp, right.log_sum_exp, rtol=1e-12)
    assert_equal(left, naive(case), case)
    one = merge(merge(a[0], b[0], case.top), c[0], case.top)
    np.testing.assert_array_equal(one.ids, left.ids[0])


@settings(max_examples=40, deadline=None)
@given(cases(most_rows=400), st.lists(st.floats(0, 1), max_size=4).map(sorted), PLAIN)
def test_shards_equal_one_array(case: Case, cuts: list[float], plain: bool) -> None:
    places = [round(cut * len(case.vectors)) for cut in cuts]
    shards: list[Vectors] = list(np.split(case.vectors, places))
    with by_numpy(plain):
        got = scan(case.queries, shards, temperature=case.temperature, top=case.top)
    assert_equal(got, naive(case), case)
