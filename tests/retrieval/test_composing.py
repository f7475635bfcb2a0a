"""Questions in several parts: how they read, what they become, and that their answers are not judged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evidex.errors import InputError
from evidex.retrieval.certainty.calibration import Calibration
from evidex.retrieval.certainty.calibration_store import store_calibration
from evidex.retrieval.composing import Composed, asked, encode_composed
from evidex.retrieval.encoding import encode
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.queries import DIRECTIONS
from evidex.retrieval.refine import ALWAYS
from evidex.retrieval.retriever import Retriever, Search
from evidex.retrieval.rows import Row, item_id
from evidex.retrieval.standing import Level, Reason
from tests.retrieval.archive import arbitrary_gallery, picture, tiny_model


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Gallery:
    made = arbitrary_gallery(tmp_path_factory.mktemp("g") / "gallery", tiny_model(), 40)
    for direction in DIRECTIONS:
        scores = np.linspace(-30.0, 30.0, 50)
        store_calibration(made, Calibration(made.info.model_fingerprint, direction, 40, "vacuity", scores), "images")
    return made


@pytest.mark.parametrize(
    ("text", "wanted", "without"),
    [
        ("fields -clouds", "fields", ("clouds",)),
        ("-clouds fields", "fields", ("clouds",)),
        ("fields -clouds -snow", "fields", ("clouds", "snow")),
        ('an airport -"parking lot" at night', "an airport at night", ("parking lot",)),
        ("fields \u2013clouds", "fields", ("clouds",)),
        ("fields \u2212clouds", "fields", ("clouds",)),
        ('planes -"parking lot', "planes", ("parking lot",)),
        ("planes -\u201cparking lot\u201d", "planes", ("parking lot",)),
        ("fields -half-timbered", "fields", ("half-timbered",)),
        ("high-rise buildings", "high-rise buildings", ()),
        ("5-10 ships", "5-10 ships", ()),
        ("a river - a bridge", "a river - a bridge", ()),
        ("-5 degrees", "-5 degrees", ()),
    ],
)
def test_a_minus_before_a_word_says_what_is_not_wanted(text: str, wanted: str, without: tuple[str, ...]) -> None:
    direction, query = asked(text)
    if without:
        assert (direction, query) == ("composed", Composed(wanted, without=without))
    else:
        assert (direction, query) == ("text", wanted)


def test_plain_questions_stay_plain() -> None:
    assert asked("a river") == ("text", "a river")
    assert asked(None, ["a.png"]) == ("image", "a.png")
    assert asked("a river", ["a.png"])[0] == asked(None, ["a.png", "b.png"])[0] == "composed"


@pytest.mark.parametrize(
    ("text", "images", "words"),
    [
        (None, [], "give a text or an image"),
        ("-clouds", [], "only what is not wanted"),
        ("a river -x", [3], "give a path or a Pillow image"),
        ("  ", ["a.png"], "empty"),
        (None, ["a.png"] * 17, "at most 16"),
    ],
)
def test_what_cannot_be_meant_is_refused(text: str | None, images: list[object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        asked(text, images)


def test_parts_are_added_and_taken_off_on_the_sphere() -> None:
    model, one, other = tiny_model(), picture(1), picture(2)
    pictures, texts = encode(model, [one, other], "image"), encode(model, ["a river", "dense houses", "cars"], "text")

    def unit(vector: np.ndarray) -> np.ndarray:
        return np.asarray(vector / np.linalg.norm(vector))

    expected = [
        (Composed("a river", (one,)), pictures[0] + texts[0]),
        (Composed(None, (one, other)), pictures.sum(axis=0)),
        (Composed("a river", without=("dense houses",)), texts[0] - 0.5 * texts[1]),
        (Composed("a river", without=("dense houses", "cars")), texts[0] - 0.5 * unit(texts[1] + texts[2])),
        (Composed("a river", (one, other)), unit(pictures.sum(axis=0)) + texts[0]),
    ]
    found = encode_composed(model, [question for question, _ in expected], lambda _: pytest.fail("nothing is marked"))
    np.testing.assert_allclose(found, [unit(vector) for _, vector in expected], atol=1e-6)
    assert found.dtype == np.float32


def test_marked_hits_draw_the_question_to_them_or_away(gallery: Gallery) -> None:
    plain = Retriever(gallery).search(text="a river", top=40)
    liked, disliked = plain.hits[20].id, plain.hits[0].id
    direction, query = asked("a river", right=[liked, "gone"], wrong=[disliked])
    (answer,) = Retriever(gallery).answer([query], Search(direction, top=40))
    ranks = {hit.id: hit.rank for hit in answer.hits}
    assert ranks[liked] < 20
    assert ranks[disliked] > 1


def test_no_calibration_judges_such_an_answer(gallery: Gallery) -> None:
    retriever = Retriever(gallery)
    assert retriever.search(text="a river").standing.is_calibrated
    for parts in ({"text": "a river", "image": picture(1)}, {"text": "a river -houses"}, {"image": [picture(1)] * 2}):
        answer = retriever.search(**parts, refine=ALWAYS)
        assert answer.standing.level is Level.UNJUDGED
        assert answer.standing.reasons[0] is Reason.SEVERAL_PARTS
        assert answer.verdict == "answered"
        assert (answer.percentile, answer.guarantee, answer.refinement) == (None, None, None)
        assert "questions in several parts" in answer.explanation
    assert retriever.search(text="a river -houses").query == "a river -houses"


def test_what_is_not_wanted_moves_down(tmp_path: Path) -> None:
    model = tiny_model()
    wanted, other = encode(model, ["a river", "dense houses"], "text").astype(np.float64)
    basis = np.linalg.qr(np.stack([wanted, other, np.eye(model.dim)[0]]).T)[0].T
    beside = basis[1] * np.sign(basis[1] @ other)  # what houses have and a river has not
    with_it, alone = wanted + 0.5 * beside, wanted + 0.6 * basis[2]
    made = Gallery.create(tmp_path / "gallery", model)
    rows = [Row(item_id(name), name, "image", f"{n:064x}") for n, name in enumerate(("with it", "alone"))]
    vectors = [vector / np.linalg.norm(vector) for vector in (with_it, alone)]
    made.append(rows, np.stack(vectors).astype(np.float32))
    retriever = Retriever(made)
    assert [hit.path for hit in retriever.search(text="a river").hits] == ["with it", "alone"]
    assert [hit.path for hit in retriever.search(text="a river", without="dense houses").hits] == ["alone", "with it"]
