"""What a text query asks for, as the model can read it: without the words around it, slips of the pen mended.

A word is mended only if it is none that people write and one slip away from one: "mountian" is read as "mountain",
while "socks" stays what it is though "rocks" was taught. That takes a model that knows common words. A word
that was taught stays, unless the other was taught so much more often that it is a slip of captions: "brige" is one for
"bridge", and "forked" none for "formed". Two taught words that were written as one are read as two.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from string import ascii_lowercase

from evidex.encoders.domain import OFTEN, Domain
from evidex.retrieval.content import readable
from evidex.retrieval.phrasing import asked_for

_LEAST_LETTERS = 4  # shorter words are one slip away from many
_MOST_LETTERS = 24
_LONG_WORD = 8
_LEAST_WRONG = 7  # letters of a word that may have a wrong one: "playa" is none for "plaza"
_MOST_MENDED = 3  # a text with more is no English
MORE_OFTEN = 100  # times: what of captions is a slip for a word
_LACK = "less"  # what "treeless" ends with, which is no slip for "treelets"
_LEAST_HALF = 3  # letters of a word that was written together with another
_WORD = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True)
class Mended:
    """A word as it was typed, and as it was read."""

    typed: str
    read: str


@dataclass(frozen=True)
class Question:
    """What is asked for."""

    text: str
    mended: tuple[Mended, ...] = ()


def question_of(query: str, known: Domain | None) -> Question:
    """What ``query`` asks of a model that was taught what ``known`` tells."""
    text = asked_for(readable(query))
    if known is None or known.nearness is None:
        return Question(text)
    words = dict.fromkeys(_WORD.findall(text))
    odd = [word for word in words if not known.is_common(word.lower()) and _is_strange(word.lower(), known)]
    read = {word: close for word in odd[:_MOST_MENDED] if (close := _meant(word.lower(), known)) is not None}
    if not read or len(odd) > _MOST_MENDED:
        return Question(text)
    mended = _WORD.sub(lambda found: read.get(found.group(), found.group()), text)
    return Question(mended, tuple(Mended(typed, close) for typed, close in read.items()))


def _is_strange(word: str, known: Domain) -> bool:
    return bool(known.new_words(word) or known.hardly_taught([word]))


def _meant(word: str, known: Domain) -> str | None:
    """What was to be written in the place of ``word``; None where that is not known."""
    if not _LEAST_LETTERS <= len(word) <= _MOST_LETTERS or not word.isascii():
        return None
    if word.endswith(_LACK) and not known.new_words(word.removesuffix(_LACK)):
        return None
    close = _nearest(word, known)
    if close is None or (known.times_taught(word) or 0) * MORE_OFTEN > (known.times_taught(close) or 0):
        return _halves(word, known)
    return close


def _halves(word: str, known: Domain) -> str | None:
    """``word`` as the two that it was written together from, both well taught."""
    for i in range(_LEAST_HALF, len(word) - _LEAST_HALF + 1):
        if all((known.taught_more(half) or 0.0) >= OFTEN for half in (word[:i], word[i:])):
            return f"{word[:i]} {word[i:]}"
    return None


def _nearest(word: str, known: Domain) -> str | None:
    """The word one slip away, by swapped letters rather than otherwise; None where that is foreign to the model too."""
    slips = [*((other, 0) for other in _swapped(word)), *((other, 1) for other in _otherwise_slipped(word))]
    known_slips = [(other, kind) for other, kind in slips if _is_word(other, known)]
    candidates = [(_order(other, kind, len(other) <= len(word), known), other) for other, kind in known_slips]
    if not candidates:
        return None
    close = min(candidates, key=lambda candidate: candidate[0])[1]
    return None if known.words_out_of_domain(known.new_words(close)) else close


def _is_word(word: str, known: Domain) -> bool:
    """Whether people write it; of what captions alone have only a long word is rather one than a slip of theirs."""
    return known.is_common(word) or (len(word) >= _LONG_WORD and word in known.words)


def _order(word: str, kind: int, shorter: bool, known: Domain) -> tuple[bool, int, int, bool, bool]:
    """What people write before what captions alone do, swapped letters first, taught before near before merely common.

    Between equals a letter was left out rather than typed, and what is near was meant rather than what is not.
    """
    new = known.new_words(word)
    rank = 0 if not new else 1 if not known.words_out_of_domain(new) else 2
    return not known.is_common(word), kind, rank, shorter, bool(known.words_out_of_domain([word]))


def _swapped(word: str) -> Iterator[str]:
    return (word[:i] + word[i + 1] + word[i] + word[i + 2 :] for i in range(len(word) - 1))


def _otherwise_slipped(word: str) -> Iterator[str]:
    """A letter left out, one too many, or a wrong one; the ends are seldom hit, and "leafy" is no slip for "leaf"."""
    inner = range(1, len(word) - 1)
    yield from (word[:i] + letter + word[i:] for i in range(1, len(word) + 1) for letter in ascii_lowercase)
    yield from (word[:i] + word[i + 1 :] for i in inner)
    if len(word) >= _LEAST_WRONG:
        yield from (word[:i] + letter + word[i + 1 :] for i in inner for letter in ascii_lowercase)
