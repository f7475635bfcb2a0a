"""Texts that find no match at all: refused, however the other questions of the same archive fare."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evidex.encoders.domain import Domain
from evidex.encoders.model import Model
from evidex.retrieval.certainty.calibrating import KnownQuery, calibrate
from evidex.retrieval.certainty.self_calibrating import self_calibrate
from evidex.retrieval.filters import Filters
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.retriever import Retriever
from evidex.retrieval.rows import Row, item_id
from tests.retrieval.archive import WORDS, picture, tiny_model

HELD, LACKING = WORDS[0], WORDS[1]
FLOOR = 0.5


@pytest.fixture
def gallery(tmp_path: Path) -> Gallery:
    """Rows like HELD and unlike LACKING, under names that begin with a and b; nothing is outside its model's domain."""
    plain = tiny_model()
    nowhere = np.zeros(plain.dim, np.float32)
    known = Domain(
        frozenset("a"), nowhere, np.eye(1, plain.dim, dtype=np.float32), np.array([0, 9], np.float32)
    ).with_matches(np.full(5, FLOOR, np.float32))
    made = Gallery.create(tmp_path / "g", Model(plain.encoder, plain.temperature, domain=known))
    held, lacking = plain.encode_texts([HELD, LACKING])
    near = held + 0.02 * np.random.default_rng(0).standard_normal((20, plain.dim)).astype(np.float32)
    near /= np.linalg.norm(near, axis=1, keepdims=True)
    far = near - (near @ lacking)[:, None] * lacking
    rows = np.concatenate([near, far / np.linalg.norm(far, axis=1, keepdims=True)])
    names = [f"{'ab'[n // 20]}/{n}.tif" for n in range(40)]
    made.append([Row(item_id(name), name, "image", f"{n:064x}") for n, name in enumerate(names)], rows)
    assert (rows[:20] @ held).min() > FLOOR + 0.05
    assert (rows[20:] @ lacking).max() < 1e-5
    return made


ONLY_B = Filters(glob="b/*")


def test_what_finds_no_match_is_refused_with_and_without_a_calibration_of_its_own(gallery: Gallery) -> None:
    for _ in range(2):
        answer = Retriever(gallery).search(text=LACKING, filters=ONLY_B, top=3)
        assert (answer.verdict, answer.headline) == ("abstained", "Probably nothing here matches")
        assert answer.standing.floor == pytest.approx(FLOOR)
        assert (answer.percentile, answer.standing.chance, answer.refinement) == (None, None, None)
        assert answer.explanation.startswith("Even the nearest thing here is hardly like your question.")
        assert "0.00 like the question" in answer.details[0]
        assert "nine of ten are at least 0.50" in answer.details[0]
        assert answer.json()["floor"] == pytest.approx(FLOOR)
        assert len(answer.hits) == 3
        found = Retriever(gallery).search(text=HELD, filters=Filters(glob="a/*"))
        assert found.standing.floor is None
        assert found.standing.bar.least == pytest.approx(FLOOR)
        assert found.verdict != "abstained"
        self_calibrate(gallery, np.random.default_rng(0))


def test_queries_that_were_given_know_better(gallery: Gallery) -> None:
    calibrate(gallery, [KnownQuery(f"{LACKING} {n}") for n in range(30)], "text", rng=np.random.default_rng(0))
    answer = Retriever(gallery).search(text=LACKING, filters=ONLY_B)
    assert answer.standing.floor is None
    assert answer.percentile is not None


def test_neither_pictures_nor_those_who_want_no_refusal_are_held_to_it(gallery: Gallery) -> None:
    assert Retriever(gallery).search(image=picture(0), filters=ONLY_B).standing.floor is None
    lenient = Retriever(gallery, abstain_ratio=0.0).search(text=LACKING, filters=ONLY_B)
    assert (lenient.standing.floor, lenient.verdict) == (None, "answered")


def test_a_model_that_was_not_told_refuses_nothing(gallery: Gallery) -> None:
    gallery.model.domain = None
    assert Retriever(gallery).search(text=LACKING, filters=ONLY_B).verdict == "answered"
