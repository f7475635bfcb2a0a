"""evidex verify: exit codes, words and JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from evidex.cli.app import main
from evidex.retrieval.gallery import Gallery
from tests.retrieval.archive import arbitrary_gallery, tiny_model


@pytest.fixture
def gallery(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Gallery:
    monkeypatch.setattr("evidex.encoders.model.load_model", lambda _: tiny_model())
    made = arbitrary_gallery(tmp_path / "g", tiny_model(), 20)
    made.vectors  # noqa: B018 (maps them)
    return made


def run(verb: str, folder: Path, *options: str) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["evidex", verb, "--gallery", str(folder), *options])
        with pytest.raises(SystemExit) as stop:
            main()
    return int(stop.value.code or 0)


def test_a_sound_gallery_is_said_to_be_sound(gallery: Gallery, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("verify", gallery.path) == 0
    assert f"{gallery.path} is sound: read " in capsys.readouterr().out
    assert run("verify", gallery.path, "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["sound"], report["rows"], report["findings"]) == (True, 20, [])


def test_damage_is_told_with_its_remedy_and_mended(gallery: Gallery, capsys: pytest.CaptureFixture[str]) -> None:
    mapped = next(gallery.path.glob("vectors-*.f32"))
    mapped.write_bytes(mapped.read_bytes()[:-1] + b"x")
    assert run("verify", gallery.path) == 2
    told = capsys.readouterr().out
    assert "damaged: vectors-*.f32 is not what was written; the next search, or --repair, makes it again" in told
    assert run("verify", gallery.path, "--repair", "--json") == 0
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert finding["mended"]
    assert run("verify", gallery.path) == 0


@pytest.mark.parametrize("verb", ["search", "verify"])
def test_lost_rows_are_an_error_with_exit_code_2(
    gallery: Gallery, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in (gallery.path / "rows.lance" / "_versions").iterdir():
        path.unlink()
    assert run(verb, gallery.path, *(["a river"] if verb == "search" else [])) == 2
    captured = capsys.readouterr()
    assert "empty" not in captured.out
    if verb == "search":
        assert captured.err.startswith("evidex: error: ")
        assert captured.err.count("\n") == 1


def test_what_is_no_gallery_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("verify", tmp_path / "nothing") == 2
    assert "is no gallery" in capsys.readouterr().err


def test_marks_that_cannot_be_read_are_told_beside_all_else(
    gallery: Gallery, capsys: pytest.CaptureFixture[str]
) -> None:
    held = gallery.path / "marks.jsonl"
    held.write_bytes(b"torn")
    assert run("verify", gallery.path) == 0
    assert "note: 1 lines of marks.jsonl are not what was written" in capsys.readouterr().out
    held.unlink()
    held.mkdir()
    for options in ([], ["--repair"]):
        assert run("verify", gallery.path, *options) == 2
        told = capsys.readouterr().out
        assert "damaged: marks.jsonl cannot be read" in told
        assert "20 rows" in told
