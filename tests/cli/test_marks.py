"""evidex marks, and evidex calibrate --from-marks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evidex.retrieval.gallery import Gallery
from evidex.retrieval.marks import Asked, Mark, Marks
from tests.cli.running import Runner
from tests.retrieval.archive import arbitrary_gallery, tiny_model


@pytest.fixture
def gallery(tmp_path: Path) -> Gallery:
    made = arbitrary_gallery(tmp_path / "gallery", tiny_model(), 40)
    for number in range(3):
        row = made.rows([number])[0]
        Marks(made.path).add(Mark(Asked("a river"), row.id, row.sha256, "right" if number else "wrong"))
    return made


def test_marks_are_counted_exported_and_deleted(gallery: Gallery, evidex: Runner, tmp_path: Path) -> None:
    assert evidex("marks", "--gallery", gallery.path).out == "3 marks for 1 questions: 2 right, 1 wrong\n"
    target = tmp_path / "marks.json"
    assert evidex("marks", "export", target, "--gallery", gallery.path).out == f"3 marks written to {target}\n"
    assert len(json.loads(target.read_text())) == 3
    assert evidex("marks", "delete", "--gallery", gallery.path).out == "3 marks deleted\n"
    assert evidex("marks", "--gallery", gallery.path).out.startswith("0 marks")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["export"], "give a file with export"),
        (["delete", "x.json"], "give a file with export, and with nothing else"),
        (["forget"], "'forget' is unknown; give export FILE or delete"),
        (["export", "no/such/folder/x.json"], "is no folder"),
    ],
)
def test_what_makes_no_sense_is_one_line(gallery: Gallery, evidex: Runner, words: list[str], complaint: str) -> None:
    assert complaint in evidex("marks", *words, "--gallery", gallery.path).complaint
    assert len(Marks(gallery.path).all()) == 3


def test_too_few_marks_to_calibrate_with_are_one_line(gallery: Gallery, evidex: Runner) -> None:
    told = evidex("calibrate", "--from-marks", "--gallery", gallery.path).complaint
    assert "1 marked questions are too few to calibrate with" in told
    told = evidex("calibrate", "--from-marks", "--queries", "x.txt", "--gallery", gallery.path).complaint
    assert "give one of --queries, --dataset and --from-marks" in told


def test_enough_marks_calibrate_the_verdict(gallery: Gallery, evidex: Runner) -> None:
    words = ("planes", "river", "fields", "houses", "roads", "lake")
    for number, text in enumerate(f"{one} near {other}" for one in words for other in words if one != other):
        row = gallery.rows([number])[0]
        Marks(gallery.path).add(Mark(Asked(text), row.id, row.sha256, "right"))
    (outcome,) = json.loads(evidex("calibrate", "--from-marks", "--gallery", gallery.path, "--json").out)
    assert (outcome["source"], outcome["count"], outcome["labelled"]) == ("marks", 31, 31)
    assert outcome["guarantee"]["threshold"] is None  # marks at random, and few of them, guarantee nothing
    assert "31 from marks" in evidex("calibrate", "--from-marks", "--gallery", gallery.path).out
