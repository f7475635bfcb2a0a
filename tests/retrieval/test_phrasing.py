from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evidex.encoders.domain import Domain, words_of
from evidex.encoders.model import Model
from evidex.retrieval.encoding import encode_again
from evidex.retrieval.phrasing import asked_for
from evidex.retrieval.refine import AS_CALIBRATED
from evidex.retrieval.retriever import Retriever
from tests.retrieval.archive import WORDS, arbitrary_gallery, tiny_model


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("find all images with a river", "a river"),
        ("Show me a river", "a river"),
        ("please find the airport", "the airport"),
        ("Can you show me pictures of the beach?", "the beach?"),
        ("search for a bridge over water", "a bridge over water"),
        ("list all scenes containing tennis courts", "tennis courts"),
        ("I want to see some aerial photos of farmland", "farmland"),
        ("an aerial image of a park", "a park"),
        ("imagery where there are ships", "ships"),
        ("search: storage tanks", "storage tanks"),
        ("is there a stadium in the archive?", "a stadium"),
        ("Are there any ponds in our collection, please?", "ponds"),
        ("everything that looks like a port", "a port"),
        ("Find me all the pictures showing airplanes please", "airplanes"),
        ("an orthophoto of a viaduct, thank you.", "a viaduct"),
        ("list of bridges", "bridges"),
        ("where do waves break on sand?", "waves break on sand?"),
        ("which homes have lawns", "homes have lawns"),
        ("Which pictures are full of trees", "trees"),
        ("which areas are used for agriculture?", "agriculture?"),
        ("how many ships", "ships"),
        ("where can one play tennis", "play tennis"),
        ("Where can cars cross a river?", "cars cross a river?"),
        ("where would you land", "land"),
        ("What does a large city look like from the air?", "a large city"),
        ("find freeways seen from above, please", "freeways"),
        ("ships viewed from space", "ships"),
        ("a harbour, photographed from a drone", "a harbour"),
        ("I'm looking for vineyards", "vineyards"),
        ("let me see a golf course somewhere", "a golf course"),
        ("Give me everything with boats", "boats"),
        ("has anyone seen a roundabout?", "a roundabout?"),
        ("which parks are there?", "parks"),
        ("which bridges are there in the archive", "bridges"),
        ("which tile is a harbor", "a harbor"),
        ("which is a harbor", "a harbor"),
        ("is a ship anywhere?", "a ship"),
        ("are the boats to be seen", "the boats"),
        ("show jetties", "jetties"),
        ("find spots without trees", "spots without trees"),
        ("show gardens", "gardens"),
        ("search lighthouses", "lighthouses"),
        ("give me a look at some marinas", "some marinas"),
        ("I'd like to see an oil depot", "an oil depot"),
        ("have a look for vineyards", "vineyards"),
        ("pull up every stadium", "stadium"),
        ("fetch me the quarries", "the quarries"),
        ("let me have a closer look at the marina", "the marina"),
        ("I'd like to find ships", "ships"),
        ("I would like you to show me dams", "dams"),
        ("pull up bars in a park", "pull up bars in a park"),
    ],
)
def test_the_request_is_taken_off(text: str, rest: str) -> None:
    assert asked_for(text) == rest


@pytest.mark.parametrize(
    "text",
    [
        "a river", "many planes near a terminal", "find", "show", "images", "the images", "getting wet", "showers",
        "please", "there is a river .", "a boat in the archive room", "anything", "views", "a scene",
        "is a ship", "where", "which", "whichever road",
        "what does a", "from above", "houses that look like boxes", "far from the airport", "a runway from a plane",
        "let me",
        "show jumping arena", "show ring", "show caves", "display boards", "Search lights",
        "search and rescue helicopter",
        "give way sign", "find spot", "listed buildings", "a picture frame", "finds of gold", "", "   ", "find all ",
    ],
)  # fmt: skip
def test_what_is_no_request_or_nothing_else_stays(text: str) -> None:
    assert asked_for(text) == text


def test_long_texts_are_looked_at_quickly() -> None:
    for text in (
        "show me all " * 20_000,
        "all " * 50_000,
        "i want " * 30_000,
        " " * 100_000 + "x",
        "x" + " " * 100_000,
    ):
        assert asked_for(text).strip()


def test_a_question_finds_the_same_however_it_is_put(tmp_path: Path) -> None:
    plain = tiny_model()
    known = Domain(
        words_of(WORDS),
        np.zeros(plain.dim, np.float32),
        np.eye(1, plain.dim, dtype=np.float32),
        np.array([0, 1e-6], np.float32),
    )
    gallery = arbitrary_gallery(tmp_path / "g", Model(plain.encoder, plain.temperature, domain=known), 30)
    asked, bare = Retriever(gallery).search_batch(texts=[f"find all images of {WORDS[0]}", WORDS[0]])
    assert [(hit.id, hit.score) for hit in asked.hits] == [(hit.id, hit.score) for hit in bare.hits]
    assert asked.uncertainty == bare.uncertainty
    assert (asked.standing.reading.new_words, asked.query) == ((), f"find all images of {WORDS[0]}")
    again = encode_again(gallery.model, [f"show me {WORDS[1]}", WORDS[1]], "text", AS_CALIBRATED)
    np.testing.assert_array_equal(again[0], again[1])
