from __future__ import annotations

import json
import re
from collections import Counter
from difflib import SequenceMatcher
from pathlib import Path

import pytest

from evidex.errors import DataError, InputError
from evidex.evaluation.questions.bench import WAYS, Topic, apt, plain, read_subjects
from evidex.scenes.scene import KINDS

REPOSITORY = Path(__file__).parents[3]
BENCH = REPOSITORY / "benchmarks" / "questions.tsv"
DATA = REPOSITORY.parent / "shared" / "data"
HEADER = "\t".join(["half", "kind", "form", "labels", *WAYS])


def _words(text: str) -> str:
    return " ".join(re.findall(r"[a-z0-9]+", text.lower()))


def test_the_bench_is_large_and_asks_nothing_twice() -> None:
    subjects = read_subjects(BENCH)
    texts = [_words(text) for subject in subjects for text in subject.asked.values()]
    assert len(texts) == len(set(texts)) >= 1200
    assert all(tuple(subject.asked) == WAYS for subject in subjects)


def test_the_held_half_is_broad_and_fits_kinds_of_scene_that_there_are() -> None:
    held = read_subjects(BENCH, "held")
    assert sum(len(subject.asked) for subject in held) >= 400
    assert min(Counter(subject.kind for subject in held).values()) >= 15
    assert min(Counter(subject.form for subject in held).values()) >= 20
    present = {label for subject in held if subject.kind == "present" for label in subject.labels}
    assert present >= {plain(kind) for kind in KINDS}
    assert {label for subject in held for label in subject.labels} <= {*KINDS, "playfields"}  # RSICD's own


def test_a_held_typo_is_a_slip_in_the_keyword_and_no_other_question() -> None:
    for subject in read_subjects(BENCH, "held"):
        keyword, typo = subject.asked["keyword"], subject.asked["typo"]
        assert keyword != typo
        assert SequenceMatcher(None, keyword, typo).ratio() >= 0.75, typo


def test_the_halves_share_no_subject_and_are_the_whole() -> None:
    tune, held = read_subjects(BENCH, "tune"), read_subjects(BENCH, "held")
    assert len(tune) + len(held) == len(read_subjects(BENCH))
    assert not {s.asked["keyword"] for s in tune} & {s.asked["keyword"] for s in held}
    assert {subject.kind for subject in tune} == {subject.kind for subject in held} == {"present", "absent", "absurd"}


@pytest.mark.data
def test_no_question_is_a_caption() -> None:
    asked = {_words(text) for subject in read_subjects(BENCH) for text in subject.asked.values()}
    for path in DATA.glob("*/*.json"):
        content = json.loads(path.read_text())
        entries = content.get("images") or content.get("texts") or []
        captions = {_words(text) for entry in entries for text in entry.get("captions", ())}
        assert not asked & captions, path


def _file(folder: Path, *lines: str) -> Path:
    path = folder / "questions.tsv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_comments_and_missing_ways_are_fine(tmp_path: Path) -> None:
    path = _file(tmp_path, "# of ours", HEADER, "held\tpresent\tword\tBare Land, park\tsoil\t\tfind soil\t\t")
    assert read_subjects(path) == (
        Topic("present", "word", frozenset({"bareland", "park"}), {"keyword": "soil", "command": "find soil"}, "held"),
    )


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("tune\tpresent\tword\tpark\tgreen", "5 cells instead of 9"),
        ("best\tpresent\tword\tpark\tgreen\t\t\t\t", "half 'best' is unknown; use tune or held"),
        ("tune\tgone\tword\tpark\tgreen\t\t\t\t", "kind 'gone' is unknown"),
        ("tune\tpresent\tword\t\tgreen\t\t\t\t", "needs labels that fit"),
        ("tune\tabsurd\tword\tpark\tgreen\t\t\t\t", "what is absurd has none"),
        ("held\tpresent\tword\tpark\t\tgreen\t\t\t", "no keyword"),
    ],
)
def test_wrong_lines_are_named(tmp_path: Path, line: str, says: str) -> None:
    with pytest.raises(DataError, match=rf"line 2.*{says}"):
        read_subjects(_file(tmp_path, HEADER, line))


def test_what_is_no_bench_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="columns half, kind, form"):
        read_subjects(_file(tmp_path, "what\tis"))
    with pytest.raises(InputError, match="half 'best' is unknown"):
        read_subjects(BENCH, "best")  # type: ignore[arg-type]


def test_only_what_the_labels_can_answer_is_asked() -> None:
    def subject(kind: str, *labels: str) -> Topic:
        return Topic(kind, "word", frozenset(labels), {"keyword": kind})  # type: ignore[arg-type]

    present, absent, absurd = subject("present", "park"), subject("absent", "port"), subject("absurd")
    everything = [present, absent, absurd, subject("present", "moon"), subject("absent", "moon")]
    assert apt(everything, ["Park", "port"]) == [present, absent, absurd]
    assert apt(everything, ["port"]) == [absurd]
    assert plain("Bare-Land") == plain("bare_land") == "bareland"
