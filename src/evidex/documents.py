"""Files that users write, read with bounds: whatever they hold ends in a value or in one line about them."""

from __future__ import annotations

import json
import os
import stat
import tomllib
from pathlib import Path
from typing import Any, BinaryIO

from evidex.errors import EvidexError

_LARGEST_JSON = 2 << 30
_LARGEST_TOML = 1 << 20  # nobody writes so much by hand, and the parser takes minutes for a hundred times as much
_DEEPEST_TOML = 16
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


def is_file(path: str | Path) -> bool:
    """Whether a file is there; False, and no error, for names that no file can have."""
    return _kind(path) == stat.S_IFREG


def is_folder(path: str | Path) -> bool:
    """Whether a folder is there; False, and no error, for names that none can have."""
    return _kind(path) == stat.S_IFDIR


def _kind(path: str | Path) -> int | None:
    try:
        return stat.S_IFMT(os.stat(path).st_mode)  # noqa: PTH116 (as os.open below)
    except (OSError, ValueError):
        return None


def open_regular(path: str | Path, error: type[EvidexError], label: str | None = None) -> BinaryIO:
    """Open ``path`` for reading if it is a file: a pipe or a device would be waited for without end."""
    label = label or str(path)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise error(f"'{label}' does not exist; check the path") from None
    except OSError as problem:
        reason = (problem.strerror or str(problem)).lower()
        raise error(f"'{label}' cannot be opened ({reason}); check the path and its permissions") from None
    except ValueError:  # a NUL, or half a character
        raise error(f"{label!r} is no name that a file can have; check the path") from None
    kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
    if kind != stat.S_IFREG:
        os.close(descriptor)
        raise error(f"'{label}' is {_KINDS.get(kind, 'something else')}; give a file")
    return os.fdopen(descriptor, "rb")


def read_regular(path: str | Path, error: type[EvidexError], *, most: int = _LARGEST_JSON) -> bytes:
    """The content of the file ``path``, if it has no more than ``most`` bytes."""
    with open_regular(path, error) as stream:
        try:
            content = stream.read(most + 1)
        except OSError as problem:
            raise error(f"'{path}' cannot be read ({(problem.strerror or str(problem)).lower()})") from None
    if len(content) > most:
        raise error(f"'{path}' has more than {most >> 20} MiB, too much to be one; check the path")
    return content


def read_text(path: str | Path, error: type[EvidexError], *, most: int = _LARGEST_JSON) -> str:
    """The text in the file ``path``, which must be UTF-8."""
    try:
        return read_regular(path, error, most=most).decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise error(f"'{path}' is no text in UTF-8 ({problem}); save it as UTF-8") from None


def parse_json(content: str | bytes) -> Any:
    """What JSON text stands for; ValueError for all that is none, however it is nested."""
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def read_json(path: str | Path, error: type[EvidexError]) -> Any:
    """What the JSON file ``path`` stands for."""
    try:
        return parse_json(read_regular(path, error))
    except ValueError as problem:
        raise error(f"'{path}' is not readable as JSON: {problem}") from None


def parse_toml(text: str) -> dict[str, Any]:
    """What TOML text stands for; ValueError for all that is none or is nested more deeply than anything needs."""
    try:
        table = tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    level: list[Any] = [table]
    for _ in range(_DEEPEST_TOML):
        inner = [list(value.values()) if isinstance(value, dict) else value for value in level]
        level = [value for values in inner for value in values if isinstance(value, (dict, list))]
        if not level:
            return table
    raise ValueError("it is nested too deeply")


def read_toml(path: str | Path, error: type[EvidexError]) -> dict[str, Any]:
    """What the TOML file ``path`` stands for."""
    text = read_text(path, error, most=_LARGEST_TOML)
    try:
        return parse_toml(text)
    except ValueError as problem:
        raise error(f"'{path}' is not readable as TOML: {problem}") from None
