"""What the documents show can be done: every command is one that evidex takes, and those that can be run here are run.

Those of docs/serving.md and docs/maps.md are run by tests/server/test_docs.py and tests/cli/test_catalogs.py.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
from PIL import Image

import evidex as package
from evidex.cli.app import app
from evidex.cli.options import completed
from evidex.scenes import render_archive
from tests.cli.running import Runner, runner
from tests.doc_pages import DOCS, PAGES, ROOT, blocks, mentioned

VERBS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
OWN_OPTIONS = {"study"}  # which reads its arguments without typer
ELSEWHERE = ("s3://", "--cluster", "https:", "--model large", "--model clip", "export openai", "serve", "--from-marks")
"""What needs another machine, a download, a person, or does not end."""


@pytest.fixture
def evidex(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Runner:
    return runner(monkeypatch, capsys)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_is_one_that_evidex_takes(page: Path) -> None:
    for command in [line for block in blocks(page) for line in block.commands]:
        verb, *words = _words(command)
        assert verb in VERBS, command
        if verb not in OWN_OPTIONS and "…" not in command:
            VERBS[verb].make_context(verb, completed([verb, *words])[1:])
    for command in mentioned(page):
        verb = command.split()[1]
        if verb.isalpha() and verb.islower():
            known = {option for parameter in VERBS[verb].params for option in parameter.opts} | {"--help"}
            assert verb in OWN_OPTIONS or set(re.findall(r"(?<= )--[a-z-]+", command)) <= known, command


def test_a_command_that_is_none_is_told(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("# A\n\n    evidex search x --gallery g --nowhere\n\n```sh\nevidex sample\n```\n")
    wrong, short = (block.commands[0] for block in blocks(tmp_path / "page.md"))
    for command in (wrong, short):
        verb, *words = _words(command)
        with pytest.raises(typer.TyperException):
            VERBS[verb].make_context(verb, words)


@pytest.mark.slow
def test_the_first_five_minutes_and_what_follows(
    evidex: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pages = ("start.md", "asking.md", "verdicts.md", "api/python.md")
    assert [_run(DOCS / page, evidex) for page in pages] == [9, 11, 2, 1]
    assert json.loads(Path("answer.json").read_text())["standing"] == "out_of_domain"


@pytest.mark.slow
def test_a_model_of_ones_own(evidex: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("configs").symlink_to(ROOT / "configs")
    page = DOCS / "own_model.md"
    (table,) = re.findall(r"```text\n(label\tnames\n.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    Path("names.tsv").write_text(table, encoding="utf-8")
    assert _run(page, evidex) == 9


@pytest.mark.slow
def test_searching_and_locating(evidex: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    _prepare()
    assert _run(DOCS / "searching.md", evidex) == 16
    Path("gallery").symlink_to("archive.gallery")
    row = next(iter(package.Gallery.open("gallery").records(["id"])))["id"]
    assert _run(DOCS / "locate.md", evidex, {"0f3c5a7d9be1426488aa0b12": row}) == 6


def _run(page: Path, evidex: Runner, exchanged: dict[str, str] | None = None) -> int:
    """Run a page from its beginning to its end; returns how many commands and programs there were."""
    count = 0
    for block in blocks(page):
        if block.kind == "python":
            exec(compile(block.text, str(page), "exec"), {})
            count += 1
        for command in block.commands:
            if any(part in command for part in ELSEWHERE):
                continue
            for old, new in (exchanged or {}).items():
                command = command.replace(old, new)
            words = [str(Path(word).expanduser()) if word.startswith("~") else word for word in _words(command)]
            done = evidex(*words)
            assert done.code == 0, f"{command}: {done.err}"
            if target := re.search(r" > (\S+)", command):
                Path(target[1]).write_text(done.out, encoding="utf-8")
            count += 1
    return count


def _words(command: str) -> list[str]:
    """The words after ``evidex``, without a comment and without where its output goes."""
    return shlex.split(command.partition(" > ")[0], comments=True)[1:]


def _prepare() -> None:
    """What the pages presume that a reader has."""
    render_archive(Path("my_dataset"), count=62, size=64)
    pictures = sorted(Path("my_dataset/images").iterdir())
    Path("scenes").mkdir()
    Path("more/deep").mkdir(parents=True)
    for number, path in enumerate(pictures):
        picture = Image.open(path)
        picture.save(
            Path("scenes" if number % 2 else "more/deep") / f"{path.stem}{'.jpg' if number % 4 == 1 else '.tif'}"
        )
    for name in ("example.jpg", "like_this.jpg", "one.jpg", "two.jpg", "scene.tif"):
        picture.resize((192, 192)).save(name)
    questions = [f"{kind} number {number}" for kind in ("a river", "an airport") for number in range(12)]
    Path("questions.txt").write_text("\n".join(questions))
    scenes = sorted(Path("scenes").iterdir())
    known = [{"text": f"a river number {n}", "relevant": [path.name]} for n, path in enumerate(scenes)]
    Path("questions.json").write_text(json.dumps(known))
