"""Texts that the model was not taught about: refused whatever the archive holds, and never calibrated with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evidex.data.function_words import FUNCTION_WORDS
from evidex.encoders.domain import Domain, words_of
from evidex.encoders.model import Model
from evidex.encoders.nearness import Nearness
from evidex.errors import InputError
from evidex.retrieval.certainty.calibrating import GuaranteeRequest, KnownQuery, calibrate
from evidex.retrieval.certainty.common_questions import COMMON_QUESTIONS
from evidex.retrieval.certainty.self_calibrating import self_calibrate
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.out_of_domain import out_of_domain_words
from evidex.retrieval.retriever import Retriever
from evidex.retrieval.rows import Row, item_id
from tests.retrieval.archive import WORDS, arbitrary_gallery, picture, tiny_model

KNOWN = [f"{word} number {n}" for n in range(15) for word in WORDS[:4]]
OUT_OF_DOMAIN = "a giraffe playing the violin"
LENGTHS = np.linspace(0, 1, 101, dtype=np.float32)


@pytest.fixture
def gallery(tmp_path: Path) -> Gallery:
    """Its model knows the plane that ``KNOWN`` spans, and was tested with texts that lie in it."""
    plain = tiny_model(1)
    model = Model(plain.encoder, plain.temperature)
    vectors = model.encode_texts(KNOWN)
    basis = np.linalg.svd(vectors, full_matrices=False)[2][:16].astype(np.float32)
    words, mean = words_of(KNOWN), np.zeros(model.dim, np.float32)
    known = Domain(words, mean, basis, np.array([0.0, 1.0], np.float32))
    limit = max(known.outside(vectors).max(), 1e-3)
    model.domain = Domain(words, mean, basis, np.array([0.0, 1.1 * limit], np.float32))
    assert known.outside(model.encode_texts([OUT_OF_DOMAIN]))[0] > 1.2 * limit
    return arbitrary_gallery(tmp_path / "g", model, 50)


def test_a_text_out_of_domain_is_refused_with_and_without_a_calibration(gallery: Gallery) -> None:
    for _ in range(2):
        out_of_domain, plain = Retriever(gallery).search_batch(texts=[OUT_OF_DOMAIN, KNOWN[0]], top=3)
        assert (out_of_domain.verdict, out_of_domain.standing.reading.new_words) == (
            "abstained",
            ("giraffe", "playing", "the", "violin"),
        )
        assert out_of_domain.headline == "The model does not know this"
        assert "never learned 'giraffe', 'playing', 'the' and more, nor" in out_of_domain.explanation
        assert out_of_domain.json()["new_words"][0] == "giraffe"
        assert (out_of_domain.percentile, out_of_domain.standing.chance, out_of_domain.guarantee) == (None, None, None)
        assert len(out_of_domain.hits) == 3
        assert plain.verdict != "abstained"
        assert plain.standing.reading.new_words == ()
        calibrate(gallery, [KnownQuery(text) for text in KNOWN], "text", rng=np.random.default_rng(0))


def test_a_text_of_known_words_is_in_domain_however_odd(gallery: Gallery) -> None:
    odd = " ".join(reversed(KNOWN[5].split())) * 3
    assert Retriever(gallery).search(text=odd).standing.reading.new_words == ()


def test_who_never_wants_to_be_refused_is_not_but_gets_no_guarantee(gallery: Gallery) -> None:
    known = [KnownQuery(text, frozenset([item_id(str(n % 50))])) for n, text in enumerate(KNOWN)]
    calibrate(gallery, known, "text", guarantee=GuaranteeRequest(0.99, 0.5, 10), rng=np.random.default_rng(0))
    out_of_domain, *plain = Retriever(gallery, abstain_ratio=0.0).search_batch(texts=[OUT_OF_DOMAIN, *KNOWN])
    assert any(answer.guarantee is not None for answer in plain)
    assert out_of_domain.guarantee is None
    assert out_of_domain.verdict != "abstained"
    assert "never learned 'giraffe'" in out_of_domain.explanation
    assert "not calibrated" not in out_of_domain.explanation


def test_pictures_are_not_judged_by_texts(gallery: Gallery) -> None:
    assert Retriever(gallery).search(image=picture(0)).standing.reading.new_words == ()


def test_a_gallery_whose_captions_are_out_of_domain_is_measured_by_common_questions(
    tmp_path: Path, gallery: Gallery
) -> None:
    model = gallery.model
    assert model.domain is not None
    lenient = Domain(words_of(COMMON_QUESTIONS), model.domain.mean, model.domain.directions, model.domain.lengths)
    made = Gallery.create(tmp_path / "out_of_domain", Model(model.encoder, model.temperature, domain=lenient))
    captions = [(f"ein Fluss zwischen Feldern {n}",) for n in range(50)]
    rows = [Row(item_id(str(n)), str(n), "image", f"{n:064x}", captions=captions[n]) for n in range(50)]
    made.append(rows, np.array(gallery.vectors))
    text, image = self_calibrate(made, np.random.default_rng(0))
    assert (text.out_of_domain, text.labelled) == (50, 0)
    assert len(text.calibration.scores) == len(COMMON_QUESTIONS)
    assert image.source == "images of the gallery"
    made.model.domain = model.domain  # which knows none of the common questions either
    (image,) = self_calibrate(made, np.random.default_rng(0))
    assert image.source == "images of the gallery"


def test_queries_out_of_domain_neither_calibrate_nor_found_a_guarantee(gallery: Gallery) -> None:
    known = [KnownQuery(text, frozenset([item_id(str(n % 50))])) for n, text in enumerate(KNOWN)]
    out_of_domain = [KnownQuery(f"{OUT_OF_DOMAIN} {n}", frozenset([item_id("0")])) for n in range(30)]

    def stored(queries: list[KnownQuery]) -> tuple[list[float], int]:
        outcome = calibrate(
            gallery, queries, "text", guarantee=GuaranteeRequest(0.5, 0.1, 10), rng=np.random.default_rng(0)
        )
        assert outcome.guarantee is not None
        assert outcome.out_of_domain == len(queries) - len(known)
        return outcome.calibration.scores.tolist(), outcome.guarantee.tested

    assert stored(known + out_of_domain) == stored(known)
    with pytest.raises(InputError, match="30 of 30 queries are about things the model was never taught"):
        calibrate(gallery, out_of_domain, "text", rng=np.random.default_rng(0))


def test_a_text_is_out_of_domain_beyond_nineteen_of_twenty_that_did_not_train(gallery: Gallery) -> None:
    dim = gallery.model.dim
    known = Domain(words_of(KNOWN), np.zeros(dim, np.float32), np.eye(dim, dtype=np.float32)[:4], LENGTHS)
    gallery.model.domain = known
    outside = np.array([0.5, 0.92, 0.94, 0.96, 0.97, 2.0])
    vectors = np.outer(outside, np.eye(dim)[-1]).astype(np.float32)
    found = out_of_domain_words(known, ["giraffe"] * 6, vectors, "text")
    assert found == [(), (), (), ("giraffe",), ("giraffe",), ("giraffe",)]


def test_where_most_words_are_unknown_a_text_need_not_lie_far_outside(gallery: Gallery) -> None:
    dim = gallery.model.dim
    near = Nearness(("giraffe", "quarry", "violin"), np.array([10, 255, 20], np.uint8))
    known = Domain(
        words_of([*KNOWN, *FUNCTION_WORDS, "river"]),
        np.zeros(dim, np.float32),
        np.eye(dim, dtype=np.float32)[:4],
        LENGTHS,
        nearness=near,
    )
    asked = ["a giraffe", "a giraffe of the river", "giraffe river river", "a quarry", "violin and giraffe river"]
    for share, expected in (
        (0.40, [(), (), (), (), ()]),
        (0.60, [("giraffe",), (), (), (), ("violin", "giraffe")]),
        (0.97, [("giraffe",), ("giraffe",), ("giraffe",), (), ("violin", "giraffe")]),
    ):
        vectors = np.tile(share * np.eye(dim, dtype=np.float32)[-1], (len(asked), 1))
        assert out_of_domain_words(known, asked, vectors, "text") == expected
        # Without a table every new word is unknown, which says little.
        plain = out_of_domain_words(replace(known, nearness=None), asked[:1], vectors[:1], "text")
        assert bool(plain[0]) == (share > 0.95)
