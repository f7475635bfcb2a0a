"""The container's recipe, where no container can be built: what it names is there, and it runs what evidex knows."""

from __future__ import annotations

import fnmatch
import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import typer

from evidex.cli.app import app
from evidex.server.settings import Settings

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WHEEL = f"dist/evidex-{PROJECT['version']}-py3-none-any.whl"


def _instructions() -> list[tuple[str, str]]:
    """Each instruction and its arguments, lines joined."""
    text = (ROOT / "Dockerfile").read_text()
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in joined.splitlines())]


def _all(word: str) -> list[str]:
    return [rest for name, rest in _instructions() if name == word]


def _only(word: str) -> str:
    (found,) = _all(word)
    return found


def test_the_base_is_one_release_of_a_python_that_evidex_runs_on() -> None:
    base = re.fullmatch(r"python:(\d+)\.(\d+)\.\d+-slim-[a-z]+", _only("FROM"))
    assert base is not None
    least = re.fullmatch(r">=(\d+)\.(\d+)", PROJECT["requires-python"])
    assert least is not None
    assert tuple(map(int, base.groups())) >= tuple(map(int, least.groups()))


def test_it_runs_as_nobody_in_particular() -> None:
    user = _only("USER")
    assert user.isdecimal()
    assert int(user) >= 10000
    names = [name for name, _ in _instructions()]
    assert not {"RUN", "COPY", "ADD"} & set(names[names.index("USER") :]), "what follows USER would need its rights"
    assert f"useradd --uid {user}" in " ".join(_all("RUN"))


def test_what_is_copied_is_there_and_nothing_else_is_sent() -> None:
    sources = _only("COPY").split()[:-1]
    sent = {"constraints.txt", WHEEL}
    assert (ROOT / "constraints.txt").is_file()
    assert all(any(fnmatch.fnmatch(name, source) for name in sent) for source in sources)
    hidden, *shown = (ROOT / ".dockerignore").read_text().split()
    assert hidden == "*"
    assert [pattern.removeprefix("!") for pattern in shown] == sources
    assert "dist" in re.findall(r"(?m)^wheel:.*\n(?:\t.*\n)*", (ROOT / "Makefile").read_text())[0]


def test_every_package_of_the_image_is_pinned() -> None:
    extras = re.findall(r"\[0\]\}\[([\w,]+)\]", " ".join(_all("RUN")))[0].split(",")
    optional = PROJECT["optional-dependencies"]
    wanted = [*PROJECT["dependencies"], *(line for extra in extras for line in optional[extra])]
    pinned = {_plain(line.split("==")[0]) for line in (ROOT / "constraints.txt").read_text().split("\n")}
    assert {_plain(re.split(r"[^\w.-]", line)[0]) for line in wanted} <= pinned


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_command_is_one_that_evidex_takes_and_writes_no_gallery() -> None:
    assert json.loads(_only("ENTRYPOINT")) == ["evidex"]
    verb, *words = json.loads(_only("CMD"))
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    given = commands[verb].make_context(verb, words).params
    assert (verb, str(given["gallery"]), given["host"]) == ("serve", "/gallery", "0.0.0.0")
    assert str(given["port"]) == _only("EXPOSE") == str(Settings.port)
    assert "/gallery:ro" in (ROOT / "Dockerfile").read_text()


def test_its_health_is_asked_for_where_the_server_tells_it() -> None:
    options, _, command = _only("HEALTHCHECK").partition(" CMD ")
    assert all(f"--{name}=" in options for name in ("interval", "timeout", "start-period"))
    python, flag, code = json.loads(command)
    assert (python, flag) == ("python", "-c")
    compile(code, "HEALTHCHECK", "exec")
    assert f"http://127.0.0.1:{Settings.port}/ready" in code


@pytest.mark.skipif(shutil.which("hadolint") is None, reason="hadolint is not installed")
def test_a_linter_finds_nothing() -> None:
    run = subprocess.run(["hadolint", ROOT / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (0, "")
