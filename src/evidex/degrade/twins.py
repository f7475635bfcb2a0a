"""Twins of a caption: the same sentence with one colour, number, relation or object exchanged, so that it is not true.

The lexicon says in which words annotators differ who mean the same; a twin differs in what is meant. `twins.tsv` groups
phrases of the lexicon that exclude each other and fit the same place in a sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from importlib import resources
from typing import Final

import numpy as np

from evidex.degrade.lexicon import Lexicon
from evidex.degrade.text import PhraseMatcher, Replacement, Span, replace, words

TWIN_AXES: Final = ("colour", "number", "relation", "object")


@dataclass(frozen=True)
class Group:
    """Phrases of one axis, any of which may be exchanged for any other."""

    axis: str
    phrases: tuple[str, ...]


@dataclass(frozen=True)
class Twins:
    """Which phrases are exchanged for which; get the shipped ones with :meth:`load`."""

    groups: tuple[Group, ...]
    lexicon: Lexicon

    @classmethod
    def load(cls) -> Twins:
        return _shipped()

    def twin(
        self, caption: str, rng: np.random.Generator, *, axis: str | None = None, others: Sequence[str] = ()
    ) -> str | None:
        """``caption`` with one phrase exchanged, on ``axis`` or on any; None where nothing can be.

        Nothing is put in that ``caption`` or one of the ``others``, which are true of the same picture, says already,
        in these or in other words of the lexicon.
        """
        said = " ".join(_folded(text) for text in (caption, *others))
        choices = []
        for span in self._matcher.find(caption):
            if axis is not None and self.axis_of.get(span.phrase) != axis:
                continue
            fitting = [phrase for phrase in self._exchanges.get(span.phrase, ()) if not self._is_said(phrase, said)]
            if fitting:
                choices.append((span, fitting))
        if not choices:
            return None
        span, fitting = choices[_index(rng, len(choices))]
        return _exchanged(caption, span, fitting[_index(rng, len(fitting))])

    @cached_property
    def axis_of(self) -> dict[str, str]:
        """The axis of each phrase."""
        return {phrase: group.axis for group in self.groups for phrase in group.phrases}

    @cached_property
    def synonyms(self) -> dict[str, frozenset[str]]:
        """Each phrase with what the lexicon takes for it, and what it takes it for."""
        families: dict[str, set[str]] = {phrase: {phrase} for phrase in self.axis_of}
        for entry in self.lexicon.entries:
            for one, another in ((entry.phrase, word) for word in entry.alternatives):
                families.setdefault(one, {one}).add(another)
                families.setdefault(another, {another}).add(one)
        return {phrase: frozenset(families[phrase]) for phrase in self.axis_of}

    @cached_property
    def _exchanges(self) -> dict[str, list[str]]:
        found: dict[str, dict[str, None]] = {}
        for group in self.groups:
            for phrase in group.phrases:
                found.setdefault(phrase, {}).update(dict.fromkeys(group.phrases))
        return {phrase: [other for other in others if other != phrase] for phrase, others in found.items()}

    @cached_property
    def _matcher(self) -> PhraseMatcher:
        """Of the whole lexicon: "green" is not found in "dark green"."""
        return PhraseMatcher(list(dict.fromkeys([*self.axis_of, *(entry.phrase for entry in self.lexicon.entries)])))

    @cached_property
    def _sayings(self) -> dict[str, tuple[str, ...]]:
        """The synonyms of each phrase, folded."""
        return {phrase: tuple(sorted(map(_folded, family))) for phrase, family in self.synonyms.items()}

    def _is_said(self, phrase: str, said: str) -> bool:
        return any(saying in said for saying in self._sayings[phrase])


@lru_cache(maxsize=1 << 16)  # training asks for the same captions in every epoch
def _folded(text: str) -> str:
    """The words of ``text`` between blanks, without the s of a plural."""
    return f" {' '.join(word.removesuffix('s') for word in words(text))} "


def _index(rng: np.random.Generator, count: int) -> int:
    return min(int(rng.random() * count), count - 1)


def _exchanged(caption: str, span: Span, phrase: str) -> str:
    return replace(caption, [Replacement(span.start, span.end, phrase)])


@cache
def _shipped() -> Twins:
    text = resources.files("evidex.degrade").joinpath("twins.tsv").read_text(encoding="utf-8")
    lines = [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]
    return Twins(tuple(Group(axis, tuple(joined.split("|"))) for axis, joined in lines[1:]), Lexicon.load())
