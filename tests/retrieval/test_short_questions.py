"""A few words find the same however they are typed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from evidex.encoders.model import Model
from evidex.retrieval.encoding import encode, encode_again
from evidex.retrieval.refine import AS_CALIBRATED
from evidex.retrieval.short_questions import forms_of, thing_of
from tests.retrieval.archive import WORDS, tiny_model


class _Counting(Model):
    def __init__(self) -> None:
        plain = tiny_model()
        super().__init__(plain.encoder, plain.temperature)
        self.batches: list[list[str]] = []

    def encode_texts(self, texts: Sequence[str], **options: Any) -> np.ndarray:
        self.batches.append(list(texts))
        return super().encode_texts(texts, **options)


@pytest.mark.parametrize("typed", ["lake", "a lake", "lakes", "the lakes", "Lake", "lake?", "show me lakes", " lake. "])
def test_a_word_is_one_question_however_it_is_typed(typed: str) -> None:
    model = tiny_model()
    np.testing.assert_array_equal(encode(model, [typed], "text"), encode(model, ["lake"], "text"))
    again = [encode_again(model, [text], "text", AS_CALIBRATED) for text in (typed, "lake")]
    np.testing.assert_allclose(again[0], again[1], atol=1e-6)


def test_a_caption_is_asked_as_it_is() -> None:
    model = tiny_model()
    for text in ("there is a lake in a forest near houses .", "ships .", "...", ""):
        assert forms_of(text) == (text,)
    text = "there is a lake in a forest near houses ."
    np.testing.assert_array_equal(encode(model, [text], "text"), model.encode_texts([text]))


@pytest.mark.parametrize(
    "typed", ["trains run between fields", "Trains run between fields.", "trains run between fields?"]
)
def test_a_sentence_is_asked_as_captions_say_it_however_it_ends(typed: str) -> None:
    model = tiny_model()
    forms = ["trains run between fields", "trains run between fields ."]
    mean = model.encode_texts([*forms, f"an aerial image of {forms[1]}"]).astype(np.float64).mean(axis=0)
    np.testing.assert_allclose(encode(model, [typed], "text")[0], mean / np.linalg.norm(mean), atol=1e-6)


def test_the_forms_are_averaged_on_the_sphere() -> None:
    model = tiny_model()
    rows = model.encode_texts(["lake", "a lake", "lakes", "there is a lake ."]).astype(np.float64)
    mean = rows.mean(axis=0)
    np.testing.assert_allclose(encode(model, ["lakes"], "text")[0], mean / np.linalg.norm(mean), atol=1e-6)


def test_all_forms_of_all_questions_are_encoded_at_once() -> None:
    model = _Counting()
    found = encode(model, ["lake", "lakes", "a forest", WORDS[0]], "text")
    (batch,) = model.batches
    assert len(set(batch)) == 4 + 4 + 1
    assert found.shape == (4, model.dim)


@pytest.mark.parametrize("text", ["three planes", "2 planes", "few ships", "both bridges", "every airport"])
def test_a_number_of_things_stays_that_number(text: str) -> None:
    assert all(form.removeprefix("an aerial image of ").removesuffix(" .") == text for form in forms_of(text))


def test_no_text_is_no_row() -> None:
    assert encode(tiny_model(), [], "text").shape == (0, tiny_model().dim)


@pytest.mark.parametrize(
    ("text", "thing"),
    [
        ("a pool table", "table"),
        ("Pool tables?", "tables"),
        ("tanks near water", "tanks"),
        ("a pair of bridges", None),
        ("there is a lake in a forest near houses", None),
        ("where", None),
        ("3 ships", None),
    ],
)
def test_a_question_of_few_words_is_about_one_thing(text: str, thing: str | None) -> None:
    assert thing_of(text) == thing
