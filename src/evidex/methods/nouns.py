"""Which words of a caption are nouns, for methods that align nouns with places.

There is no part-of-speech tagger here. Captions of overhead images use few words, so those that are no nouns are
listed: everything else counts as one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import torch

from evidex.encoders.protocol import DualEncoder

_MOST_KNOWN = 10_000  # parts of captions whose tokens were counted
_NO_NOUNS = """
a an the this that these those it its they their them there here which who what where one two three four five six
seven eight nine ten many some several few most all both each every another other others no not any much more less
lot lots number numbers of in on at by to from with without within into onto over under above below near nearby
next beside besides between among amid around along across through behind before after against outside inside
beyond off up down and or but while as than so also too very quite rather just only almost together together
is are was were be been being am has have had having do does did can could will would may might must should
seem seems look looks see seen saw get gets located situated placed stands stand standing sits sit lies lie lying
parked park-like surrounded surrounds surround covered covers cover filled fill fills built lined lines planted
plant-like scattered arranged connected connects connect separated divided crossed crosses cross extending extends
contains contain containing includes include including consists consisting shows show shown decorated enclosed runs
running goes passes passing leads leading dotted stretches winds winding curved bent shaped shaping orderly neatly
closely densely sparsely randomly half partly mostly mainly different various same similar dense sparse regular
irregular neat large big huge small little tiny long short wide narrow tall high low deep shallow straight round
circular square rectangular oval triangular semicircular flat bare empty open new old beautiful good clear dark
light bright pale deep-colored white black gray grey red orange yellow green blue purple brown pink golden silver
dark-green light-green residential-like commercial-like main middle central left right top bottom upper lower
"""
_OTHERS = frozenset(_NO_NOUNS.split())
_WORD = re.compile(r"[a-z0-9]+(?:[-'][a-z0-9]+)*")


def noun_spans(text: str) -> list[tuple[int, int]]:
    """Where the nouns of ``text`` stand, as places of characters; its first word if it has none."""
    lowered = text.lower()
    words = [match.span() for match in _WORD.finditer(lowered)]
    found = [(start, end) for start, end in words if lowered[start:end] not in _OTHERS]
    return found or words[:1]


class NounTokens:
    """Which tokens of an encoder are parts of nouns; tokenizers cut word by word, so that tokens can be counted."""

    def __init__(self, encoder: DualEncoder) -> None:
        self._tokenize = [encoder.tokenize]
        self._counts: dict[str, int] = {}

    def mask(self, texts: Sequence[str], length: int) -> torch.Tensor:
        """Return int64 (n, length), 1 at the tokens of nouns."""
        found = torch.zeros(len(texts), length, dtype=torch.int64)
        for row, text in zip(found, texts, strict=True):
            place, done = 1, 0  # after the token that begins a text
            for start, end in noun_spans(text):
                place += self._count(text[done:start])
                row[place : place + self._count(text[start:end])] = 1
                place, done = place + self._count(text[start:end]), end
        return found

    def _count(self, part: str) -> int:
        known = self._counts.get(part)
        if known is None:
            known = sum(self._tokenize[0]([word])["input_ids"].shape[1] - 2 for word in part.split())
            if len(self._counts) < _MOST_KNOWN:
                self._counts[part] = known
        return known
