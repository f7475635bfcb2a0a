"""Files that users write: whatever lies there, it ends in a value or in one line of evidex's own errors."""

from __future__ import annotations

import ast
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

import evidex
from evidex.documents import open_regular, parse_json, parse_toml, read_json, read_text, read_toml
from evidex.errors import DataError

_SOURCE = Path(evidex.__file__).parent


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    place = Path.cwd()
    os.chdir(path.parent)  # the name of a socket must be short
    try:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(path.name)
    finally:
        os.chdir(place)


def _nothing(path: Path) -> None:
    assert not path.exists()


def _loop(path: Path) -> None:
    path.symlink_to(path)


@pytest.mark.parametrize("make", [_pipe, _socket, _loop, Path.mkdir, _nothing], ids=lambda make: make.__name__)
def test_what_is_no_file_is_refused_and_not_waited_for(make: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "x"
    make(path)
    for read in (lambda: open_regular(path, DataError), lambda: read_json(path, DataError)):
        with pytest.raises(DataError, match="x'") as caught:
            read()
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["/dev/zero", "/proc/self/mem", "a\0b", "x" * 5000, "\ud800", ""])
def test_odd_names_are_one_line(name: str) -> None:
    with pytest.raises(DataError):
        read_text(name, DataError)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[" * 100_000, b'{"a":' * 100_000, b"\xff\xfe\xfd", b"9" * 5000, b'"\\ud8', b"\0" * 10, b"nul"],
)
def test_json_that_is_none_is_an_error_of_ours(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(content)
    with pytest.raises(DataError, match="not readable as JSON"):
        read_json(tmp_path / "x.json", DataError)
    with pytest.raises(ValueError):
        parse_json(content)


@pytest.mark.parametrize("content", [b"a", b"a = " + b"[" * 10_000, b"a" + b".a" * 9000 + b" = 1", b"\xff", b"a = 1e"])
def test_toml_that_is_none_is_an_error_of_ours(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_bytes(content)
    with pytest.raises(DataError, match=r"x\.toml"):
        read_toml(tmp_path / "x.toml", DataError)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(b'\xef\xbb\xbf{"a": [1, 2]}')
    assert read_json(tmp_path / "x.json", DataError) == {"a": [1, 2]}
    assert parse_toml("a.b = [[1], [2]]") == {"a": {"b": [[1], [2]]}}


def _calls(source: Path) -> set[str]:
    """The functions of other modules that a file calls, by their full names, e.g. PIL.Image.open."""
    tree = ast.parse(source.read_text())
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {(alias.asname or alias.name): alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {(alias.asname or alias.name): f"{node.module}.{alias.name}" for alias in node.names}
    called = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            start, _, rest = ast.unparse(node.func).partition(".")
            if start in names:
                called.add(f"{names[start]}.{rest}".rstrip("."))
    return called


@pytest.mark.parametrize(
    ("functions", "allowed"),
    [
        ({"PIL.Image.open"}, {"data/images.py"}),
        ({"json.loads", "json.load"}, {"documents.py"}),
        ({"tomllib.loads", "tomllib.load"}, {"documents.py"}),
    ],
)
def test_pictures_and_documents_are_opened_in_one_place(functions: set[str], allowed: set[str]) -> None:
    callers = {path.relative_to(_SOURCE).as_posix() for path in _SOURCE.rglob("*.py") if _calls(path) & functions}
    assert callers <= allowed
    assert callers & allowed
