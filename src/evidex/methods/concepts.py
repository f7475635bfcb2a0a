"""Concept words of training captions: what a picture's captions agree on, for methods that teach it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import torch

_WORD = re.compile(r"[a-z0-9]+")


def words_of(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def agreed(captions: Sequence[str]) -> dict[str, int]:
    """Words that a picture's captions hold more than once in all, with how often."""
    counts = Counter(word for caption in captions for word in words_of(caption))
    return {word: count for word, count in counts.items() if count > 1}


def concept_words(captions: Sequence[Sequence[str]], most: int) -> list[str]:
    """The ``most`` frequent of all pictures' agreed words; equally frequent ones in the order of the alphabet."""
    total: Counter[str] = Counter()
    for each in captions:
        total.update(agreed(each))
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
