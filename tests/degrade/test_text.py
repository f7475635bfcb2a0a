from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidex.degrade.text import PhraseMatcher, Replacement, replace, takes_an

WORDS = ["a", "port", "near", "the", "sea", "sea-side", "near to", "port near", "near the sea", "the sea", "a port"]


def naive_find(caption: str, phrases: list[str]) -> list[tuple[int, int, str]]:
    """Every place of every phrase by regular expression, then the longest, leftmost first as long as it is free."""
    places = []
    for phrase in phrases:
        pattern = r"\s+".join(re.escape(word) for word in phrase.split())
        for start in range(len(caption)):
            found = re.compile(rf"{pattern}(?!\w)", re.IGNORECASE).match(caption, start)
            if found is None:
                continue
            before = re.search(r"(\w)([-'’]?)\Z", caption[:start])
            after = re.match(r"([-'’]?)(\w)", caption[found.end() :])
            if before is None and after is None:
                places.append((start, found.end(), phrase))
    places.sort(key=lambda place: (-len(place[2]), place[0]))
    free = [True] * len(caption)
    kept = []
    for start, end, phrase in places:
        if all(free[start:end]):
            free[start:end] = [False] * (end - start)
            kept.append((start, end, phrase))
    return sorted(kept)


captions = st.lists(
    st.sampled_from(["a", "A", "port", "Port", "near", "the", "sea", "SEA", "sea-side", "to", "x", "porter", "'s"]),
    max_size=14,
).flatmap(
    lambda words: st.lists(
        st.sampled_from([" ", " ", " ", "  ", " , ", "-", "'", ".", "\n"]), min_size=len(words), max_size=len(words)
    ).map(lambda gaps: "".join(word + gap for word, gap in zip(words, gaps, strict=True)))
)


@given(captions, st.lists(st.sampled_from(WORDS), min_size=1, max_size=8, unique=True))
def test_matcher_agrees_with_the_naive_one(caption: str, phrases: list[str]) -> None:
    found = [(span.start, span.end, span.phrase) for span in PhraseMatcher(phrases).find(caption)]
    assert found == naive_find(caption, phrases)


@given(st.text(max_size=60))
def test_any_text_can_be_searched(caption: str) -> None:
    spans = PhraseMatcher(WORDS).find(caption)
    assert all(caption[span.start : span.end].lower().split() == span.phrase.split() for span in spans)


def test_the_longest_wins_even_against_an_earlier_one() -> None:
    spans = PhraseMatcher(["a port", "port near the sea"]).find("a port near the sea")
    assert [span.phrase for span in spans] == ["port near the sea"]


def test_no_match_inside_a_word() -> None:
    assert PhraseMatcher(["high", "port"]).find("high-rise airport porter port's") == []


@pytest.mark.parametrize(
    ("caption", "old", "new", "expected"),
    [
        ("there is a harbor .", "harbor", "airfield", "there is an airfield ."),
        ("an airport .", "airport", "field", "a field ."),
        ("An airport", "airport", "harbor", "A harbor"),
        ("A harbor", "harbor", "airfield", "An airfield"),
        ("Harbor with boats", "Harbor", "marina", "Marina with boats"),
        ("A HARBOR", "HARBOR", "airfield", "An AIRFIELD"),
        ("a large harbor", "harbor", "airfield", "a large airfield"),
        ("alpha harbor", "harbor", "airfield", "alpha airfield"),
        ("plan a  port", "port", "airfield", "plan an  airfield"),
    ],
)
def test_articles_and_capitals_follow(caption: str, old: str, new: str, expected: str) -> None:
    start = caption.index(old)
    assert replace(caption, [Replacement(start, start + len(old), new)]) == expected


def test_several_replacements_of_different_length() -> None:
    assert replace("ab cd ef", [Replacement(6, 8, "x"), Replacement(0, 2, "long one")]) == "long one cd x"


@pytest.mark.parametrize(
    "text", ["airfield", "open field", "urban area", "hourly train", "emerald pond", "uninhabited"]
)
def test_takes_an(text: str) -> None:
    assert takes_an(text)


@pytest.mark.parametrize(
    "text", ["university", "used road", "european city", "one-way road", "harbor", "useful", "", "union"]
)
def test_takes_a(text: str) -> None:
    assert not takes_an(text)
