"""Words on a terminal: they fit, however wide their characters are, and are plain where no one watches."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len

from evidex.cli.terminal import Terminal, columns, cut, cut_left, padded, wrapped


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [("abc", 3, "abc"), ("abcd", 3, "…cd"), ("絵画.png", 6, "….png"), ("絵画.png", 7, "…画.png"), ("ab", 1, "…")],
)
def test_cutting_from_the_left(text: str, width: int, expected: str) -> None:
    assert cut_left(text, width) == expected


@pytest.mark.parametrize(("text", "width", "expected"), [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("絵画館", 4, "絵…")])
def test_cutting_from_the_end(text: str, width: int, expected: str) -> None:
    assert cut(text, width) == expected


@pytest.mark.parametrize("text", ["plain", "Zürich", "e\u0301", "絵画.png", "ｶﾅ", "…", "한국", ""])
def test_columns_are_those_that_terminals_take(text: str) -> None:
    assert columns(text) == cell_len(text)
    assert columns(padded(text, 12)) == columns(padded(text, 12, right=True)) == 12


@pytest.mark.parametrize("width", [5, 20, 79, 80, 200])
def test_wrapped_lines_fit_and_lose_nothing(width: int) -> None:
    text = "Answered: the archive supports this well enough /a/path/that/is/longer/than/some/lines 絵画 館.\nAnother."
    lines = wrapped(text, width)
    assert max(map(columns, lines)) <= width
    assert "".join("".join(lines).split()) == "".join(text.split())
    if width == 200:
        assert lines == text.splitlines()


class _Watched(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def _terminal(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, **said: str) -> Terminal:
    for name in ("COLUMNS", "TERM", "NO_COLOR", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", stream)
    return Terminal.of_output()


def test_a_terminal_gets_what_it_can_show(monkeypatch: pytest.MonkeyPatch) -> None:
    full = _terminal(monkeypatch, _Watched(), TERM="xterm-256color", COLORTERM="truecolor", COLUMNS="90")
    assert (full.width, full.styles, full.pictures) == (90, True, True)
    assert full.styled("x", "bold green") == "\x1b[1;32mx\x1b[0m"
    plain = _terminal(monkeypatch, _Watched(), TERM="xterm", COLUMNS="90")
    assert (plain.styles, plain.pictures) == (True, False)
    for said in ({"TERM": "dumb"}, {"TERM": "xterm", "NO_COLOR": "1"}):
        bare = _terminal(monkeypatch, _Watched(), COLORTERM="truecolor", **said)
        assert (bare.styles, bare.pictures) == (False, False)


def test_a_pipe_gets_whole_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    piped = _terminal(monkeypatch, stream, TERM="xterm-256color", COLORTERM="truecolor")
    assert (piped.styles, piped.pictures) == (False, False)
    piped.write("a-path-of-200-characters/" * 8, "bold red")
    assert stream.getvalue() == "a-path-of-200-characters/" * 8 + "\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("words", [["--version"], ["methods"], ["--help"]])
def test_output_that_cannot_be_written_is_one_line(words: list[str]) -> None:
    command = [sys.executable, "-m", "evidex", *words]
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("evidex: error: what was asked for cannot be written (No space left on device)")
    assert done.stderr.count("\n") == 1


def test_a_closed_output_is_no_failure() -> None:
    closed = [sys.executable, "-c", "import sys; sys.stdout = None; from evidex.cli.app import main; main()", "models"]
    done = subprocess.run(closed, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
