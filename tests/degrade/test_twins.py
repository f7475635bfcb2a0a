"""Twins of captions: one thing exchanged, for something that is neither said nor another word for it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from evidex.degrade import Lexicon
from evidex.degrade.twins import TWIN_AXES, Twins

TWINS = Twins.load()
AXES = {
    "colour_material": "colour",
    "quantifier_weakening": "number",
    "spatial_relation": "relation",
    "domain_synonym": "object",
    "granularity_drift": "object",
}


def _all(caption: str, axis: str | None = None, others: tuple[str, ...] = ()) -> set[str | None]:
    return {TWINS.twin(caption, np.random.default_rng(seed), axis=axis, others=others) for seed in range(200)}


def test_every_phrase_is_one_of_the_lexicon_and_stands_on_its_axis() -> None:
    axes = {entry.phrase: AXES[entry.axis] for entry in Lexicon.load().entries}
    assert {group.axis for group in TWINS.groups} == set(TWIN_AXES)
    for group in TWINS.groups:
        assert [axes[phrase] for phrase in group.phrases] == [group.axis] * len(group.phrases), group


def test_no_two_phrases_of_a_group_mean_the_same() -> None:
    for group in TWINS.groups:
        for one, another in itertools.permutations(group.phrases, 2):
            assert another not in TWINS.synonyms[one], f"{one} and {another} are words for one thing"


@pytest.mark.parametrize(
    ("caption", "axis", "twins"),
    [
        ("Two planes are near a church .", "relation", {
            "Two planes are in the middle of a church .", "Two planes are on both sides of a church .",
        }),
        ("a dark green river .", "colour", {"a dark gray river .", "a dark blue river ."}),
        ("a river .", "object", {"a road .", "a highway .", "a street .", "a beach ."}),
        ("an overpass .", "object", {"an airport .", "a stadium .", "a church .", "a railway station ."}),
        ("a giraffe .", None, {None}),
        ("a red roof .", "number", {None}),
    ],
)  # fmt: skip
def test_one_phrase_is_exchanged_for_each_that_fits(caption: str, axis: str | None, twins: set[str | None]) -> None:
    assert _all(caption, axis) == twins


def test_what_is_said_of_the_picture_is_no_twin_nor_another_word_for_it() -> None:
    said = ("an avenue with green cars .", "blue and white shores", "grayish , golden , greyish", "motorways")
    assert _all("a red roof .", "colour", said) == {"a black roof .", "a brown roof .", "an orange roof ."}
    assert _all("a river .", "object", said) == {"a road ."}, "an avenue is a street, a shore a beach"


def test_without_an_axis_any_phrase_may_be_the_one() -> None:
    found = _all("two red cars")
    assert {"two blue cars", "five red cars", "two red boats"} <= found
    assert not found & {None, "two red cars"}
