"""A gallery that learns from queries with known answers: what is stored, and how searches are judged by it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from evidex.errors import DataError, InputError
from evidex.retrieval.certainty import calibrating
from evidex.retrieval.certainty.calibrating import GuaranteeRequest, KnownQuery, calibrate
from evidex.retrieval.certainty.calibration_store import calibration_name, forget, load_policy, read_calibration
from evidex.retrieval.certainty.guarantee import find_threshold
from evidex.retrieval.certainty.self_calibrating import self_calibrate
from evidex.retrieval.encoding import encode
from evidex.retrieval.filters import NO_FILTERS, Filters
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.refine import NEVER
from evidex.retrieval.retriever import Retriever
from evidex.retrieval.rows import Row, item_id
from evidex.retrieval.searchable import OwnRows
from tests.retrieval.archive import WORDS, tiny_model
from tests.retrieval.certainty.world import unit

TEXTS = [f"{word} number {n} of {n * n}" for n in range(80) for word in WORDS]


def _gallery(path: Path, captions: dict[int, tuple[str, ...]] | None = None) -> Gallery:
    made = Gallery.create(path, tiny_model())
    rows = [
        Row(item_id(str(n)), str(n), "image", f"{n:064x}", captions=(captions or {}).get(n, ())) for n in range(120)
    ]
    made.append(rows, unit(np.random.default_rng(0).standard_normal((120, 32))))
    return made


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Gallery:
    return _gallery(tmp_path_factory.mktemp("learning") / "g")


@pytest.fixture(scope="module")
def known(gallery: Gallery) -> list[KnownQuery]:
    """Texts that ask for a row they find, or, every third, for one that they do not."""
    found = Retriever(gallery).search_batch(texts=TEXTS, top=120)
    return [
        KnownQuery(text, frozenset([answer.hits[100 if n % 3 == 0 else n % 10].id]))
        for n, (text, answer) in enumerate(zip(TEXTS, found, strict=True))
    ]


def test_labelled_queries_teach_and_searches_are_judged_by_it(gallery: Gallery, known: list[KnownQuery]) -> None:
    outcome = calibrate(
        gallery, known, "text", guarantee=GuaranteeRequest(0.5, 0.1, 10), score="learned", rng=np.random.default_rng(0)
    )
    assert outcome.calibration.score == "learned"
    assert outcome.worth is not None
    assert outcome.worth.queries == outcome.labelled == len(TEXTS)
    assert 0 < outcome.taught < len(TEXTS)
    assert len(outcome.calibration.scores) == len(TEXTS) - outcome.taught
    assert outcome.guarantee is not None
    # Of those that did not teach one for each row that is asked for; a fifth of these places the candidates.
    assert 0 < outcome.guarantee.tested < 0.8 * len({row for query in known for row in query.relevant})

    policy = load_policy(gallery, "text", "images", 0.1, 0.02)
    assert policy is not None
    retriever, rows = Retriever(gallery), OwnRows(gallery)
    for top in (1, 3, 10, 40):
        answers = retriever.search_batch(texts=TEXTS[:9], top=top, refine=NEVER)
        assert {len(answer.hits) for answer in answers} == {top}
        vectors = encode(gallery.model, TEXTS[:9], "text")
        doubt = policy.score(rows.scan(vectors, rows.select(NO_FILTERS, "images"), 10), vectors, gallery.vectors)
        expected = policy.calibration.percentile(doubt)
        assert [answer.percentile for answer in answers] == pytest.approx(expected.tolist(), abs=0.02)
        chances = policy.chances(doubt, searched=120)
        assert chances is not None
        assert [answer.standing.chance for answer in answers] == pytest.approx(chances.tolist(), abs=1e-4)
        for answer in answers:
            said = f"about {answer.standing.chance:.0%} had the very one asked for among the first 10"
            assert (said in " ".join(answer.details)) == (answer.verdict != "abstained")
            assert (answer.json()["chance"], answer.json()["chance_top"]) == (answer.standing.chance, 10)
    # Among so many fewer rows more answers are right than was learned.
    few = retriever.search_batch(texts=TEXTS[:9], filters=Filters(glob="?"), refine=NEVER)
    assert {(answer.standing.chance, answer.standing.chance_top) for answer in few} == {(None, None)}
    assert policy.chances(doubt, searched=110) is not None


def test_the_guarantee_is_tested_on_queries_that_did_not_teach(gallery: Gallery) -> None:
    """Where answers are right or wrong by the throw of a coin, learning them by heart must not found a guarantee."""
    found = Retriever(gallery).search_batch(texts=TEXTS, top=120)
    kept = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        thrown = [
            KnownQuery(
                text, frozenset([answer.hits[rng.integers(10) if rng.random() < 0.5 else rng.integers(60, 120)].id])
            )
            for text, answer in zip(TEXTS, found, strict=True)
        ]
        outcome = calibrate(gallery, thrown, "text", guarantee=GuaranteeRequest(0.3, 0.1, 10), score="learned", rng=rng)
        assert outcome.guarantee is not None
        kept += outcome.guarantee.threshold is not None
    assert kept <= 3


def test_same_seed_same_file(gallery: Gallery, known: list[KnownQuery]) -> None:
    path = gallery.path / calibration_name("text", "images")
    calibrate(gallery, known, "text", score="learned", rng=np.random.default_rng(3))
    first = path.read_bytes()
    calibrate(gallery, known, "text", score="learned", rng=np.random.default_rng(3))
    assert path.read_bytes() == first
    assert len(first) < 200_000


def test_queries_without_answers_or_with_one_kind_of_answer_fall_back_to_vacuity(
    gallery: Gallery, known: list[KnownQuery]
) -> None:
    silent = [KnownQuery(text) for text in TEXTS]
    best = Retriever(gallery).search_batch(texts=TEXTS, top=1)
    sure = [KnownQuery(text, frozenset([answer.hits[0].id])) for text, answer in zip(TEXTS, best, strict=True)]
    for queries in (silent, sure, known[:20]):
        outcome = calibrate(gallery, queries, "text", rng=np.random.default_rng(0))
        assert (outcome.calibration.score, outcome.worth, outcome.taught) == ("vacuity", None, 0)
        assert len(outcome.calibration.scores) == len(queries)
        with pytest.raises(InputError, match="teach too little"):
            calibrate(gallery, queries, "text", score="learned", rng=np.random.default_rng(0))
    assert calibrate(gallery, known, "text", score="belief", rng=np.random.default_rng(0)).worth is None


def test_unlabelled_queries_take_part_in_the_percentiles(gallery: Gallery, known: list[KnownQuery]) -> None:
    more = [*known, *(KnownQuery(f"something else {n}") for n in range(30))]
    outcome = calibrate(gallery, more, "text", score="learned", rng=np.random.default_rng(0))
    assert outcome.labelled == len(known)
    assert len(outcome.calibration.scores) == len(more) - outcome.taught


def test_a_lesson_that_is_no_better_than_similarity_is_not_used(gallery: Gallery, known: list[KnownQuery]) -> None:
    """Here which queries are right has nothing to do with what they find."""
    outcome = calibrate(gallery, known, "text", rng=np.random.default_rng(0))
    learned = calibrate(gallery, known, "text", score="learned", rng=np.random.default_rng(0)).worth
    assert learned is not None
    assert learned.learned < learned.similarity
    assert (outcome.calibration.score, outcome.taught) == ("vacuity", 0)


@pytest.fixture(scope="module")
def captioned(tmp_path_factory: pytest.TempPathFactory) -> Gallery:
    """Rows that lie near their captions, some so near that they are found."""
    model = tiny_model()
    made = Gallery.create(tmp_path_factory.mktemp("captioned") / "g", model)
    rows = [Row(item_id(str(n)), str(n), "image", f"{n:064x}", captions=(text,)) for n, text in enumerate(TEXTS)]
    rng = np.random.default_rng(0)
    blur = 0.05 * rng.random((len(TEXTS), 1)) * rng.standard_normal((len(TEXTS), 32))
    made.append(rows, unit(model.encode_texts(TEXTS) + blur))
    return made


def test_a_gallery_with_captions_learns_from_them(captioned: Gallery) -> None:
    text, image = self_calibrate(captioned, np.random.default_rng(0), score="learned")
    assert text.source.startswith("captions of the gallery and common questions")
    assert text.labelled == len(TEXTS)
    assert 100 <= text.taught <= len(TEXTS) - 100
    assert text.calibration.score == "learned"
    assert image.calibration.score == "vacuity"
    assert self_calibrate(captioned, np.random.default_rng(0), score="belief")[0].calibration.score == "belief"


def test_captions_teach_where_the_given_queries_are_too_few_and_these_all_judge(captioned: Gallery) -> None:
    few = [KnownQuery(f"{TEXTS[n]} again", frozenset([item_id(str(n))])) for n in range(40)]
    request = GuaranteeRequest(0.9, 0.1, 10)
    unsure = calibrate(captioned, few, "text", guarantee=request, rng=np.random.default_rng(0))
    assert unsure.calibration.score == "vacuity"  # forty answers do not show that it beats chance
    outcome = calibrate(captioned, few, "text", score="learned", guarantee=request, rng=np.random.default_rng(0))
    assert (outcome.calibration.score, outcome.labelled, outcome.taught) == ("learned", 40, 0)
    assert len(outcome.calibration.scores) == 40
    assert outcome.guarantee is not None
    assert outcome.guarantee.tested == 32  # all but the fifth that places the candidates
    learned_score = outcome.calibration.learned_score
    assert learned_score is not None
    own = np.asarray(tiny_model().encode_texts(TEXTS[:40]), np.float16)
    past = learned_score.around.queries
    assert not (past[:, None] == own[None].astype(np.float32)).all(-1).any()  # none of these taught


def test_given_calibrations_can_be_forgotten(captioned: Gallery) -> None:
    few = [KnownQuery(TEXTS[n]) for n in range(40)]
    calibrate(captioned, few, "text", rng=np.random.default_rng(0))
    self_calibrate(captioned, np.random.default_rng(0))
    assert (captioned.path / calibration_name("text", "images")).exists()
    forget(captioned)
    assert not (captioned.path / calibration_name("text", "images")).exists()
    assert load_policy(captioned, "text", "images", 0.1, 0.02) is not None  # what it made of its own content


def test_a_stored_learned_score_is_read_whole_or_refused(
    gallery: Gallery, known: list[KnownQuery], tmp_path: Path
) -> None:
    calibrate(gallery, known, "text", score="learned", rng=np.random.default_rng(0))
    stored = json.loads((gallery.path / calibration_name("text", "images")).read_text())
    path = tmp_path / "changed.json"
    assert stored["format"] == 5
    del stored["check"]
    stored["format"] = 3  # the last one without a checksum, which would refuse every change
    changes: list[dict[str, object]] = [
        {"learned_score": None},
        {"score": "vacuity"},
        {"learned_score": stored["learned_score"] | {"weights": []}},
        {"learned_score": stored["learned_score"] | {"past_queries": "%%%"}},
        {"learned_score": []},
    ]
    for change in changes:
        path.write_text(json.dumps(stored | change))
        with pytest.raises(DataError, match="is no calibration"):
            read_calibration(path)
    older = {key: value for key, value in stored.items() if key != "learned_score"}
    path.write_text(json.dumps(older | {"format": 2, "score": "vacuity"}))
    assert read_calibration(path).learned_score is None


@pytest.mark.parametrize("helpful", [False, True])
def test_a_guarantee_is_about_answers_as_they_are_after_refinement(
    gallery: Gallery, monkeypatch: pytest.MonkeyPatch, helpful: bool
) -> None:
    """Queries that are refined turn wrong, or right, all at once; the others are right before and after."""
    blur = 0.05 * np.random.default_rng(1).standard_normal((120, 32))
    pictures = unit(gallery.vectors + blur)
    monkeypatch.setattr(calibrating, "encode", lambda _model, queries, *_: pictures[queries])
    rows = OwnRows(gallery)
    first = rows.scan(pictures, rows.select(NO_FILTERS, "images"), 10)
    doubt = -np.asarray(first.log_mean_evidence)
    refined = doubt > np.sort(doubt)[-13]  # a tenth
    wanted = np.arange(120)  # each a row of its own
    if helpful:
        wanted[refined] = np.roll(wanted[refined], 1)
    assert np.array_equal(first.ids[:, 0] == wanted, ~(refined & helpful))
    again = gallery.vectors[wanted] * np.float32(1 if helpful else -1)
    monkeypatch.setattr(calibrating, "encode_again", lambda _model, queries, *_: again[queries])

    known = [KnownQuery(n, frozenset([item_id(str(row))])) for n, row in enumerate(wanted.tolist())]
    outcome = calibrate(
        gallery, known, "image", guarantee=GuaranteeRequest(0.4, 0.1, 1), score="vacuity", rng=np.random.default_rng(0)
    )
    right = ~refined | helpful
    once = np.sort(np.unique(wanted, return_index=True)[1])  # queries for the same row count once
    expected = find_threshold(doubt[once], right[once], alpha=0.4, delta=0.1, rng=np.random.default_rng(0))
    assert expected.threshold is not None
    assert (expected.wrong == 0) == helpful
    assert outcome.guarantee is not None
    assert outcome.guarantee.threshold == pytest.approx(expected.threshold)
    assert (outcome.guarantee.answered, outcome.guarantee.wrong) == (expected.answered, expected.wrong)


def test_queries_that_share_an_answer_count_once_for_a_guarantee(gallery: Gallery) -> None:
    found = Retriever(gallery).search_batch(texts=TEXTS[:100], top=1)
    known = [KnownQuery(text, frozenset([answer.hits[0].id])) for text, answer in zip(TEXTS[:100], found, strict=True)]
    asked_for = len({next(iter(query.relevant)) for query in known})
    assert asked_for < 100
    outcome = calibrate(
        gallery, known, "text", guarantee=GuaranteeRequest(0.5, 0.1, 10), score="vacuity", rng=np.random.default_rng(0)
    )
    assert outcome.guarantee is not None
    assert outcome.guarantee.tested == asked_for - round(0.2 * asked_for)
