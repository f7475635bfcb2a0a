"""What a question asks for that pictures of it cannot be told apart by: how many there are, and in which state."""

from __future__ import annotations

import re
from collections.abc import Collection

from evidex.data.function_words import FUNCTION_WORDS
from evidex.encoders.domain import IN_PASSING, Domain
from evidex.retrieval.content import PICTURES

HOW_MANY = "how many"
_TENS = r"(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)"
_NUMBER = (
    r"(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen"
    rf"|{_TENS}(?:[\s-](?:one|two|three|four|five|six|seven|eight|nine))?|[2-9]|[1-9]\d|[1-9]00)"
)
_SEVERAL = rf"(?P<more>pair\s+of|(?:half\s+(?:a\s+)?)?dozen|{_NUMBER}(?:(?:\s+(?:or|to)\s+|\s*[-\u2013]\s*){_NUMBER})?)"
_ABOUT = r"(?:(?:only|just|exactly|about|around|roughly|approximately|nearly|almost)\s+)?"
_BOUND = r"(?:(?:more\s+than|less\s+than|at\s+least|at\s+most|up\s+to)\s+)?"
_ARTICLE = r"(?:(?:the|an?)\s+)?"
_COUNT = re.compile(  # of what is asked for, not of what stands beside it
    rf"\s*(?:there\s+(?:is|are)\s+)?{_ABOUT}"
    rf"(?P<said>{_ARTICLE}(?P<one>single|solitary|lone|one|1)|{_BOUND}{_ARTICLE}{_SEVERAL})\s+(?=[^\W\d_])",
    re.IGNORECASE,
)
_LATER = re.compile(  # after what things are named by, and not where one lies: "between two rivers"
    r"(?:\b(?:with|has|have|having|contain(?:s|ing)?|includ(?:es?|ing)|and|are|(?:row|line|group|cluster|set)s?\s+of)\s"
    rf"|,)\s*{_ABOUT}(?P<said>{_BOUND}(?:an?\s+)?{_SEVERAL})\s+(?=[^\W\d_])",
    re.IGNORECASE,
)
_MOST_ASKED = 8  # words of a question; what is longer reads as a caption, and those often say "two"
_AMOUNT = re.compile(r"\s*(?:the\s+)?(?:(?:total|exact)\s+)?(?:number|count)\s+of\s", re.IGNORECASE)
_ALONE = ("single", "solitary", "lone")
_HOW_MANY = re.compile(r"\bhow\s+many\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]+(?:[-'][^\W\d_]+)*")
_MOST_WORDS = 2  # after the number, until its noun
_MEASURES = """
m km cm mm ft feet foot inch inches meter meters metre metres kilometer kilometers kilometre kilometres mile miles
yard yards acre acres hectare hectares ha degree degrees percent d ton tons tonne tonnes second seconds minute minutes
hour hours day days week weeks month months year years time times bit band bands pixel pixels
hundred hundreds thousand thousands million millions dozen dozens third thirds quarter quarters half halves
fifth fifths tenth tenths
"""
_STANDING_FOR = """
one ones way ways side sides end ends part parts level levels lane lanes story stories storey storeys storied
seas banks edges corners last left right
"""
OTHERWISE = PICTURES | frozenset((_MEASURES + _STANDING_FOR).split())
"""After these a number counts no things that are looked for."""
_KIND_WORDS = """
family track engine engined runway star hole point pin wheel wheeled car seat door bedroom room bay tier leaf floor
arm leg span arch man person row column lens phase
"""
_KINDS = frozenset(_KIND_WORDS.split())
"""Before another word these say of which kind it is: "single engine plane"."""
_NO_PLURALS = frozenset({"gas", "canvas", "lens", "tennis", "this", "its", "less"})
_ODD_PLURALS = """
people men women children sheep cattle geese fish aircraft spacecraft hovercraft watercraft oxen buffalo deer
"""
_PLURALS = frozenset(_ODD_PLURALS.split())
_STATE = re.compile(
    r"(?<!-)\b(?:broken(?!\s+(?:(?:white|yellow)\s+)?(?:clouds?|lines?)\b)|damaged|destroyed|ruined|collapsed|demolished"
    r"|wrecked|derelict|sunken(?!\s+(?:gardens?|plazas?|squares?)\b)|rusty|flooded|burnt|burned|burning|abandoned"
    r"|deserted(?!\s+islands?\b)|overgrown|unfinished|frozen)\b",
    re.IGNORECASE,
)


def counted(text: str, typed: str = "") -> str | None:
    """The number that a question, without its request, is for, and its noun; None: it asks for no number.

    At its beginning, or later in a short one. `HOW_MANY` if that is what was ``typed``: of such a question its request
    alone says so.
    """
    if _HOW_MANY.search(typed) or _AMOUNT.match(text):
        return HOW_MANY
    first = _COUNT.match(text)
    later = () if len(text.split()) > _MOST_ASKED else _LATER.finditer(text)
    told = (_told(text, found) for found in (first, *later) if found is not None)
    return next(filter(None, told), None)


def _told(text: str, found: re.Match[str]) -> str | None:
    """The number that was ``found`` in ``text``, and its noun."""
    said = found["said"]
    after = re.split(r"[^\w\s'-]", text[found.end() :])[0]  # a noun stands before the next comma
    words = _WORD.findall(after)[: _MOST_WORDS + 1]
    noun = _several(words) if found["more"] else _one(words, said.lower())
    return None if noun is None else f"{said} {noun}"


def _one(words: list[str], said: str) -> str | None:
    """What a "one" at the head of ``words`` counts."""
    named: list[str] = []
    for word in words:
        if word.lower() in FUNCTION_WORDS or (named and _is_doing(word)):
            break
        named.append(word)
    if not named or named[0].lower() in OTHERWISE:
        return None
    if named[0].lower() in _KINDS and len(named) > 1:
        return None
    if said in _ALONE and any(map(_is_plural, named)):  # "single houses" stand alone
        return None
    return " ".join(named)


def _several(words: list[str]) -> str | None:
    """What a number above one at the head of ``words`` counts: the next thing in the plural, if it is near."""
    for i, word in enumerate(words[:_MOST_WORDS]):
        if word.lower() in FUNCTION_WORDS | OTHERWISE | _KINDS:
            return None
        if _is_plural(word):
            return " ".join(words[: i + 1])
    return None


def _is_plural(word: str) -> bool:
    low = word.lower()
    return low in _PLURALS or (low.endswith("s") and not low.endswith(("ss", "us", "is")) and low not in _NO_PLURALS)


def _is_doing(word: str) -> bool:
    """Whether ``word`` says what a thing does or undergoes: "parked", "flying"."""
    return word.lower().endswith(("ed", "ing")) and word.lower() not in ("building", "parking", "bed", "shed")


def state(text: str, known: Domain, told: Collection[str] = ()) -> str | None:
    """The first word that names a state which texts taught in passing or never, as far as somebody counted.

    None of those that are ``told`` otherwise, and none that is part of a name.
    """
    for found in _STATE.finditer(text):
        word = found.group()
        often = known.taught_more(word.lower())
        if often is not None and often <= IN_PASSING and word.lower() not in told and not _is_name(text, found):
            return word
    return None


def _is_name(text: str, found: re.Match[str]) -> bool:
    """Whether a word is written as a name is: in the middle of a text, or before another such."""
    if not found.group().istitle():
        return False
    after = _WORD.match(text[found.end() :].lstrip())
    return bool(text[: found.start()].strip()) or (after is not None and after.group().istitle())
