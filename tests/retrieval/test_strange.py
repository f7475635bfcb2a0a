"""Texts that the model was not taught about: refused whatever the archive holds, and never calibrated with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evidex.encoders.acquaintance import Acquaintance, words_of
from evidex.encoders.model import Model
from evidex.errors import InputError
from evidex.retrieval.certainty.calibrating import KnownQuery, Promise, calibrate
from evidex.retrieval.certainty.common_questions import COMMON_QUESTIONS
from evidex.retrieval.certainty.self_calibrating import self_calibrate
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.retriever import Retriever
from evidex.retrieval.rows import Row, item_id
from evidex.retrieval.untaught import strange_words
from tests.retrieval.archive import WORDS, arbitrary_gallery, picture, tiny_model

KNOWN = [f"{word} number {n}" for n in range(15) for word in WORDS[:4]]
STRANGE = "a giraffe playing the violin"
LENGTHS = np.linspace(0, 1, 101, dtype=np.float32)


@pytest.fixture
def gallery(tmp_path: Path) -> Gallery:
    """Its model knows the plane that ``KNOWN`` spans, and was tested with texts that lie in it."""
    plain = tiny_model()
    model = Model(plain.encoder, plain.temperature)
    vectors = model.encode_texts(KNOWN)
    basis = np.linalg.svd(vectors, full_matrices=False)[2][:16].astype(np.float32)
    words, mean = words_of(KNOWN), np.zeros(model.dim, np.float32)
    known = Acquaintance(words, mean, basis, np.array([0.0, 1.0], np.float32))
    limit = max(known.outside(vectors).max(), 1e-3)
    model.acquaintance = Acquaintance(words, mean, basis, np.array([0.0, 1.1 * limit], np.float32))
    assert known.outside(model.encode_texts([STRANGE]))[0] > 1.2 * limit
    return arbitrary_gallery(tmp_path / "g", model, 50)


def test_a_strange_text_is_refused_with_and_without_a_calibration(gallery: Gallery) -> None:
    for _ in range(2):
        strange, plain = Retriever(gallery).search_batch(texts=[STRANGE, KNOWN[0]], top=3)
        assert (strange.verdict, strange.standing.reading.new_words) == (
            "abstained",
            ("giraffe", "playing", "the", "violin"),
        )
        assert strange.headline == "The model does not know this"
        assert "was never taught 'giraffe', 'playing', 'the' and more, nor" in strange.explanation
        assert strange.json()["new_words"][0] == "giraffe"
        assert (strange.percentile, strange.standing.chance, strange.promise) == (None, None, None)
        assert len(strange.hits) == 3
        assert plain.verdict != "abstained"
        assert plain.standing.reading.new_words == ()
        calibrate(gallery, [KnownQuery(text) for text in KNOWN], "text", rng=np.random.default_rng(0))


def test_a_text_of_known_words_is_not_strange_however_odd(gallery: Gallery) -> None:
    odd = " ".join(reversed(KNOWN[5].split())) * 3
    assert Retriever(gallery).search(text=odd).standing.reading.new_words == ()


def test_who_never_wants_to_be_refused_is_not_but_gets_no_promise(gallery: Gallery) -> None:
    known = [KnownQuery(text, frozenset([item_id(str(n % 50))])) for n, text in enumerate(KNOWN)]
    calibrate(gallery, known, "text", promise=Promise(0.99, 0.5, 10), rng=np.random.default_rng(0))
    strange, plain = Retriever(gallery, abstain_ratio=0.0).search_batch(texts=[STRANGE, KNOWN[0]])
    assert plain.promise is not None
    assert strange.promise is None
    assert "never taught" not in strange.explanation or strange.verdict == "abstained"


def test_pictures_are_not_judged_by_texts(gallery: Gallery) -> None:
    assert Retriever(gallery).search(image=picture(0)).standing.reading.new_words == ()


def test_a_gallery_whose_captions_are_strange_is_measured_by_common_questions(tmp_path: Path, gallery: Gallery) -> None:
    model = gallery.model
    assert model.acquaintance is not None
    lenient = Acquaintance(
        words_of(COMMON_QUESTIONS), model.acquaintance.mean, model.acquaintance.directions, model.acquaintance.lengths
    )
    made = Gallery.create(tmp_path / "foreign", Model(model.encoder, model.temperature, acquaintance=lenient))
    captions = [(f"ein Fluss zwischen Feldern {n}",) for n in range(50)]
    rows = [Row(item_id(str(n)), str(n), "image", f"{n:064x}", captions=captions[n]) for n in range(50)]
    made.append(rows, np.array(gallery.vectors))
    text, image = self_calibrate(made, np.random.default_rng(0))
    assert (text.strange, text.labelled) == (50, 0)
    assert len(text.calibration.scores) == len(COMMON_QUESTIONS)
    assert image.source == "images of the gallery"
    made.model.acquaintance = model.acquaintance  # which knows none of the common questions either
    (image,) = self_calibrate(made, np.random.default_rng(0))
    assert image.source == "images of the gallery"


def test_strange_queries_neither_calibrate_nor_found_a_promise(gallery: Gallery) -> None:
    known = [KnownQuery(text, frozenset([item_id(str(n % 50))])) for n, text in enumerate(KNOWN)]
    strange = [KnownQuery(f"{STRANGE} {n}", frozenset([item_id("0")])) for n in range(30)]

    def stored(queries: list[KnownQuery]) -> tuple[list[float], int]:
        outcome = calibrate(gallery, queries, "text", promise=Promise(0.5, 0.1, 10), rng=np.random.default_rng(0))
        assert outcome.guarantee is not None
        assert outcome.strange == len(queries) - len(known)
        return outcome.calibration.scores.tolist(), outcome.guarantee.tested

    assert stored(known + strange) == stored(known)
    with pytest.raises(InputError, match="30 of 30 queries are about things the model was never taught"):
        calibrate(gallery, strange, "text", rng=np.random.default_rng(0))


def test_a_text_is_strange_beyond_nineteen_of_twenty_that_did_not_train(gallery: Gallery) -> None:
    dim = gallery.model.dim
    known = Acquaintance(words_of(KNOWN), np.zeros(dim, np.float32), np.eye(dim, dtype=np.float32)[:4], LENGTHS)
    gallery.model.acquaintance = known
    outside = np.array([0.5, 0.92, 0.94, 0.96, 0.97, 2.0])
    vectors = np.outer(outside, np.eye(dim)[-1]).astype(np.float32)
    found = strange_words(known, ["giraffe"] * 6, vectors, "text")
    assert found == [(), (), (), ("giraffe",), ("giraffe",), ("giraffe",)]
