"""Text for a terminal, from wherever it is printed: names of files may hold what a terminal obeys."""

from __future__ import annotations

import unicodedata

# What a terminal obeys instead of showing it: controls, breaks of lines, half characters. Marks of direction are of the
# category that joins emoji too, so they are named.
_OBEYED = ("Cc", "Cs", "Zl", "Zp")
_DIRECTIONS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def visible(text: str) -> str:
    """``text`` with what a terminal would obey written as an escape: names of files may hold anything."""
    if text.isprintable():
        return text
    return "".join(_escaped(char) if _is_obeyed(char) else char for char in text)


def _is_obeyed(char: str) -> bool:
    return unicodedata.category(char) in _OBEYED or char in _DIRECTIONS


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")
