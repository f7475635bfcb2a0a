from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from evidex.retrieval.certainty.learned_score import fit_learned_score
from evidex.retrieval.certainty.learning import Worth, group_by_answer, known_of, learn, middle_of
from tests.retrieval.certainty.world import world


def test_queries_that_share_a_row_are_of_one_group() -> None:
    groups = group_by_answer([{1}, {2, 3}, {4}, {3, 5}, {1, 9}, {5}, {7}])
    same = groups[:, None] == groups
    expected = np.eye(7, dtype=bool)
    for a, b in ((0, 4), (1, 3), (3, 5), (1, 5)):
        expected[a, b] = expected[b, a] = True
    np.testing.assert_array_equal(same, expected)


def test_the_middle_is_that_of_the_selected_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evidex.retrieval.certainty.learning._ROWS_AT_ONCE", 7)
    rows = np.random.default_rng(0).normal(size=(50, 5)).astype(np.float32)
    chosen = np.arange(50) % 3 == 0
    np.testing.assert_allclose(middle_of(rows, None), rows.mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(middle_of(rows, chosen), rows[chosen].mean(axis=0), atol=1e-6)
    assert middle_of(rows, np.zeros(50, np.bool_)).tolist() == [0.0] * 5


def test_known_queries_are_right_if_a_relevant_row_is_among_the_first() -> None:
    made = world(0, queries=30)
    result = made.known.result
    answers = {4: {int(result.ids[4, 2])}, 7: {int(result.ids[7, 3])}, 9: {799, int(result.ids[9, 0])}, 11: {-1}}
    known = known_of(result, made.known.queries, answers, top=3)
    assert known.right.tolist() == [1.0, 0.0, 1.0, 0.0]
    np.testing.assert_array_equal(known.result.ids, result.ids[[4, 7, 9, 11]])
    np.testing.assert_array_equal(known.queries, made.known.queries[[4, 7, 9, 11]])


def test_what_is_learned_comes_from_one_half_alone() -> None:
    made = world(1, queries=600)
    lesson = learn(made.known, made.gallery, made.middle, np.random.default_rng(0), top=10)
    assert lesson is not None
    assert not set(made.known.groups[lesson.taught]) & set(made.known.groups[~lesson.taught])
    flipped = np.where(lesson.taught, made.known.right, 1 - made.known.right)
    other = learn(replace(made.known, right=flipped), made.gallery, made.middle, np.random.default_rng(0), top=10)
    assert other is not None
    judged = made.known.part(~lesson.taught)
    np.testing.assert_array_equal(
        lesson.learned_score.doubt(judged.result, judged.queries, made.gallery),
        other.learned_score.doubt(judged.result, judged.queries, made.gallery),
    )
    assert lesson.worth is not None
    assert other.worth is not None
    assert lesson.worth.learned > lesson.worth.similarity + 0.05
    assert other.worth.learned < lesson.worth.learned


def test_too_little_teaches_nothing() -> None:
    made = world(2, queries=60)
    right = np.zeros(60)
    right[:12] = 1.0  # enough to learn from, but not in either half
    known = replace(made.known, right=right, groups=np.arange(60))
    assert known.teaches
    assert fit_learned_score(known, made.gallery, made.middle, np.random.default_rng(0)) is not None
    assert learn(known, made.gallery, made.middle, np.random.default_rng(0), top=10) is None


def test_what_noise_teaches_is_not_used() -> None:
    """Answers are right or wrong by the toss of a coin, five questions for each thing: nothing tells them apart."""
    made = world(3, queries=500)
    used = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        right = np.repeat(rng.integers(0, 2, 100), 5).astype(np.float64)
        known = replace(made.known, right=right, groups=np.repeat(np.arange(100), 5))
        lesson = learn(known, made.gallery, made.middle, rng, top=10)
        assert lesson is not None
        assert lesson.worth is not None
        used += lesson.helps
    assert used <= 6  # three of sixty are to be expected


def test_what_can_be_told_is_used() -> None:
    for seed in range(5):
        made = world(seed, queries=600)
        lesson = learn(made.known, made.gallery, made.middle, np.random.default_rng(seed), top=10)
        assert lesson is not None
        assert lesson.helps


def test_worth_is_said_in_one_sentence() -> None:
    assert "AUROC 0.653, 0.053 better than the highest similarity (0.600; 90 q" in Worth(90, 0.653, 0.6).describe()
    assert Worth(90, 0.653, 0.6, 0.05).shortfall is None
    assert "no better than chance may (AUROC 0.653 ± 0.100)" in str(Worth(90, 0.653, 0.6, 0.1).shortfall)
    assert "no better than the highest similarity (AUROC 0.653 and 0.700)" in str(Worth(90, 0.653, 0.7, 0.05).shortfall)
    assert "0.020 worse" in Worth(90, 0.58, 0.6).describe()
