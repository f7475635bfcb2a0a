"""Numbers and states in questions: what the model that comes with evidex cannot tell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from evidex.encoders.domain import Domain
from evidex.encoders.model import Model, load_model
from evidex.retrieval.out_of_domain import Reading, readings
from evidex.retrieval.told_apart import counted, state


@pytest.fixture(scope="module")
def compact() -> Model:
    return load_model("compact")


def _read(model: Model, *texts: str) -> list[Reading]:
    return readings(model, texts, np.asarray(model.encode_texts(list(texts)), np.float32), "text")


def test_a_number_of_things_is_told(compact: Model) -> None:
    """With what is counted, in the words of the question."""
    told = {
        "two planes": "two planes",
        "one tree": "one tree",
        "show me a single tree": "a single tree",
        "are there a pair of bridges?": "a pair of bridges",
        "exactly 3 ships in a harbor": "3 ships",
        "three large ships": "three large ships",
        "exactly two bridges": "two bridges",
        "two tennis courts, three pools": "two tennis courts",
        "one plane parked on the apron": "one plane",
        "one large white plane parked at a gate": "one large white plane",
        "a single runway": "a single runway",
        "five people": "five people",
        "50 planes": "50 planes",
        "twenty tennis courts": "twenty tennis courts",
        "twenty-one planes": "twenty-one planes",
        "eleven tanks": "eleven tanks",
        "a dozen planes": "a dozen planes",
        "half a dozen ships": "half a dozen ships",
        "a solitary tree": "a solitary tree",
        "lone ship": "lone ship",
        "more than three bridges": "more than three bridges",
        "at least three ships": "at least three ships",
        "at least a dozen ships": "at least a dozen ships",
        "two or three ships": "two or three ships",
        "3-4 ships": "3-4 ships",
        "about ten houses with hedges": "ten houses",
        "number of planes": "how many",
        "show me the number of planes": "how many",
        "airport with exactly 2 planes": "2 planes",
        "church with two towers": "two towers",
        "an airport with three runways": "three runways",
        "a row of ten houses": "ten houses",
        "harbor with at least two or three ships": "at least two or three ships",
        "a church, two towers": "two towers",
        "how many planes": "how many",
        "How many ships are there in the harbor?": "how many",
    }
    assert {text: read.counted for text, read in zip(told, _read(compact, *told), strict=True)} == told


@pytest.mark.parametrize(
    "text",
    """planes / houses on two sides of a road / two sides of a river / a road from one bank to the other
    one or two trees / one of the runways / a six lane road / 747 on a runway / 2019 flood / many planes
    single houses with gardens / single family houses / single track railway / single engine plane
    a single runway airport / ten pin bowling alley / three point line / nine hole golf course / 5 star hotel
    5 star hotels / four wheel drive cars / two car garage / one car garage / two car garages / seven seas
    1 km from the sea / 10 m resolution / 2 m high wall / 3 d buildings / a 5 km bridge / two miles of beach
    one hundred planes / two hundred planes / two dozen planes / one third of the picture / two thirds water
    the one with a river / one that shows a river / one with a pool / two pictures of rivers / 3 images of airports
    ten square kilometres / one way street / three bedroom houses / two with a pool
    30 cm imagery / 5 m wide river / a bridge between two rivers / the junction of two roads / more than one plane
    a road with four lanes / a river with houses on two sides / a field with one or two trees / runway 2 lights
    one or two bridges / lone houses in fields / a large number of planes / 747s on a runway / terminal 2 and gates
    there is an airport with three runways near the sea / houses of two storeys / 90 degrees
    a pond with four banks""".replace("\n", "/").split("/"),
)
def test_other_numbers_are_not(text: str) -> None:
    assert counted(text.strip()) is None


def test_neither_pictures_nor_what_stands_for_a_thing_is_counted(compact: Model) -> None:
    texts = ["show me two pictures of rivers", "find 3 images of airports", "is there one with a pool"]
    assert [read.counted for read in _read(compact, *texts)] == [None] * 3


def test_a_state_that_was_hardly_taught_is_told_and_others_are_not(compact: Model) -> None:
    told = _read(compact, "broken bridge", "flooded houses", "an abandoned factory", "damaged roofs")
    for read, word in zip(told, ("broken", "flooded", "abandoned", "damaged"), strict=True):
        assert word in (read.state, *read.ignored_words, *read.new_words, *read.in_passing)
    for read in _read(compact, "empty parking lot", "bare land", "a busy intersection", "dry river"):
        assert (read.state, read.counted) == (None, None)
    (both,) = _read(compact, "damaged houses and broken bridge")
    assert ("damaged" in both.ignored_words, both.state) == (True, "broken")
    (denied,) = _read(compact, "no broken bridge")
    assert (denied.negated, denied.state) == ("no", None)


def _taught(counts: dict[str, int]) -> Domain:
    """Each word by so many texts."""
    axes, steps = np.eye(4, dtype=np.float32), np.array([0.0, 1.0], np.float32)
    return Domain(frozenset(counts), axes[0], axes[1:2], steps, counts=counts)


def test_a_state_is_known_where_texts_taught_it_often() -> None:
    others = {f"word{n}": n for n in range(100)}
    for often, expected in ((64, "broken"), (90, None)):
        assert state("a broken bridge", _taught(others | {"broken": often})) == expected
    assert state("a broken bridge", replace(_taught(others), counts=None)) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("damaged houses and broken bridge", "broken"),
        ("Broken bridge", "Broken"),
        ("BROKEN BRIDGE", "BROKEN"),
        ("Broken Hill", None),
        ("houses in Broken Hill", None),
        ("broken clouds", None),
        ("a broken white line", None),
        ("a sunken garden", None),
        ("sunken plaza", None),
        ("deserted island", None),
        ("a sunken ship", "sunken"),
    ],
)
def test_a_state_is_one_of_things(text: str, expected: str | None) -> None:
    known = _taught({"bridge": 9, "house": 8, "ship": 7})
    assert state(text, known, {"damaged"}) == expected
