"""The learned chance of a right answer: honest out of sample, calibrated, wary out of domain, stored as it is."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from evidex.errors import InputError
from evidex.evaluation.selective import auroc, selective
from evidex.retrieval.certainty.learned_score import (
    HOME_NAMES,
    LEARNED_NAMES,
    MOST_PAST_QUERIES,
    Known,
    LearnedScore,
    fit_learned_score,
    halves,
)
from evidex.retrieval.certainty.learned_score_store import learned_score_from_json, learned_score_json
from evidex.retrieval.certainty.logistic import sigmoid
from evidex.retrieval.certainty.signals import SIGNAL_NAMES, Surroundings, read_signals
from tests.retrieval.certainty.world import World, scan, unit, world


def _fit(made: World, seed: int = 0) -> LearnedScore:
    return fit_learned_score(made.known, made.gallery, made.middle, np.random.default_rng(seed))


def _doubt(learned_score: LearnedScore, known: Known, made: World) -> np.ndarray:
    return learned_score.doubt(known.result, known.queries, made.gallery)


@pytest.fixture(scope="module")
def taught() -> World:
    return world(0, queries=1500)


@pytest.fixture(scope="module")
def learned_score(taught: World) -> LearnedScore:
    return _fit(taught)


def test_new_queries_are_judged_better_than_by_the_highest_similarity(learned_score: LearnedScore) -> None:
    new = world(1, queries=1500)
    learned = selective(_doubt(learned_score, new.known, new), new.known.right).auroc
    plain = selective(-new.known.result.scores[:, 0], new.known.right).auroc
    assert learned > plain + 0.05


def test_chances_are_frequencies(learned_score: LearnedScore) -> None:
    new = world(2, queries=4000)
    chances = learned_score.chances(_doubt(learned_score, new.known, new))
    bins = np.array_split(np.argsort(chances), 8)
    gaps = [abs(chances[part].mean() - new.known.right[part].mean()) for part in bins]
    assert np.mean(gaps) < 0.04


def test_where_the_truth_is_known_it_is_found() -> None:
    """Answers are right with a chance that is a function of two signals."""
    made = world(3, queries=3000)
    around = Surroundings(made.known.queries[:64], made.middle)
    signals = read_signals(made.known.result, made.known.queries, made.gallery, around)
    peak, lead = (signals[:, SIGNAL_NAMES.index(name)] for name in ("peak", "lead_10"))
    truth = sigmoid(1.5 * (peak - peak.mean()) / peak.std() - (lead - lead.mean()) / lead.std())
    rng = np.random.default_rng(4)
    known = replace(made.known, right=(rng.random(3000) < truth).astype(np.float64))
    half = halves(known.groups, rng)
    learned = fit_learned_score(known.part(half), made.gallery, made.middle, rng)
    judged = known.part(~half)
    chances = learned.chances(_doubt(learned, judged, made))
    assert np.abs(chances - truth[~half]).mean() < 0.08
    best = selective(-truth[~half], judged.right).auroc
    assert selective(_doubt(learned, judged, made), judged.right).auroc > best - 0.05


def test_where_there_is_nothing_to_learn_nothing_is_learned() -> None:
    """Outcomes by the throw of a coin: out of sample the score is worthless, and every chance is the coin's."""
    found, chances = [], []
    for seed in range(6):
        made = world(seed, queries=600)
        rng = np.random.default_rng(seed)
        known = replace(made.known, right=(rng.random(600) < 0.3).astype(np.float64))
        half = halves(known.groups, rng)
        learned = fit_learned_score(known.part(half), made.gallery, made.middle, rng)
        doubt = _doubt(learned, known.part(~half), made)
        found.append(selective(doubt, known.part(~half).right).auroc)
        chances.append(learned.chances(doubt).mean())
    assert np.mean(found) == pytest.approx(0.5, abs=0.05)
    assert np.mean(chances) == pytest.approx(0.3, abs=0.06)


def test_queries_out_of_domain_are_doubted_more_than_known_queries(taught: World, learned_score: LearnedScore) -> None:
    """Queries that lie away from everything, and the gallery without the part that was asked for."""
    new = world(5, queries=400)
    own = _doubt(learned_score, new.known, new)
    rng = np.random.default_rng(6)
    away = rng.normal(size=(200, 16)) - 3.0 * taught.middle.astype(np.float64) / np.linalg.norm(taught.middle)
    out_of_domain = unit(away)
    other = learned_score.doubt(scan(out_of_domain, taught.gallery), out_of_domain, taught.gallery)
    assert auroc(other, own) > 0.9
    assert np.median(learned_score.chances(other)) < np.quantile(learned_score.chances(own), 0.05)
    cluster = new.known.groups // 40
    for name in (0, 7):
        rest = taught.gallery[np.arange(800) // 40 != name]
        asked = new.known.part(cluster == name)
        gone = learned_score.doubt(scan(asked.queries, rest), asked.queries, rest)
        assert auroc(gone, own[cluster == name]) > 0.8


def test_less_evidence_than_ever_seen_is_ever_more_doubtful(taught: World, learned_score: LearnedScore) -> None:
    signals = np.repeat(
        read_signals(taught.known.result, taught.known.queries, taught.gallery, learned_score.around)[:1], 50, 0
    )
    for name in ("evidence", "familiar"):
        lower = signals.copy()
        lower[:, SIGNAL_NAMES.index(name)] = learned_score.usual.min() - np.linspace(5, 5e3, 50)
        doubt = learned_score.doubt_of(lower)
        assert np.isfinite(doubt).all()
        assert (np.diff(doubt) > 0).all()
        assert (np.diff(learned_score.chances(doubt)) <= 0).all()


def test_a_query_that_is_no_number_is_doubted_beyond_measure(taught: World, learned_score: LearnedScore) -> None:
    signals = read_signals(taught.known.result, taught.known.queries, taught.gallery, learned_score.around)[:4]
    signals[1, 0], signals[2, 3] = np.nan, -np.inf
    doubt = learned_score.doubt_of(signals)
    assert np.isinf(doubt).tolist() == [False, True, True, False]
    assert learned_score.chances(doubt)[1:3].tolist() == [0.0, 0.0]


def test_a_query_gets_the_same_doubt_alone_and_in_a_batch(taught: World, learned_score: LearnedScore) -> None:
    together = _doubt(learned_score, taught.known, taught)
    for i in (0, 17, 1499):
        alone = _doubt(learned_score, taught.known.part(np.arange(1500) == i), taught)
        assert alone[0] == pytest.approx(together[i], abs=1e-4)


def test_stored_and_read_again_it_gives_the_very_same_numbers(taught: World, learned_score: LearnedScore) -> None:
    text = json.dumps(learned_score_json(learned_score), allow_nan=False)
    assert len(text) < 2 * MOST_PAST_QUERIES * 16 * 4 / 3 + 8000
    again = learned_score_from_json(json.loads(text))
    np.testing.assert_array_equal(_doubt(again, taught.known, taught), _doubt(learned_score, taught.known, taught))
    doubt = np.linspace(-5, 50, 99)
    np.testing.assert_array_equal(again.chances(doubt), learned_score.chances(doubt))
    assert again.top == 10


def test_same_seed_same_bytes(taught: World, learned_score: LearnedScore) -> None:
    assert json.dumps(learned_score_json(_fit(taught))) == json.dumps(learned_score_json(learned_score))
    assert json.dumps(learned_score_json(_fit(taught, seed=1))) != json.dumps(learned_score_json(learned_score))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("format", 2),
        ("signals", ["evidence"]),
        ("weights", [1.0]),
        ("mean", [float("nan")] * (len(SIGNAL_NAMES) - 1)),
        ("scale", [0.0] * (len(SIGNAL_NAMES) - 1)),
        ("spread", [0.0, 1.0]),
        ("intercept", float("inf")),
        ("dim", 0),
        ("dim", 15),
        ("middle", "AAAA"),
        ("past_queries", ""),
        ("past_queries", "no base64!"),
        ("past_queries", 3),
        ("frequency", {}),
        ("frequency", None),
        ("top", "many"),
    ],
)
def test_damaged_ones_are_refused(learned_score: LearnedScore, name: str, value: object) -> None:
    with pytest.raises((ValueError, KeyError, TypeError)):
        learned_score_from_json(learned_score_json(learned_score) | {name: value})


def test_no_group_is_in_both_halves() -> None:
    groups = np.random.default_rng(0).integers(30, size=200)
    half = halves(groups, np.random.default_rng(1))
    assert not set(groups[half]) & set(groups[~half])
    assert 0.3 < half.mean() < 0.7


@pytest.mark.parametrize("right", [0.0, 1.0])
def test_one_kind_of_answer_teaches_nothing(right: float) -> None:
    made = world(7, queries=60)
    known = replace(made.known, right=np.full(60, right))
    assert not known.teaches
    with pytest.raises(InputError, match="too few to learn from"):
        fit_learned_score(known, made.gallery, made.middle, np.random.default_rng(0))


def test_twenty_queries_are_enough_to_learn_something() -> None:
    made = world(8, queries=20)
    known = replace(made.known, right=(np.arange(20) % 2).astype(np.float64))
    learned = fit_learned_score(known, made.gallery, made.middle, np.random.default_rng(0))
    chances = learned.chances(_doubt(learned, made.known, made))
    assert ((chances >= 0) & (chances <= 1)).all()
    same = replace(known, groups=np.zeros(20, np.int64))
    with pytest.raises(InputError, match="at least two things"):
        fit_learned_score(same, made.gallery, made.middle, np.random.default_rng(0))


def test_right_answers_that_are_all_of_one_group_are_no_obstacle() -> None:
    """Then nothing can be held out with both kinds of answers in it."""
    made = world(8, queries=60)
    known = replace(made.known, right=(np.arange(60) < 12).astype(np.float64), groups=np.maximum(np.arange(60), 11))
    learned = fit_learned_score(known, made.gallery, made.middle, np.random.default_rng(0))
    assert np.isfinite(learned.chances(_doubt(learned, known, made))).all()


def test_queries_that_are_all_alike_get_the_mean() -> None:
    made = world(9, queries=40)
    alike = np.repeat(made.known.queries[:1], 40, axis=0)
    known = Known(scan(alike, made.gallery), alike, (np.arange(40) % 4 == 0).astype(np.float64), np.arange(40))
    learned = fit_learned_score(known, made.gallery, made.middle, np.random.default_rng(0))
    np.testing.assert_allclose(learned.chances(_doubt(learned, known, made)), 0.25, atol=0.05)


def test_infinite_signals_are_no_lesson() -> None:
    made = world(10, queries=40)
    made.known.result.log_sum_exp[3] = np.inf
    known = replace(made.known, right=(np.arange(40) % 2).astype(np.float64))
    with pytest.raises(InputError, match="infinite or no number"):
        fit_learned_score(known, made.gallery, made.middle, np.random.default_rng(0))


def test_no_query_speaks_about_itself_or_one_that_asks_for_the_same() -> None:
    """Each known query's signals, read against the past queries of other groups alone, are what is learned from."""
    made = world(11, queries=200, rows=100)
    known = replace(made.known, right=(np.arange(200) % 2).astype(np.float64))
    learned = fit_learned_score(known, made.gallery, made.middle, np.random.default_rng(0))
    stored = known.queries.astype(np.float16).astype(np.float32)
    groups = np.array([known.groups[(stored == past).all(axis=1)][0] for past in learned.around.queries])
    assert len(np.unique(groups)) == len(groups) < 100
    signals = []
    for i, group in enumerate(known.groups):
        alone = known.part(np.arange(200) == i)
        others = Surroundings(learned.around.queries[groups != group], made.middle)
        signals.append(read_signals(alone.result, alone.queries, made.gallery, others)[0])
    familiar = np.array(signals)[:, SIGNAL_NAMES.index("familiar")]
    middle, low = np.quantile(familiar, [0.5, 0.16])
    place = HOME_NAMES.index("familiar")
    assert learned.usual[place] == pytest.approx(middle, rel=1e-4)
    assert learned.spread[place] == pytest.approx(middle - low, rel=1e-3)
    held = np.clip(
        np.array(signals)[:, [SIGNAL_NAMES.index(name) for name in LEARNED_NAMES]], learned.low, learned.high
    )
    np.testing.assert_allclose(learned.mean, held.mean(axis=0), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(learned.scale, held.std(axis=0), rtol=1e-3, atol=1e-4)
