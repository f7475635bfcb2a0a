from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from evidex.retrieval.certainty.signals import SIGNAL_NAMES, Surroundings, read_signals
from tests.retrieval.certainty.world import TAU, scan, unit, world


def _naive(query: np.ndarray, gallery: np.ndarray, past: np.ndarray, middle: np.ndarray) -> dict[str, float]:
    """The signals of one query by plain loops over Python numbers."""

    def dot(a: np.ndarray, b: np.ndarray) -> float:
        return math.fsum(float(x) * float(y) for x, y in zip(a, b, strict=True)) / TAU

    similarity = [dot(query, row) for row in gallery]
    order = sorted(range(len(gallery)), key=lambda i: (-similarity[i], i))[:10]
    z = [similarity[i] for i in order]
    evidence = math.log(math.fsum(math.exp(s) for s in similarity) / len(similarity))
    demand = [math.log(math.fsum(math.exp(dot(gallery[i], q)) for q in past) / len(past)) for i in order]
    specific = [a - b for a, b in zip(z, demand, strict=True)]
    total = math.fsum(math.exp(value) for value in z)
    share = [math.exp(value) / total for value in z]
    last = len(z) - 1
    return {
        "evidence": evidence,
        "best": z[0],
        "peak": z[0] - evidence,
        "head": math.log(total) - evidence,
        "lead_2": z[0] - z[min(1, last)],
        "lead_5": z[0] - z[min(4, last)],
        "lead_10": z[0] - z[min(9, last)],
        "spread": float(np.std(z)),
        "entropy": -math.fsum(p * math.log(p) for p in share),
        "steps": sum(b < a - 1e-4 for a, b in itertools.pairwise(z)),
        "specific_best": specific[0],
        "specific_mean": float(np.mean(specific)),
        "specific_most": max(specific),
        "specific_spread": float(np.std(specific)),
        "demand": float(np.mean(demand)),
        "central_query": dot(query, middle),
        "central_best": dot(gallery[order[0]], middle),
        "central_mean": float(np.mean([dot(gallery[i], middle) for i in order])),
        "familiar": max(dot(query, q) for q in past),
    }


@pytest.mark.parametrize("rows", [1, 2, 7, 10, 60])
def test_signals_are_those_of_plain_loops(rows: int) -> None:
    rng = np.random.default_rng(rows)
    gallery, queries, past = (unit(rng.normal(size=(n, 8))) for n in (rows, 5, 9))
    if rows > 2:
        gallery[2] = gallery[1]
    middle = gallery.mean(axis=0)
    got = read_signals(scan(queries, gallery), queries, gallery, Surroundings(past, middle))
    for row, query in zip(got, queries, strict=True):
        expected = _naive(query, gallery, past, middle)
        assert tuple(expected) == SIGNAL_NAMES
        np.testing.assert_allclose(row, list(expected.values()), rtol=2e-5, atol=2e-5)


def test_past_queries_that_must_not_speak_are_as_if_they_were_not_there() -> None:
    made = world(0, queries=300)
    queries, past = made.known.queries, made.known.queries[:40]
    own = np.random.default_rng(1).random((300, 40)) < 0.3
    own[:40][np.eye(40, dtype=bool)] = True
    got = read_signals(made.known.result, queries, made.gallery, Surroundings(past, made.middle), own=own)
    for i in (0, 3, 39, 255, 256, 299):
        one = made.known.part(np.arange(300) == i)
        alone = read_signals(one.result, one.queries, made.gallery, Surroundings(past[~own[i]], made.middle))
        np.testing.assert_allclose(got[i], alone[0], rtol=1e-5, atol=1e-5)


def test_a_gallery_that_holds_everything_twice_gives_the_same_evidence() -> None:
    made = world(2, queries=20)
    around = Surroundings(made.known.queries, made.middle)
    twice = np.concatenate([made.gallery, made.gallery])
    once = read_signals(made.known.result, made.known.queries, made.gallery, around)
    doubled = read_signals(scan(made.known.queries, twice), made.known.queries, twice, around)
    for name in ("evidence", "best", "peak", "specific_best", "central_best", "familiar"):
        place = SIGNAL_NAMES.index(name)
        np.testing.assert_allclose(once[:, place], doubled[:, place], rtol=1e-5, atol=1e-5)


def test_a_query_that_is_no_number_has_no_signals_and_harms_no_other() -> None:
    made = world(3, queries=6)
    broken = made.known.queries.copy()
    around = Surroundings(made.known.queries, made.middle)
    whole = read_signals(made.known.result, broken, made.gallery, around)
    broken[2] = np.nan
    result = made.known.result
    result.scores[2], result.log_sum_exp[2] = np.nan, np.nan
    got = read_signals(result, broken, made.gallery, around)
    assert np.isnan(got[2, SIGNAL_NAMES.index("evidence")])
    np.testing.assert_array_equal(np.delete(got, 2, 0), np.delete(whole, 2, 0))
