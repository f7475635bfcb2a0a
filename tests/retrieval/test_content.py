"""What of a question is read, and that one which names nothing is told so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evidex.encoders.domain import Domain
from evidex.encoders.model import Model
from evidex.encoders.nearness import Nearness
from evidex.errors import InputError
from evidex.locating.asked import ask
from evidex.retrieval.composing import Composed, composed_readings, encode_composed
from evidex.retrieval.content import names_something, readable
from evidex.retrieval.encoding import encode
from evidex.retrieval.out_of_domain import readings
from evidex.retrieval.retriever import Retriever
from tests.retrieval.archive import arbitrary_gallery, picture, tiny_model


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("a river 🚀🚀", "a river"),
        ("🏖️ beach ☀️!!!", "beach"),
        ("★ storage_tanks → port ©", "storage tanks port"),
        ("ships??", "ships"),
        ("air\u00adport", "airport"),
        ("two\ufe0f\u20e3 ponds", "two ponds"),
        ("### houses *** near ~ water €", "houses near water"),
        ("parking lot w/o cars", "parking lot without cars"),
        ("houses W/O trees, w/ pool", "houses without trees, with pool"),
        ("a dock w/boats", "a dock with boats"),
    ],
)
def test_symbols_are_no_words(text: str, read: str) -> None:
    assert readable(text) == read


@pytest.mark.parametrize(
    "text",
    ["a river, with trees.", "ship's wake (white)", "Straße am Fluß", "河流", "high-rise", "5-10", "kW/h w/", "🚀",
     "???", ""],
)  # fmt: skip
def test_words_stay_as_they_are_and_so_does_what_has_none(text: str) -> None:
    assert readable(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "pictures", "???", "show me images", "the", "Find", "please show me some pictures, thanks", "🚀🚀", "a photo",
        "satellite images", "aerial view", "what is there?", "42", "show me something", "...", "images in the archive",
    ],
)  # fmt: skip
def test_what_names_nothing(text: str) -> None:
    assert not names_something(text)


@pytest.mark.parametrize(
    "text",
    [
        "ship", "show ships", "pictures of rivers", "satellite", "a drone", "河流", "qwrtz", "scene with a church",
        "show jumping arena", "747 jet", "viewpoint", "seeing", "🚢 ship",
    ],
)  # fmt: skip
def test_what_names_something(text: str) -> None:
    assert names_something(text)


def test_symbols_do_not_move_a_question() -> None:
    model = tiny_model()
    for plain, decorated in (("a river", "a river 🚀"), ("dense houses near a road", "★ dense houses near a road ???")):
        np.testing.assert_array_equal(*encode(model, [plain, decorated], "text"))


def test_a_question_that_names_nothing_is_told_so(tmp_path: Path) -> None:
    gallery = arbitrary_gallery(tmp_path / "g", tiny_model(), 30)
    for retriever in (Retriever(gallery), Retriever(gallery, abstain_ratio=0.0)):
        for answer in retriever.search_batch(texts=["pictures", "???", "🚀"]):
            assert (answer.verdict, answer.standing.level) == ("abstained", "nothing_asked")
            assert answer.headline == "There is nothing to look for in this"
            assert "name a thing" in answer.explanation
            assert answer.explanation.count(".") == 1
            assert answer.json()["reasons"] == ["nothing_asked"]
    with pytest.raises(InputError, match="'pictures' names nothing that could be seen; name a thing"):
        ask(gallery.model, "pictures", "text")


def test_known_words_beside_unknown_ones_are_counted() -> None:
    plain = tiny_model()
    table = Nearness(("harbor", "ships", "socks", "violin"), np.array([255, 255, 10, 10], np.uint8))
    known = Domain(
        frozenset({"ships", "socks", "a", "in", "with", "harbor"}),
        np.zeros(plain.dim, np.float32),
        np.eye(1, plain.dim, dtype=np.float32),
        np.array([0, 1e-6], np.float32),
        nearness=table,
    )
    model = Model(plain.encoder, plain.temperature, domain=known)
    texts = ["a socks", "ships with socks", "ships in a harbor with a violin", "a violin"]
    read = readings(model, texts, encode(model, texts, "text"), "text")
    assert [(one.new_words, one.mostly_known) for one in read] == [
        ((), True),
        ((), True),
        (("violin",), True),
        (("violin",), False),
    ]


def test_words_that_name_nothing_do_not_count_beside_an_example() -> None:
    model, example = tiny_model(), picture(1)

    def vector(question: Composed) -> np.ndarray:
        return np.asarray(encode_composed(model, [question], lambda _: np.zeros(model.dim, np.float32))[0])

    silent, empty_words = Composed(None, (example,), ("river",)), Composed("pictures", (example,), ("river",))
    np.testing.assert_array_equal(vector(silent), vector(empty_words))
    assert not composed_readings(model, [empty_words])[0].names_nothing
    assert composed_readings(model, [Composed("???", (), ("river",))])[0].names_nothing


@pytest.mark.parametrize(("text", "names"), [("747", True), ("an A380", True), ("I-95", True), ("3", False)])
def test_a_number_of_several_signs_may_be_a_name(text: str, names: bool) -> None:
    assert names_something(text) == names


@pytest.mark.parametrize(
    ("text", "word"),
    [("not a river", "not"), ("an island without trees", "without"), ("No ships", "No"), ("a notable knot", None),
     ("anything other than forest", "other than"), ("land free of houses", "free of"), ("nothing but trees", None),
     ("homes far apart from one another", None), ("a free of charge car park", None), ("isn\u2019t a river", "isn't"),
     ("neither trees nor houses", "neither"), ("non-residential", "non"), ("a treeless hill", "treeless"),
     ("few trees", "few"), ("a few trees", None), ("fewer trees", "fewer"), ("0 ships", "0"),
     ("zero ships", "zero"), ("a harbor with 0 ships", "0"), ("ground zero memorial", None), ("0 degrees", None),
     ("zero emission buses", None), ("a harbor at 10.0 km", None), ("zero ships without sails", "zero"),
     ("fields - river", "-"), ("fields \u2013 river", "\u2013"), ("fields \u2014 a wide river", "\u2014"),
     ("show me fields \u2212 river", "\u2212"), ("high - rise buildings", None), ("north - south runway", None),
     ("5 - 10 houses", None), ("- river", None), ("a high-rise", None), ("fields, no river - lake", "no"),
     ("a river \u2013 wide and brown \u2013 flows past", None),
     ("hardly any houses", "hardly any"),
     ("a lot w/o cars", "without")],
)  # fmt: skip
def test_words_that_deny_are_doubted(text: str, word: str | None) -> None:
    model = tiny_model()
    assert readings(model, [text], encode(model, [text], "text"), "text")[0].negated == word
