"""CLIP's byte pairs in plain Python: a text cut into words, words into bytes, bytes joined by the learned merges."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

_SPACE = re.compile("[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
_SHORT_FORMS = re.compile("'(?:s|t|re|ve|m|ll|d)")
_END_OF_WORD = "</w>"
_REMEMBERED = 10_000  # words; a server must not grow with its queries
_LONGEST_WORD = 1_500  # bytes; what is cut off lies beyond any context


class BytePairs:
    """Words to token numbers. ``special`` are the tokens that stand for themselves wherever they are written."""

    def __init__(
        self, vocabulary: Mapping[str, int], merges: Sequence[tuple[str, str]], *, special: Sequence[str], unknown: int
    ) -> None:
        self._vocabulary = vocabulary
        self._rank = {pair: rank for rank, pair in enumerate(merges)}
        self._special = re.compile("|".join(map(re.escape, special)))
        self._unknown = unknown
        self._symbols = dict(zip(_bytes_in_order(), byte_symbols(), strict=True))
        self._known: dict[str, list[int]] = {}

    def encode(self, text: str) -> Iterator[int]:
        """The numbers of ``text``, without a start or an end."""
        at = 0
        for found in self._special.finditer(text):
            yield from self._plain(text[at : found.start()])
            yield self._vocabulary[found[0]]
            at = found.end()
        yield from self._plain(text[at:])

    def _plain(self, text: str) -> Iterator[int]:
        cleaned = _SPACE.sub(" ", unicodedata.normalize("NFC", text))
        # Letter by letter: CLIP's own knows no letters that change with their place in a word.
        for word in split_words("".join(letter.lower() for letter in cleaned)):
            if word not in self._known and len(self._known) >= _REMEMBERED:
                self._known.clear()
            if word not in self._known:
                self._known[word] = self._cut(word)
            yield from self._known[word]

    def _cut(self, word: str) -> list[int]:
        symbols = [self._symbols[byte] for byte in word.encode("utf-8", "replace")[:_LONGEST_WORD]]
        symbols[-1] += _END_OF_WORD
        while len(symbols) > 1:
            best = min(pairwise(symbols), key=lambda pair: self._rank.get(pair, len(self._rank)))
            if best not in self._rank:
                break
            symbols = _merged(symbols, best)
        return [self._vocabulary.get(symbol, self._unknown) for symbol in symbols]


def _merged(symbols: list[str], pair: tuple[str, str]) -> list[str]:
    joined, at = [], 0
    while at < len(symbols):
        both = tuple(symbols[at : at + 2]) == pair
        joined.append("".join(pair) if both else symbols[at])
        at += 2 if both else 1
    return joined


def split_words(text: str) -> Iterator[str]:
    """Short forms ('s, 're …), runs of letters, single digits, and runs of what is neither nor white space."""
    at = 0
    while at < len(text):
        if short := _SHORT_FORMS.match(text, at):
            yield short[0]
            at = short.end()
            continue
        kind, start = _kind(text[at]), at
        at += 1
        while kind in ("letter", "other") and at < len(text) and _kind(text[at]) == kind:
            at += 1
        if kind != "space":
            yield text[start:at]


def _kind(letter: str) -> str:
    if _SPACE.match(letter):
        return "space"
    return {"L": "letter", "N": "digit"}.get(unicodedata.category(letter)[0], "other")


def byte_symbols() -> list[str]:
    """Return a printable character for each byte, in the order in which CLIP numbers them.

    Printable bytes stand for themselves and come first; the others take the characters from 256 on.
    """
    printable = _printable()
    return [chr(code) for code in printable] + [chr(256 + offset) for offset in range(256 - len(printable))]


def _bytes_in_order() -> list[int]:
    printable = _printable()
    return printable + sorted(set(range(256)).difference(printable))


def _printable() -> list[int]:
    return [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
