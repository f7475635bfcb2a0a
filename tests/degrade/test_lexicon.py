from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from evidex.degrade import AXES, Lexicon
from evidex.errors import DataError, InputError

DATA = Path(__file__).resolve().parents[2].parent / "shared/data"
LEXICON = Lexicon.load()
CAPTIONS = st.lists(
    st.sampled_from(
        [entry.phrase for entry in LEXICON.entries] + ["a", "an", "the", "large", "ripples", ".", ",", "with"]
    ),
    max_size=12,
).map(" ".join)


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(["axis\tphrase\talternatives", *lines]) + "\n", encoding="utf-8")
    return path


def test_174_entries_on_five_axes() -> None:
    assert len(LEXICON.entries) == 174
    assert {entry.axis for entry in LEXICON.entries} == set(AXES)
    assert min(Counter(entry.axis for entry in LEXICON.entries).values()) >= 15


def test_alternatives_keep_to_the_axis_and_to_the_field() -> None:
    axis_of = {entry.phrase: entry.axis for entry in LEXICON.entries}
    for entry in LEXICON.entries:
        assert entry.phrase not in entry.alternatives
        for alternative in entry.alternatives:
            assert axis_of.get(alternative, entry.axis) == entry.axis
    harbor = next(entry for entry in LEXICON.entries if entry.phrase == "harbor")
    assert {"dock", "marina"} <= set(harbor.alternatives)
    assert not any("desk" in entry.alternatives for entry in LEXICON.entries)


def test_plural_phrases_have_plural_alternatives() -> None:
    """For every pair of a noun and its plural, the alternatives are pairs as well."""
    entries = {entry.phrase: entry for entry in LEXICON.entries}
    pairs = [(entries[phrase], entries[phrase + "s"]) for phrase in entries if phrase + "s" in entries]
    assert len(pairs) > 15
    unchanged = {"aircraft", "watercraft"}
    for singular, plural in pairs:
        for alternative in plural.alternatives:
            heads = alternative.split(" of ")[0]
            assert heads.endswith("s") or heads in unchanged, (plural.phrase, alternative)
        for alternative in singular.alternatives:
            assert not re.search(r"[^s]s\Z", alternative.split(" of ")[0]), (singular.phrase, alternative)


@pytest.mark.data
@pytest.mark.skipif(not (DATA / "rsicd/captions.json").exists(), reason="captions of RSICD and RSITMD are not here")
def test_every_entry_matches_some_training_caption() -> None:
    seen: set[str] = set()
    for name in ("rsicd", "rsitmd"):
        for image in json.loads((DATA / name / "captions.json").read_text())["images"]:
            if image["split"] == "train":
                seen.update(match.entry.phrase for text in set(image["captions"]) for match in LEXICON.matches(text))
    assert {entry.phrase for entry in LEXICON.entries} - seen == set()


def test_matches_are_found_from_left_to_right_longest_first() -> None:
    caption = "Many cars are in a Parking Lot near to the harbor ."
    phrases = [match.entry.phrase for match in LEXICON.matches(caption)]
    assert phrases == ["many", "cars", "parking lot", "near to", "harbor"]
    assert [caption[match.start : match.end] for match in LEXICON.matches(caption)][2] == "Parking Lot"


def test_a_substitution_reads_well() -> None:
    rng = np.random.default_rng(0)
    results = {LEXICON.substitute("an airport is near a harbor .", rng, probability=1.0) for _ in range(300)}
    assert "an airfield is beside a dock ." in results
    assert "an aerodrome is close to a marina ." in results
    assert all(" a aero" not in text and " an dock" not in text for text in results)
    assert len(results) == 2 * 3 * 3


@given(CAPTIONS, st.integers(0, 2**32), st.floats(0, 1), st.integers(0, 5))
@settings(deadline=None)
def test_at_most_the_limit_is_exchanged(caption: str, seed: int, probability: float, limit: int) -> None:
    result = LEXICON.substitute(caption, np.random.default_rng(seed), probability, limit)
    assert result == LEXICON.substitute(caption, np.random.default_rng(seed), probability, limit)
    matches = LEXICON.matches(caption)
    if limit == 0 or probability == 0 or not matches:
        assert result == caption
    assert _substitutions_explain(caption, result, limit)


def _substitutions_explain(caption: str, result: str, limit: int) -> bool:
    """Whether at most ``limit`` matches, each replaced by one of its alternatives, give ``result`` (articles aside)."""
    matches = LEXICON.matches(caption)

    def bare(text: str) -> list[str]:
        return ["a" if word == "an" else word for word in text.split()]

    target = bare(result)

    def explain(position: int, number: int, left: int, rest: list[str]) -> bool:
        if number == len(matches):
            return rest == bare(caption[position:])
        match = matches[number]
        before = bare(caption[position : match.start])
        if rest[: len(before)] != before:
            return False
        rest = rest[len(before) :]
        choices = [(match.entry.phrase, 0), *((text, 1) for text in match.entry.alternatives)]
        return any(
            left >= cost
            and rest[: len(bare(text))] == bare(text)
            and explain(match.end, number + 1, left - cost, rest[len(bare(text)) :])
            for text, cost in choices
        )

    return explain(0, 0, limit, target)


@given(CAPTIONS, st.integers(0, 2**32))
@settings(deadline=None)
def test_probability_one_without_limit_exchanges_every_match(caption: str, seed: int) -> None:
    result = LEXICON.substitute(caption, np.random.default_rng(seed), 1.0, 1000)
    assert (result != caption) == bool(LEXICON.matches(caption))


def test_each_match_is_chosen_independently_and_alternatives_are_uniform() -> None:
    rng = np.random.default_rng(5)
    count = 6000
    texts = [LEXICON.substitute("port ; harbor", rng, 0.3, 3) for _ in range(count)]
    first = np.array([not text.startswith("port ;") for text in texts])
    second = np.array([not text.endswith("; harbor") for text in texts])
    for chosen in (first, second):
        assert stats.binomtest(int(chosen.sum()), count, 0.3).pvalue > 1e-6
    assert stats.binomtest(int((first & second).sum()), count, 0.09).pvalue > 1e-6
    drawn = Counter(text.split(" ; ")[0] for text, changed in zip(texts, first, strict=True) if changed)
    assert set(drawn) == {"harbor", "dock", "marina"}
    assert stats.chisquare(list(drawn.values())).pvalue > 1e-6


def test_what_exceeds_the_limit_is_dropped_without_favour() -> None:
    rng = np.random.default_rng(6)
    changed = np.zeros(5)
    for _ in range(2000):
        parts = LEXICON.substitute("port ; port ; port ; port ; port", rng, 1.0, 2).split(" ; ")
        kept = np.array([part != "port" for part in parts])
        assert kept.sum() == 2
        changed += kept
    assert stats.chisquare(changed).pvalue > 1e-6


def test_a_lexicon_of_ones_own(tmp_path: Path) -> None:
    path = write(tmp_path / "own.tsv", "# my words", "", "domain_synonym\tquarry pond\tpit lake|flooded pit")
    own = Lexicon.load(path)
    assert own.entries[0].alternatives == ("pit lake", "flooded pit")
    assert own.substitute("A quarry pond .", np.random.default_rng(0), 1.0) in ("A pit lake .", "A flooded pit .")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("domain_synonym\tport", "2 columns"),
        ("domain_synonym\tport\tdock\tpier", "4 columns"),
        ("flavour\tport\tdock", "unknown axis 'flavour'"),
        ("domain_synonym\tport\tport|dock", "its own alternative"),
        ("domain_synonym\tport\tdock|dock", "twice"),
        ("domain_synonym\tport\tdock||pier", "lower-case words"),
        ("domain_synonym\tPort\tdock", "lower-case words"),
        ("domain_synonym\t\tdock", "lower-case words"),
        ("domain_synonym\ta  port\tdock", "lower-case words"),
        ("domain_synonym\tport\tdock.", "lower-case words"),
        ("domain_synonym\tquay\tpier", "there twice"),
        ("domain_synonym\tport\tmany", "keep one axis"),
    ],
)
def test_a_faulty_line_is_named(tmp_path: Path, line: str, words: str) -> None:
    path = write(tmp_path / "bad.tsv", "domain_synonym\tquay\tdock", "quantifier_weakening\tmany\tsome", line)
    with pytest.raises(DataError, match=words):
        Lexicon.load(path)


def test_files_that_are_no_lexicon_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        Lexicon.load(tmp_path / "none.tsv")
    (tmp_path / "binary.tsv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="UTF-8"):
        Lexicon.load(tmp_path / "binary.tsv")
    (tmp_path / "header.tsv").write_text("phrase\talternatives\n")
    with pytest.raises(DataError, match="columns"):
        Lexicon.load(tmp_path / "header.tsv")
    with pytest.raises(DataError, match="no entries"):
        Lexicon.load(write(tmp_path / "empty.tsv"))


def test_probability_and_limit_are_checked() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="probability"):
        LEXICON.substitute("a port", rng, 1.5)
    with pytest.raises(InputError, match="limit"):
        LEXICON.substitute("a port", rng, 0.5, -1)
