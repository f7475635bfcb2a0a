"""Nouns as English writes them: one or many, with an article or bare.

A few rules, no dictionary: a form that nobody would write costs little where several are averaged.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_ARTICLE = re.compile(r"^(?:an?|the)\s+", re.IGNORECASE)
_PREPOSITION = re.compile(
    r"\s+(?:with|without|in|on|at|of|by|near|beside|between|among|along|over|under|across|around|next|from|to|for|and)\b",
    re.IGNORECASE,
)
_IRREGULAR = {"man": "men", "woman": "women", "child": "children", "person": "people", "foot": "feet"}
_BACK = {many: one for one, many in _IRREGULAR.items()}
_ALIKE = frozenset({"aircraft", "sheep", "series", "species"})
"""Written alike for one and for many."""
_VOWEL_SOUND = re.compile(r"[aio]|e(?!u)|un(?!i)|u(?![nst])|hour|honest", re.IGNORECASE)


def plural_word(word: str) -> str:
    """One noun in the plural: "church" → "churches"; as it is where it is one already."""
    lower = word.lower()
    if lower in _IRREGULAR:
        return _IRREGULAR[lower]
    if lower in _ALIKE or singular_word(word) != word:
        return word
    if re.search(r"(?:s|x|z|ch|sh)$", lower):
        return f"{word}es"
    if re.search(r"[^aeiou]y$", lower):
        return f"{word[:-1]}ies"
    return f"{word}s"


def singular_word(word: str) -> str:
    """One noun in the singular: "churches" → "church"; as it is where it is one already."""
    lower = word.lower()
    if lower in _BACK:
        return _BACK[lower]
    if lower in _ALIKE or len(lower) < 4 or not re.search(r"[^sui]s$", lower):
        return word
    if lower.endswith("ies") and len(lower) > 4:
        return f"{word[:-3]}y"
    if re.search(r"(?:ss|x|zz|ch|sh|[^o]us)es$", lower):
        return word[:-2]
    return word[:-1]


def singular(phrase: str) -> str:
    """A noun phrase bare and in the singular: "the churches with a spire" → "church with a spire"."""
    return _with_head(_ARTICLE.sub("", phrase.strip()), singular_word)


def plural(phrase: str) -> str:
    """The same in the plural."""
    return _with_head(_ARTICLE.sub("", phrase.strip()), plural_word)


def articled(phrase: str) -> str:
    """A bare phrase with "a" or "an" before it."""
    return f"{'an' if _VOWEL_SOUND.match(phrase) else 'a'} {phrase}"


def head(phrase: str) -> str:
    """The word that names the thing: "table" in "a pool table with legs"."""
    return _PREPOSITION.split(phrase.strip(), maxsplit=1)[0].rpartition(" ")[2]


def _with_head(phrase: str, change: Callable[[str], str]) -> str:
    """The phrase with its head, the last word before a preposition, changed."""
    found = _PREPOSITION.search(phrase)
    end = len(phrase) if found is None else found.start()
    before, space, head = phrase[:end].rpartition(" ")
    return f"{before}{space}{change(head)}{phrase[end:]}"
