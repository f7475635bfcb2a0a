from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evidex.cli.app import main
from evidex.retrieval.certainty.learning import Lesson, Worth, learn
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.retriever import Retriever
from evidex.retrieval.rows import Row, item_id
from tests.retrieval.archive import WORDS, tiny_model
from tests.retrieval.certainty.world import unit


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A gallery, and questions of which two in three find what they ask for."""
    folder = tmp_path_factory.mktemp("calibrate")
    tiny_model().save(folder / "model.safetensors")
    gallery = Gallery.create(folder / "gallery", tiny_model())
    rows = [Row(item_id(str(n)), str(n), "image", f"{n:064x}") for n in range(120)]
    gallery.append(rows, unit(np.random.default_rng(0).standard_normal((120, 32))))
    texts = [f"{word} number {n} of {n * n}" for n in range(70) for word in WORDS]
    found = Retriever(gallery).search_batch(texts=texts, top=120)
    entries = [
        {"text": text, "relevant": [answer.hits[90 if n % 3 == 0 else n % 10].id]}
        for n, (text, answer) in enumerate(zip(texts, found, strict=True))
    ]
    (folder / "questions.json").write_text(json.dumps(entries))
    (folder / "plain.txt").write_text("\n".join(texts))
    return folder


def calibrate(place: Path, *options: str) -> int | str | None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["evidex", "calibrate", "--gallery", str(place / "gallery"), *options])
        try:
            main()
        except SystemExit as stop:
            return stop.code
    return 0


def test_labelled_questions_teach_and_it_is_said_what_that_is_worth(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not calibrate(place, "--queries", str(place / "questions.json"), "--score", "learned")
    told = capsys.readouterr().out
    assert "280 with a known answer, judged by learned" in told
    (sentence,) = [line for line in told.splitlines() if line.startswith("learned from ")]
    assert "than the highest similarity" in sentence
    assert not calibrate(place, "--queries", str(place / "questions.json"), "--score", "learned", "--json")
    (content,) = json.loads(capsys.readouterr().out)
    assert (content["count"], content["labelled"], content["score"]) == (280, 280, "learned")
    assert content["worth"]["sentence"] in sentence
    assert 0 < content["taught"] < 280


@pytest.mark.parametrize(
    ("worth", "words"),
    [
        (Worth(280, 0.55, 0.5, 0.05), "what could be learned tells wrong answers no better than chance may"),
        (Worth(280, 0.65, 0.7, 0.01), "what could be learned is no better than the highest similarity"),
        (None, "they teach nothing: that takes 10 right and 10 wrong answers in either half"),
    ],
)
def test_it_is_said_why_what_was_learned_is_not_used(
    place: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    worth: Worth | None,
    words: str,
) -> None:
    def taught(*arguments: Any, **options: Any) -> Lesson | None:
        lesson = learn(*arguments, **options)
        assert lesson is not None
        return None if worth is None else replace(lesson, worth=worth)

    monkeypatch.setattr("evidex.retrieval.certainty.calibrating.learn", taught)
    capsys.readouterr()
    assert not calibrate(place, "--queries", str(place / "questions.json"))
    told = capsys.readouterr().out
    assert words in told
    assert "judged by vacuity" in told
    assert not calibrate(place, "--queries", str(place / "questions.json"), "--json")
    (content,) = json.loads(capsys.readouterr().out)
    assert (content["worth"] and content["worth"]["learned"]) == (worth and worth.learned)
    assert content["taught"] == 0
    assert not calibrate(place, "--queries", str(place / "questions.json"), "--score", "vacuity")
    assert "learn" not in capsys.readouterr().out


def test_questions_without_answers_are_judged_by_vacuity(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert not calibrate(place, "--queries", str(place / "plain.txt"))
    told = capsys.readouterr().out
    assert "0 with a known answer, judged by vacuity" in told
    assert "learned from" not in told


def test_what_cannot_be_learned_is_refused_in_one_line(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert calibrate(place, "--queries", str(place / "plain.txt"), "--score", "learned") == 2
    assert "teach too little" in capsys.readouterr().err
    assert calibrate(place, "--queries", str(place / "plain.txt"), "--score", "magic") == 2
    assert "score 'magic' is unknown; use one of learned, vacuity" in capsys.readouterr().err
    assert calibrate(place, "--score", "learned") == 2


def test_shares_and_empty_files_are_refused_in_one_line(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for option, value in (("--alpha", "2"), ("--alpha", "0"), ("--delta", "-1"), ("--delta", "nan")):
        assert calibrate(place, option, value) == 2
        assert "between 0 and 1" in capsys.readouterr().err
    for name, content in (("empty.txt", "# nothing\n"), ("empty.json", "[]")):
        (place / name).write_text(content)
        assert calibrate(place, "--queries", str(place / name)) == 2
        assert "holds no query" in capsys.readouterr().err


def test_what_was_given_stays_where_a_gallery_has_nothing_to_calibrate_itself_by(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gallery = Gallery.create(tmp_path / "gallery", tiny_model())
    gallery.add_texts([f"{word} {n}" for n in range(10) for word in WORDS])
    (tmp_path / "plain.txt").write_text("\n".join(f"{word} of {n}" for n in range(10) for word in WORDS))
    assert not calibrate(tmp_path, "--queries", str(tmp_path / "plain.txt"))
    given = list((gallery.path / "calibration").iterdir())
    capsys.readouterr()
    assert calibrate(tmp_path) == 2
    assert "holds no pictures to calibrate itself by; give --queries or --dataset" in capsys.readouterr().err
    assert list((gallery.path / "calibration").iterdir()) == given


def test_a_place_that_cannot_be_written_is_one_line(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    with pytest.MonkeyPatch.context() as patch:
        sheet = tmp_path / "file" / "sheet.png"
        sheet.parent.write_text("in the way")
        patch.setattr(
            sys, "argv", ["evidex", "search", "a", "--gallery", str(place / "gallery"), "--sheet", str(sheet)]
        )
        with pytest.raises(SystemExit) as ended:
            main()
    err = capsys.readouterr().err
    assert ended.value.code == 2
    assert err.count("\n") == 1, err
    assert "cannot be written: " in err


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*.json")}


def test_answers_that_are_not_in_the_gallery_and_one_question_many_times_are_refused(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = [{"text": f"{word} {n}", "relevant": ["nowhere.tif"]} for n in range(10) for word in WORDS]
    (place / "lost.json").write_text(json.dumps(lost))
    capsys.readouterr()
    stored = _files(place / "gallery")
    assert calibrate(place, "--queries", str(place / "lost.json")) == 2
    assert "the answers of all 40 queries that name some are not in the gallery; name them" in capsys.readouterr().err
    (place / "same.txt").write_text("a river\n" * 25)
    assert calibrate(place, "--queries", str(place / "same.txt")) == 2
    assert "of 25 queries only 1 differ, too few to calibrate with; give at least 20" in capsys.readouterr().err
    assert _files(place / "gallery") == stored
