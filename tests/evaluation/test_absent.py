from __future__ import annotations

import math

import numpy as np
import pytest

from evidex.errors import InputError
from evidex.evaluation import auroc, uncertainty_scores
from evidex.evaluation.absent import out_of_domain_queries, removed_class, tell_apart
from evidex.evaluation.out_of_domain_pictures import out_of_domain_pictures
from evidex.evaluation.query_uncertainty import SCORE_NAMES

TEMPERATURE = 0.1


def test_the_committed_list_is_long_distinct_and_plain() -> None:
    queries = out_of_domain_queries()
    assert len(queries) >= 120
    assert len(set(queries)) == len(queries)
    assert all(query == query.strip().lower() and query.endswith(" .") for query in queries)


def test_removed_class_equals_a_loop_over_queries() -> None:
    rng = np.random.default_rng(0)
    similarity = rng.uniform(-1, 1, size=(12, 20))
    asked = [["port", "farm", "lake"][i % 3] for i in range(12)]
    held = [["port", "farm", "lake", "farm"][i % 4] for i in range(20)]
    identity = rng.integers(0, 9, size=20)
    present = uncertainty_scores(similarity, TEMPERATURE, identity=identity)
    got = removed_class(similarity, asked, held, TEMPERATURE, identity=identity)
    assert (got.present, got.absent) == (12, 12)
    for name in SCORE_NAMES:
        alone = []
        for i, label in enumerate(asked):
            kept = [j for j in range(20) if held[j] != label]
            row = uncertainty_scores(similarity[[i]][:, kept], TEMPERATURE, identity=identity[kept])
            alone.append(row[name][0])
        assert got.auroc[name] == pytest.approx(auroc(alone, present[name]), rel=1e-12)


def test_a_removed_class_is_noticed_where_classes_differ() -> None:
    rng = np.random.default_rng(1)
    labels = np.repeat(["port", "farm", "lake", "city"], 10)
    similarity = np.where(labels[:, None] == labels, 0.8, 0.1) + rng.normal(0, 0.02, size=(40, 40))
    got = removed_class(similarity, labels.tolist(), labels.tolist(), TEMPERATURE)
    assert got.auroc["vacuity"] == 1.0
    assert got.auroc["max_similarity"] == 1.0


def test_queries_that_cannot_lose_their_class_are_left_out() -> None:
    similarity = np.random.default_rng(2).uniform(size=(4, 5))
    got = removed_class(
        similarity, ["port", None, "desert", "farm"], ["port", "farm", "farm", None, "farm"], TEMPERATURE
    )
    assert got.absent == got.present == 2
    nothing = removed_class(similarity, ["port"] * 4, ["port"] * 5, TEMPERATURE)
    assert nothing.absent == 0
    assert all(math.isnan(value) for value in nothing.auroc.values())


def test_labels_must_fit_the_matrix() -> None:
    with pytest.raises(InputError, match="one label a row"):
        removed_class(np.zeros((2, 3)), ["a"], ["a", "b", "c"], TEMPERATURE)


def test_out_of_domain_queries_far_from_everything_are_told_apart() -> None:
    rng = np.random.default_rng(3)
    own = uncertainty_scores(rng.uniform(0.2, 0.9, size=(30, 50)), TEMPERATURE)
    out_of_domain = uncertainty_scores(rng.uniform(-0.1, 0.1, size=(20, 50)), TEMPERATURE)
    got = tell_apart(out_of_domain, own)
    assert (got.absent, got.present) == (20, 30)
    assert got.auroc["vacuity"] == 1.0
    assert got.auroc["max_similarity"] == 1.0


def test_out_of_domain_pictures_are_varied_and_repeatable() -> None:
    first = out_of_domain_pictures(16, np.random.default_rng(5), size=64)
    again = out_of_domain_pictures(16, np.random.default_rng(5), size=64)
    other = out_of_domain_pictures(16, np.random.default_rng(6), size=64)
    assert [picture.tobytes() for picture in first] == [picture.tobytes() for picture in again]
    assert len({picture.tobytes() for picture in (*first, *other)}) == 32
    assert all(picture.mode == "RGB" and picture.size == (64, 64) for picture in first)
    assert min(np.asarray(picture).std() for picture in first) > 15
