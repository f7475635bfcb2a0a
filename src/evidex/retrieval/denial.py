"""What a question denies: a model that learned from captions finds what is named, also what is said not to be there."""

from __future__ import annotations

import re

from evidex.data.function_words import FUNCTION_WORDS
from evidex.retrieval.told_apart import OTHERWISE

SCARCE = ("few", "hardly", "barely", "scarcely")
"""What begins so does not deny, yet is as little understood."""
_DENIAL = re.compile(
    r"\b(?:not?|never|without|except|excluding|(?:is|are|does|do|has|have)n't|free\s+of(?!\s+charge)|instead\s+of|rather\s+than"
    r"|(?:any|every)thing\s+but|other\s+than|neither|nor|non(?=-)|lacking|minus"
    r"|(?<!\ba\s)(?<!\ban\s)few|fewer|(?:hardly|barely|scarcely)\s+any"
    r"|(?:tree|cloud|car|house|people|plant|road|roof|snow|water)less)\b",
    re.IGNORECASE,
)
_ZERO = re.compile(
    r"(?:\b(?P<before>[^\W\d_]+)\s+)?(?<![\w.,:/-])(?P<said>zero|0)\s+(?=(?P<after>[^\W\d_]+))", re.IGNORECASE
)
_AT_ZERO = frozenset({"ground", "point", "day", "year", "level", "number", "terminal", "gate", "runway", "km", "mile"})
_OF_ZERO = (
    OTHERWISE | FUNCTION_WORDS | {"emission", "emissions", "energy", "carbon", "gravity", "waste", "point", "level"}
)
_DASHES = r"[-\u2010-\u2015\u2212]"
_SPACED = re.compile(rf"\s{_DASHES}\s")
_LONE_DASH = re.compile(  # after which some words end the question: in "high - rise" it is half of a word
    rf"(?:^|\s)(?!(?:x|t|y|l|u|high|low|mid|multi|semi|non)\s)[^\W\d_][\w'-]*[,;]?\s+(?P<dash>{_DASHES})\s+"
    r"(?!(?:north|south|east|west)\b)[^\W\d_][\w'-]*(?:\s+[\w'-]+){0,2}[\s.?!]*$",
    re.IGNORECASE,
)


def denied(text: str, typed: str = "") -> str | None:
    """The first word of ``text`` that denies; a lone dash where it was ``typed`` as a minus may be; None: none does."""
    found = [(word.start(), word.group()) for word in (_DENIAL.search(text),) if word is not None]
    found += [(zero.start("said"), zero["said"]) for zero in _ZERO.finditer(text) if not _is_a_name(zero)]
    if found:
        return min(found)[1]
    dash = _LONE_DASH.search(typed)
    return None if dash is None or len(_SPACED.findall(typed)) > 1 else dash["dash"]  # two enclose an aside


def is_dash(word: str) -> bool:
    """Whether what `denied` told is a dash."""
    return re.fullmatch(_DASHES, word) is not None


def _is_a_name(zero: re.Match[str]) -> bool:
    """Whether a zero denies nothing: "ground zero memorial", "0 degrees"."""
    return (zero["before"] or "").lower() in _AT_ZERO or zero["after"].lower() in _OF_ZERO
