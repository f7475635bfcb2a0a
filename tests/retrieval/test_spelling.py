"""Slips of the pen are mended, words are not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from evidex.encoders.domain import Domain
from evidex.encoders.nearness import Nearness
from evidex.retrieval.spelling import Mended, question_of

NEAR = ("cathedral", "mountain", "quarry", "river", "rocks", "fuel", "peaks", "green", "parks")
FAR = ("socks", "kitten", "fan", "feel", "the", "camped", "tres")
WORDS = tuple(sorted(set(NEAR + FAR)))
TABLE = Nearness(WORDS, np.array([255 if word in NEAR else 10 for word in WORDS], np.uint8))


def known(table: Nearness | None = TABLE) -> Domain:
    taught = frozenset(
        {"river", "mountain", "rocks", "parks", "green", "grren", "feel", "the", "a", "airliner", "fawn", "fan"}
    )
    lengths = np.array([0.0, 1.0], np.float32)
    return Domain(taught, np.zeros(4, np.float32), np.eye(1, 4, dtype=np.float32), lengths, nearness=table)


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("mountian", "mountain"),  # swapped
        ("rivr", "river"),  # left out
        ("cathederal", "cathedral"),  # too many; common and near, though not taught
        ("mountein", "mountain"),  # wrong
        ("feul", "fuel"),  # swapped letters before a wrong one, though "feel" was taught
        ("paeks", "peaks"),  # and "parks"
        ("gren", "green"),  # not the slip that captions have
        ("airlinner", "airliner"),  # taught, though no common word
        ("Mountian", "mountain"),
    ],
)
def test_a_slip_is_read_as_what_was_meant(typed: str, read: str) -> None:
    question = question_of(f"show me a {typed}", known())
    assert question.text == f"a {read}"
    assert question.mended == (Mended(typed, read),)


@pytest.mark.parametrize(
    "text",
    [
        "socks",
        "kitten",
        "kiten",
        "rivers",
        "quarries",
        "grren",
        "fawn",
        "fawwn",  # of two short words that captions alone have one may be a slip
        "riv",
        "wwwwwww",
        "ruß",
        "mountain123",
        "x" * 400,
    ],
)
def test_words_slips_for_foreign_words_and_noise_stay(text: str) -> None:
    assert question_of(text, known()).text == text


def test_what_lacks_a_known_thing_is_no_slip() -> None:
    words = tuple(sorted({*WORDS, "riverlets"}))
    table = Nearness(words, np.full(len(words), 255, np.uint8))
    assert question_of("a riverltes", known(table)).text == "a riverlets"
    assert question_of("a riverless plain", known(table)).text == "a riverless plain"


def test_without_a_table_of_words_nothing_is_mended() -> None:
    assert question_of("mountian", known(None)).text == "mountian"
    assert question_of("mountian", None).text == "mountian"


def test_a_text_of_many_odd_words_is_none_of_slips() -> None:
    text = "rivr mountian cathederal gren"
    assert question_of(text, known()).text == text


OFTEN = {"tennis": 900, "court": 800, "bridge": 700, "formed": 300, "parking": 600, "lot": 650, "white": 990}
SELDOM = {"brige": 1, "forked": 4, "parkinglot": 1, "board": 2}


def counted() -> Domain:
    filling = {f"w{chr(97 + n // 26)}{chr(97 + n % 26)}": 5 for n in range(80)}
    counts = {**filling, **OFTEN, **SELDOM}
    words = tuple(sorted({*OFTEN, *WORDS, "board"}))
    ranks = np.array([255 if word in {*OFTEN, *NEAR} else 10 for word in words], np.uint8)
    return replace(known(Nearness(words, ranks)), words=frozenset(counts), counts=counts)


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("brige", "bridge"),  # which one caption has too
        ("forked", "forked"),  # taught not so much less often than "formed"
        ("a Tenniscourt", "a tennis court"),
        ("parkinglot", "parking lot"),  # as one caption has it
        ("whiteboard", "whiteboard"),  # boards were taught in passing
        ("courtlot", "court lot"),
    ],
)
def test_what_was_taught_often_is_read_for_what_was_taught_in_passing(typed: str, read: str) -> None:
    assert question_of(typed, counted()).text == read


def test_where_nobody_counted_taught_words_stay_and_none_is_cut() -> None:
    uncounted = replace(counted(), counts=None)
    for text in ("brige", "tenniscourt", "parkinglot"):
        assert question_of(text, uncounted).text == text


def test_a_short_word_with_a_wrong_letter_may_be_another_language() -> None:
    assert question_of("rivar", known()).text == "rivar"
    assert question_of("mountein", known()).text == "mountain"
