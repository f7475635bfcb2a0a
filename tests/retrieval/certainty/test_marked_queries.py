"""Marked questions as known ones: what counts as right, as wrong and as too few."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evidex.errors import InputError
from evidex.retrieval.certainty.calibrating import GuaranteeRequest, calibrate
from evidex.retrieval.certainty.marked_queries import marked_queries
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.marks import Asked, Mark, Marks
from evidex.retrieval.retriever import Retriever
from tests.retrieval.archive import arbitrary_gallery, tiny_model

WORDS = ("planes", "terminal", "river", "fields", "houses", "roads", "lake", "forest")
QUESTIONS = [f"{one} near {other}" for one in WORDS for other in WORDS if one < other]


@pytest.fixture
def gallery(tmp_path: Path) -> Gallery:
    return arbitrary_gallery(tmp_path / "gallery", tiny_model(), 60)


def _mark(gallery: Gallery, text: str, rank: int, says: str) -> None:
    hit = Retriever(gallery).search(text=text, top=rank).hits[-1]
    Marks(gallery.path).add(Mark(Asked(text), hit.id, gallery.find(hit.id).sha256, says))  # type: ignore[arg-type]


def test_a_few_marks_are_told_to_be_too_few(gallery: Gallery) -> None:
    for text in QUESTIONS[:5]:
        _mark(gallery, text, 1, "right")
    with pytest.raises(InputError, match="5 marked questions are too few to calibrate with; mark hits of at least 20"):
        marked_queries(gallery)


def test_marks_say_which_answers_were_right(gallery: Gallery) -> None:
    for number, text in enumerate(QUESTIONS[:24]):
        _mark(gallery, text, 1, "right" if number < 16 else "wrong")
    _mark(gallery, QUESTIONS[0], 2, "wrong")  # one right hit is enough
    Marks(gallery.path).add(Mark(Asked("a river -boats"), "x", "y", "right"))
    Marks(gallery.path).add(Mark(Asked("long ago"), gallery.rows([0])[0].id, "f" * 64, "right"))  # other content
    known = marked_queries(gallery)["text"]
    assert [query.none_right for query in known] == [False] * 16 + [True] * 8
    request = GuaranteeRequest(alpha=0.9, delta=0.5, top=1)
    outcome = calibrate(gallery, known, "text", guarantee=request, rng=np.random.default_rng(0))
    assert (outcome.labelled, outcome.unknown) == (24, 0)
    assert len(outcome.calibration.scores) == 24
    assert outcome.guarantee is not None
    assert outcome.guarantee.tested >= 5  # of those that share no right row, less a fifth
    assert Retriever(gallery).search(text=QUESTIONS[0]).standing.is_calibrated


def test_questions_without_a_right_hit_count_as_wrong(gallery: Gallery) -> None:
    for text in QUESTIONS[:24]:
        _mark(gallery, text, 1, "wrong")
    request = GuaranteeRequest(alpha=0.5, delta=0.1)
    outcome = calibrate(
        gallery, marked_queries(gallery)["text"], "text", guarantee=request, rng=np.random.default_rng(0)
    )
    assert outcome.labelled == 24
    assert outcome.guarantee is not None
    assert outcome.guarantee.threshold is None
