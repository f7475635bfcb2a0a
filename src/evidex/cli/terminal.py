"""Words on a terminal: how wide it is and what it can show, without loading a library for it."""

from __future__ import annotations

import os
import shutil
import sys
import unicodedata
from dataclasses import dataclass
from typing import TextIO

import typer

from evidex.visible import visible

_WIDE = 1000
_CODES = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33}
_INVISIBLE = ("Mn", "Me", "Cf")


@dataclass(frozen=True)
class Terminal:
    """Where a command writes its result."""

    stream: TextIO
    width: int
    """In columns; into a file or a pipe lines go whole, so that paths can be used."""
    styles: bool = False
    """Whether it shows bold, dim and coloured text."""
    pictures: bool = False
    """Whether it has 24-bit colour and block characters."""

    @classmethod
    def of_output(cls) -> Terminal:
        """The standard output as the environment describes it."""
        stream, said = sys.stdout, os.environ
        watched = stream.isatty()
        width = shutil.get_terminal_size().columns if watched or "COLUMNS" in said else _WIDE
        styles = watched and said.get("TERM") not in ("dumb", "unknown") and not said.get("NO_COLOR")
        blocks = (stream.encoding or "").lower().replace("-", "") == "utf8"
        return cls(stream, width, styles, styles and blocks and said.get("COLORTERM", "") in ("truecolor", "24bit"))

    def write(self, text: str, style: str = "") -> None:
        """Write ``text``, wrapped at spaces; what is longer than a line goes on in the next."""
        text = "\n".join(map(visible, text.split("\n")))
        for line in wrapped(text, self.width):
            self.stream.write(self.styled(line, style) + "\n")

    def styled(self, text: str, style: str) -> str:
        """``text`` in a style such as ``bold green``, where the terminal shows any."""
        if not (self.styles and style and text):
            return text
        return f"\x1b[{';'.join(str(_CODES[word]) for word in style.split())}m{text}\x1b[0m"


def say(line: str, *, err: bool = False) -> None:
    """Print one line of a result, or on the error stream, whatever the names in it hold."""
    typer.echo(visible(line), err=err)


def columns(text: str) -> int:
    """How many columns of a terminal ``text`` takes: two for East Asian characters, none for marks on others."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.category(char) in _INVISIBLE else 1 + (unicodedata.east_asian_width(char) in "WF")
        for char in text
    )


def cut(text: str, width: int) -> str:
    """``text`` in ``width`` columns; what does not fit goes from its end."""
    if columns(text) <= width:
        return text
    while text and columns(text) > width - 1:
        text = text[:-1]
    return text + "…"


def cut_left(text: str, width: int) -> str:
    """``text`` in ``width`` columns; what does not fit goes from the left, where paths are alike."""
    if columns(text) <= width:
        return text
    while text and columns(text) > width - 1:
        text = text[1:]
    return "…" + text


def padded(text: str, width: int, *, right: bool = False) -> str:
    """``text`` filled up to ``width`` columns; ``right``: at the right side of them."""
    space = " " * (width - columns(text))
    return space + text if right else text + space


def wrapped(text: str, width: int) -> list[str]:
    """``text`` in lines of at most ``width`` columns, broken between words where that can be."""
    lines = []
    for paragraph in text.splitlines() or [""]:
        line = ""
        for word in paragraph.split(" "):
            longer = f"{line} {word}" if line else word
            if columns(longer) <= width:
                line = longer
                continue
            if line:
                lines.append(line)
            while columns(word) > width:
                end = max(n for n in range(1, len(word) + 1) if n == 1 or columns(word[:n]) <= width)
                lines.append(word[:end])
                word = word[end:]
            line = word
        lines.append(line)
    return lines
