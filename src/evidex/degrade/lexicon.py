"""The lexicon of exchangeable phrases: how annotators of remote-sensing images differ in their words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import Final

import numpy as np

from evidex.degrade.text import PhraseMatcher, Replacement, Span, replace, words
from evidex.documents import read_text
from evidex.errors import DataError, InputError

AXES: Final = (
    "domain_synonym",
    "granularity_drift",
    "quantifier_weakening",
    "spatial_relation",
    "colour_material",
)
_HEADER: Final = ["axis", "phrase", "alternatives"]


@dataclass(frozen=True)
class Entry:
    """A phrase and what may stand in its place, all of one axis."""

    axis: str
    phrase: str
    alternatives: tuple[str, ...]


@dataclass(frozen=True)
class Match:
    """An entry found at characters ``start`` to ``end`` of a caption."""

    start: int
    end: int
    entry: Entry


@dataclass(frozen=True)
class Lexicon:
    """Phrases of the field with their alternatives; read one with :meth:`load`."""

    entries: tuple[Entry, ...]

    @classmethod
    def load(cls, path: Path | None = None) -> Lexicon:
        """Read the lexicon that ships with evidex, or the file at ``path`` in the same form.

        The file is tab-separated: axis, phrase, alternatives with ``|`` between them. Blank lines and lines that
        begin with ``#`` are skipped.
        """
        if path is None:
            return _shipped()
        return cls(_parse(read_text(path, DataError), str(path)))

    def matches(self, caption: str) -> tuple[Match, ...]:
        """The entries found in ``caption`` from left to right: whole words, any case, longest first, no overlap."""
        return tuple(self._as_match(span) for span in self._matcher.find(caption))

    def substitute(self, caption: str, rng: np.random.Generator, probability: float = 0.3, limit: int = 3) -> str:
        """Exchange matched phrases for alternatives.

        Each match is chosen independently with ``probability``; of more than ``limit`` chosen ones a random
        ``limit`` are kept. The alternative is drawn uniformly.
        """
        if not 0.0 <= probability <= 1.0:
            raise InputError(f"probability {probability} is not between 0 and 1")
        if limit < 0:
            raise InputError(f"limit {limit} is negative; give the largest number of substitutions a caption may get")
        matches = self.matches(caption)
        chosen = [match for match, coin in zip(matches, rng.random(len(matches)), strict=True) if coin < probability]
        while len(chosen) > limit:
            del chosen[_uniform_index(rng, len(chosen))]
        return replace(caption, [_replacement(match, rng) for match in chosen])

    @cached_property
    def _matcher(self) -> PhraseMatcher:
        return PhraseMatcher([entry.phrase for entry in self.entries])

    @cached_property
    def _by_phrase(self) -> dict[str, Entry]:
        return {entry.phrase: entry for entry in self.entries}

    def _as_match(self, span: Span) -> Match:
        return Match(span.start, span.end, self._by_phrase[span.phrase])


def _uniform_index(rng: np.random.Generator, count: int) -> int:
    return min(int(rng.random() * count), count - 1)


def _replacement(match: Match, rng: np.random.Generator) -> Replacement:
    alternatives = match.entry.alternatives
    return Replacement(match.start, match.end, alternatives[_uniform_index(rng, len(alternatives))])


@cache
def _shipped() -> Lexicon:
    """Read and made ready once: training asks at every step."""
    text = resources.files("evidex.degrade").joinpath("lexicon.tsv").read_text(encoding="utf-8")
    return Lexicon(_parse(text, "lexicon.tsv"))


def _parse(text: str, source: str) -> tuple[Entry, ...]:
    entries: dict[str, Entry] = {}
    header_seen = False
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = [field.strip() for field in line.split("\t")]
        if not header_seen:
            if fields != _HEADER:
                raise DataError(f"'{source}' line {number}: begin with the columns {', '.join(_HEADER)}, tab-separated")
            header_seen = True
            continue
        entry = _entry(fields, f"'{source}' line {number}")
        if entry.phrase in entries:
            raise DataError(f"'{source}' line {number}: '{entry.phrase}' is there twice; join the two lines")
        entries[entry.phrase] = entry
    if not entries:
        raise DataError(f"'{source}' holds no entries; add lines of axis, phrase, alternatives")
    _check_axes_agree(entries, source)
    return tuple(entries.values())


def _entry(fields: list[str], where: str) -> Entry:
    if len(fields) != len(_HEADER):
        raise DataError(f"{where}: {len(fields)} columns; write axis, phrase, alternatives with tabs between")
    axis, phrase, joined = fields
    if axis not in AXES:
        raise DataError(f"{where}: unknown axis '{axis}'; use one of {', '.join(AXES)}")
    alternatives = tuple(part.strip() for part in joined.split("|"))
    for text in (phrase, *alternatives):
        if not text or " ".join(words(text)) != text:
            raise DataError(f"{where}: '{text}' must be lower-case words with single spaces between")
    if phrase in alternatives:
        raise DataError(f"{where}: '{phrase}' is its own alternative; leave it out")
    if len(set(alternatives)) != len(alternatives):
        raise DataError(f"{where}: '{phrase}' has an alternative twice; keep one")
    return Entry(axis, phrase, alternatives)


def _check_axes_agree(entries: dict[str, Entry], source: str) -> None:
    for entry in entries.values():
        for alternative in entry.alternatives:
            other = entries.get(alternative)
            if other is not None and other.axis != entry.axis:
                raise DataError(
                    f"'{source}': '{alternative}' is an alternative on axis {entry.axis} but an entry of axis "
                    f"{other.axis}; keep one axis"
                )
