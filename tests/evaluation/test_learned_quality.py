from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from evidex.evaluation.learned_quality import DirectionQueries, cross_fit, learned_quality, scan_of
from evidex.evaluation.protocol import evaluate_features
from evidex.evaluation.selective import auroc, selective
from evidex.retrieval.scan.scan import scan
from tests.retrieval.certainty.world import TAU, unit, world


def test_known_similarities_give_what_a_scan_gives() -> None:
    made = world(0, queries=30)
    got = scan_of(made.known.queries @ made.gallery.T, TAU)
    expected = scan(made.known.queries, made.gallery, temperature=TAU, top=10)
    np.testing.assert_array_equal(got.ids, expected.ids)
    np.testing.assert_allclose(got.scores, expected.scores, atol=1e-6)
    np.testing.assert_allclose(got.log_sum_exp, expected.log_sum_exp, rtol=1e-5)
    assert got.count == expected.count


def test_no_query_is_judged_by_what_it_taught() -> None:
    made = world(1, queries=500)
    right = made.known.right.copy()
    right[::50] = np.nan
    folds = cross_fit(replace(made.known, right=right), made.gallery, seeds=(0, 1))
    assert len(folds) == 4
    for one, two in (folds[:2], folds[2:]):
        assert not (one.judged & two.judged).any()
        assert (one.judged | two.judged | np.isnan(right)).all()
        groups = made.known.groups
        assert not set(groups[one.judged]) & set(groups[two.judged])
    # Answers of the judged half do not change what is learned.
    other = np.where(folds[0].judged, 1 - right, right)
    again = cross_fit(replace(made.known, right=other), made.gallery, seeds=(0,))
    doubts = [
        fold.learned_score.doubt(made.known.result, made.known.queries, made.gallery) for fold in (folds[0], again[0])
    ]
    np.testing.assert_array_equal(doubts[0], doubts[1])


def test_quality_is_the_mean_over_the_folds() -> None:
    made = world(2, queries=400)
    known = made.known
    asked = DirectionQueries(known.queries @ made.gallery.T, known.queries, made.gallery, known.groups, TAU)
    hits = {1: (known.result.ids[:, 0] == known.groups).astype(np.float64), 10: known.right}
    degraded = np.arange(400) % 2 == 0
    labels = ([f"c{g // 40}" for g in known.groups], [f"c{i // 40}" for i in range(800)])
    out_of_domain = unit(np.random.default_rng(3).normal(size=(50, 16)))
    got = learned_quality(asked, hits, degraded=degraded, labels=labels, out_of_domain=out_of_domain)
    assert got is not None
    errors, removed, outside = [], [], []
    for fold in cross_fit(known, made.gallery):
        doubt = fold.learned_score.doubt(known.result, known.queries, made.gallery)
        errors.append(selective(doubt[fold.judged], known.right[fold.judged]).auroc)
        outside.append(
            auroc(
                fold.learned_score.doubt(scan_of(out_of_domain @ made.gallery.T, TAU), out_of_domain, made.gallery),
                doubt[fold.judged],
            )
        )
        gone = np.empty(400)
        for i in np.flatnonzero(fold.judged):
            rest = made.gallery[np.arange(800) // 40 != known.groups[i] // 40]
            query = known.queries[i : i + 1]
            gone[i] = fold.learned_score.doubt(scan_of(query @ rest.T, TAU), query, rest)[0]
        removed.append(auroc(gone[fold.judged], doubt[fold.judged]))
    assert got.error_auroc[10] == pytest.approx(np.mean(errors))
    assert got.error_auroc_spread is not None
    assert got.error_auroc_spread[10] == pytest.approx(np.std(errors))
    assert got.out_of_domain_auroc == pytest.approx(np.mean(outside))
    assert got.removed_class_auroc == pytest.approx(np.mean(removed), abs=1e-3)
    assert got.degraded_auroc == pytest.approx(0.5, abs=0.1)
    assert set(got.to_json()) >= {"error_auroc", "error_auroc_spread", "out_of_domain_auroc"}


def test_chance_is_not_beaten_where_nothing_can_be_known() -> None:
    rng = np.random.default_rng(4)
    images, texts = unit(rng.normal(size=(80, 16))), unit(rng.normal(size=(640, 16)))
    found = evaluate_features(images, texts, np.repeat(np.arange(80), 8), 0.1)
    assert found.t2i.quality["learned"].error_auroc[10] == pytest.approx(0.5, abs=0.1)


def test_a_split_too_small_to_learn_from_goes_without() -> None:
    rng = np.random.default_rng(5)
    images, texts = unit(rng.normal(size=(20, 16))), unit(rng.normal(size=(40, 16)))
    found = evaluate_features(images, texts, np.repeat(np.arange(20), 2), 0.1)
    assert "learned" not in found.i2t.quality
    assert "learned" not in found.t2i.quality
