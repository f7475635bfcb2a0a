"""What of a question a model can read, and whether that names anything: "pictures" and "???" name nothing to look for.

Symbols and emoji are no words. A tokenizer makes unknown pieces of them, or pieces that no caption ever had, and either
moves the vector of a question away from what its words say.
"""

from __future__ import annotations

import re
import unicodedata

from evidex.data.function_words import FUNCTION_WORDS
from evidex.retrieval.phrasing import asked_for

_PUNCTUATION = frozenset(".,;:'\"()-/&\u2018\u2019\u201c\u201d\u2010\u2011\u2012\u2013\u2014\u2015")
"""What captions are written with; they never ask or shout."""
_SELECTORS = re.compile("[\ufe00-\ufe0f\u20e3\U000e0100-\U000e01ef]")
_WORD = re.compile(r"[^\W\d_]+")
_NAME = re.compile(r"\d{3,}|[^\W\d_]-?\d|\d-?[^\W\d_]")
"""A long number, or one with a letter: "747", "A380", "I-95"."""
_SHORT_FOR = (
    (re.compile(r"\bw/o\b", re.IGNORECASE), "without"),
    (re.compile(r"\bw/(?=\s*\w)", re.IGNORECASE), "with "),
)
PICTURES = frozenset({
    "image", "images", "imagery", "orthophoto", "orthophotos", "photo", "photograph", "photographs", "photos", "pic",
    "pics", "picture", "pictures", "scene", "scenes", "view", "views",
})  # fmt: skip
_FROM_ABOVE = frozenset({"aerial", "drone", "overhead", "satellite"})
"""These say how a picture was taken; without one they are things."""
_REQUESTS = frozenset({
    "anything", "archive", "collection", "dataset", "display", "everything", "find", "gallery", "get", "give", "hello",
    "fetch", "hey", "hi", "list", "locate", "look", "looking", "need", "nothing", "ok", "okay", "please", "search",
    "see", "show", "something", "stuff", "thank", "thanks", "thing", "things", "want",
})  # fmt: skip


def readable(text: str) -> str:
    """``text`` without what is neither a word, a number nor a mark of a sentence; as it is where nothing is left."""
    kept = "".join(_kept(char) for char in _SELECTORS.sub("", text))
    for short, written_out in _SHORT_FOR:
        kept = short.sub(written_out, kept)
    return text if kept == text or not kept.strip() else " ".join(kept.split())


def _kept(char: str) -> str:
    kind = unicodedata.category(char)
    if char == "\u2019":
        return "'"  # phones write it so, captions do not
    if kind[0] in "LMN" or char in _PUNCTUATION or char.isspace():
        return char
    return "" if kind == "Cf" else " "  # what joins characters leaves no gap


def names_something(text: str) -> bool:
    """Whether ``text`` has a word that is none of asking, of pictures as such, or of grammar, or a number as a name."""
    asked = asked_for(readable(text)).lower()
    words = set(_WORD.findall(asked)) - FUNCTION_WORDS - _REQUESTS
    return bool(words - PICTURES - _FROM_ABOVE if words & PICTURES else words) or _NAME.search(asked) is not None
