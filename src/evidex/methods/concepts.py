"""Concept words of training captions: what a picture's captions agree on, for methods that teach it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import torch

_WORD = re.compile(r"[a-z0-9]+")
_GRAMMAR_WORDS = """
a an the this that these those some any no all both each few more most other such own same only just not nor
i me my mine we us our ours you your yours he him his she her hers it its they them their theirs
myself ourselves yourself yourselves himself herself itself themselves who whom which what where when why how
am is are was were be been being has have had having do does did doing can could will would should shall might must
of in on at by to for from with into onto over under above below up down out off through between against about during
before after until again further once then now here there and or but if because as than so too very while
s t d m ll re ve don
"""
_GRAMMAR = frozenset(_GRAMMAR_WORDS.split())
"""They hold a sentence together and name nothing in a picture."""


def words_of(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def agreed(captions: Sequence[str]) -> dict[str, int]:
    """Words that a picture's captions hold more than once in all, with how often."""
    counts = Counter(word for caption in captions for word in words_of(caption))
    return {word: count for word, count in counts.items() if count > 1}


def concept_words(captions: Sequence[Sequence[str]], most: int) -> list[str]:
    """The ``most`` frequent of all pictures' agreed words but those of grammar; equally frequent ones by alphabet."""
    total: Counter[str] = Counter()
    for each in captions:
        total.update({word: count for word, count in agreed(each).items() if word not in _GRAMMAR})
    return [word for word, _ in sorted(total.items(), key=lambda item: (-item[1], item[0]))[:most]]


def concept_targets(captions: Sequence[Sequence[str]], words: Sequence[str], width: int) -> torch.Tensor:
    """How strongly each picture shows each concept, (pictures, width) in [0, 1]: its count over the largest count."""
    place = {word: index for index, word in enumerate(words)}
    found = torch.zeros(len(captions), width)
    for row, each in zip(found, captions, strict=True):
        counts = agreed(each)
        for word, count in counts.items():
            if word in place:
                row[place[word]] = count / max(counts.values())
    return found
