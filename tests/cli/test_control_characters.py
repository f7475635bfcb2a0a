"""Names of files may hold what a terminal obeys: it is shown, never sent, and JSON has the name as it is."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest

from evidex.retrieval.gallery import Gallery
from evidex.retrieval.indexing import IndexOptions
from evidex.visible import visible
from tests.cli.running import Runner
from tests.retrieval.archive import picture, tiny_model

NASTY = "\x1b[2J\x1b]0;owned\x07 red\u202egpj"


def _is_tame(text: str) -> bool:
    return not any(unicodedata.category(char) == "Cc" or char == "\u202e" for char in text.replace("\n", ""))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("names")
    files = folder / "files"
    files.mkdir()
    for name in (f"a{NASTY}.png", f"b{NASTY}\nc.png"):
        picture(1).save(files / name)
    (files / f"broken{NASTY}.png").write_bytes(b"nothing")
    tiny_model().save(folder / "model.safetensors")
    Gallery.create(folder / "gallery", tiny_model()).add(files, options=IndexOptions(workers=1))
    return folder


def test_tables_and_reports_show_names_and_do_not_send_them(place: Path, evidex: Runner, tmp_path: Path) -> None:
    gallery = ("--gallery", place / "gallery")
    made = ("--gallery", tmp_path / "g\u202e", "--model", place / "model.safetensors", "--no-calibrate")
    for ran in (
        evidex("search", "a river", *gallery, "--copies"),
        evidex("duplicates", *gallery),
        evidex("index", place / "files", *made),
        evidex("locate", "a river", place / "files", "--model", place / "model.safetensors"),
    ):
        assert ran.code == 0
        assert "\\x1b[2J" in ran.out + ran.err
        assert _is_tame(ran.out + ran.err)
    assert "g\\u202e is sound" in evidex("verify", "--gallery", tmp_path / "g\u202e").out
    assert len(evidex("duplicates", *gallery).out.splitlines()) == 3  # a name with a line break is one line too


def test_errors_and_notes_show_names_and_do_not_send_them(place: Path, evidex: Runner) -> None:
    for words in (
        ("search", "--image", f"none{NASTY}", "--gallery", place / "gallery"),
        ("search", "a", "--gallery", f"none{NASTY}"),
        ("index", f"none{NASTY}", "--gallery", "g"),
        ("index", place / "files", "--gallery", f"g{NASTY}", "--model", place / "model.safetensors"),
        ("search", "a", "--among", NASTY, "--gallery", place / "gallery"),
    ):
        complaint = evidex(*words).complaint
        assert "owned" in complaint
        assert _is_tame(complaint)


def test_a_study_shows_names_and_does_not_send_them(evidex: Runner, tmp_path: Path) -> None:
    plan = tmp_path / "study.toml"
    base = tmp_path / "base.toml"
    base.write_text('[encoder]\nkind = "compact"\n')
    plan.write_text(f'base = "{base}"\ndataset = "none"\n[[run]]\nname = "a"\n')
    ran = [
        evidex("study", tmp_path / f"none{NASTY}.toml"),
        evidex("study", plan, "--output", tmp_path / f"out{NASTY}"),  # its one run fails, and the results are named
        evidex("study", plan, f"--{NASTY}"),
    ]
    assert [each.code for each in ran] == [2, 1, 2]
    assert all("owned" in each.err and _is_tame(each.err) for each in ran)


def test_json_has_names_as_they_are(place: Path, evidex: Runner) -> None:
    answer = json.loads(evidex("search", "a river", "--gallery", place / "gallery", "--copies", "--json").out)
    assert {Path(hit["path"]).name for hit in answer["hits"]} == {f"a{NASTY}.png", f"b{NASTY}\nc.png"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31m", "\\x1b[31m"),
        ("a\tb\r\n", "a\\tb\\r\\n"),
        ("\x9b2J\x7f", "\\x9b2J\\x7f"),
        ("\u2028\u202e\ud800", "\\u2028\\u202e\\ud800"),
        ("Zürich 絵画 e\u0301 👨\u200d👩\u200d👧 a\u00a0b", "Zürich 絵画 e\u0301 👨\u200d👩\u200d👧 a\u00a0b"),
    ],
)
def test_only_what_a_terminal_obeys_is_escaped(text: str, shown: str) -> None:
    assert visible(text) == shown
