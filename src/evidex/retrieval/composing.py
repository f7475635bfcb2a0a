"""Questions in several parts: examples and words together, several examples, and what is not wanted.

Everything is a direction in the space that pictures and texts share. What is wanted counts in equal halves, examples
and words; of what is not wanted half as much is taken off again. Hits that somebody marked move the question likewise
(Rocchio): towards the mean of the right ones, away from that of the wrong ones. How well that does is measured by
benchmarks/composed.py; no calibration knows such questions, so their answers are not judged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evidex.data.rendering import TileOptions
from evidex.errors import InputError, NotFoundError
from evidex.retrieval.content import names_something
from evidex.retrieval.encoding import encode
from evidex.retrieval.out_of_domain import READ_WHOLE, Reading, readings
from evidex.retrieval.queries import Asking, Query, check_query, shown

if TYPE_CHECKING:
    from evidex.encoders.model import Model

Vector = NDArray[np.float32]
NOT_WANTED = 0.5
"""How much of what is not wanted is taken off."""
MARKED_RIGHT, MARKED_WRONG = 0.75, 0.25
"""How much marked hits count beside the question, as Rocchio's formula is mostly used."""
MOST_PARTS, MOST_MARKS = 16, 200
_SHORTEST = 1e-3
# A minus, or the dash that some keyboards make of it, before a word, at its beginning: "-clouds", -"parking lot", also
# with the second quote left out; "high-rise", "5-10" and "a - b" are left alone.
_QUOTES = '"\u201c\u201d'
_MINUS = re.compile(rf"(?<!\S)[-\u2010-\u2015\u2212](?:[{_QUOTES}]([^{_QUOTES}]+)[{_QUOTES}]?|([^\W\d_][\w-]*))")


@dataclass(frozen=True)
class Composed:
    """A question in several parts; of the marked hits the ids."""

    text: str | None = None
    images: tuple[Query, ...] = ()
    without: tuple[str, ...] = ()
    right: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.text is None and not self.images:
            raise InputError("the question says only what is not wanted; say what to look for too")
        parts = (
            (self.images, MOST_PARTS),
            (self.without, MOST_PARTS),
            (self.right, MOST_MARKS),
            (self.wrong, MOST_MARKS),
        )
        for given, most in parts:
            if len(given) > most:
                raise InputError(f"{len(given)} are too many for one question; give at most {most}")
        if any(isinstance(text, str) and not text.strip() for text in self.without):
            raise InputError("what is not wanted is empty; say it in a word, or leave --without out")
        for text in (*((self.text,) if self.text is not None else ()), *self.without):
            check_query(text, "text")
        for image in self.images:
            check_query(image, "image")

    @property
    def says_something(self) -> bool:
        """Whether its words count: beside an example such that name nothing do not."""
        return self.text is not None and (not self.images or names_something(self.text))

    def __str__(self) -> str:
        wanted = [shown(image) for image in self.images] + ([self.text] if self.text is not None else [])
        return " + ".join(wanted) + "".join(f" -{text}" for text in self.without)


def asked(
    text: str | None,
    images: Sequence[Query] = (),
    without: Sequence[str] = (),
    *,
    right: Sequence[str] = (),
    wrong: Sequence[str] = (),
) -> tuple[Asking, Query]:
    """What is asked, and how: a plain text or picture, or a question in several parts."""
    if text is None and not images:
        raise InputError("give a text or an image to search for")
    if text is not None:
        check_query(text, "text")
        text, more = split_minus(text)
        without = (*without, *more)
    if not (without or right or wrong):
        if not images:
            return "text", text
        if text is None and len(images) == 1:
            return "image", images[0]
    return "composed", Composed(text, tuple(images), tuple(without), tuple(right), tuple(wrong))


def split_minus(text: str) -> tuple[str | None, tuple[str, ...]]:
    """What ``text`` asks for and what it names with a minus; None where it asks for nothing."""
    minus = tuple(quoted or word for quoted, word in _MINUS.findall(text))
    if not minus:
        return text, ()
    return " ".join(_MINUS.sub(" ", text).split()) or None, minus


def encode_composed(
    model: Model,
    questions: Sequence[Composed],
    vector_of: Callable[[str], Vector],
    ways: Sequence[TileOptions] = (),
) -> Vector:
    """Unit rows (questions, dim); ``vector_of`` gives the vector of a row by its id, ``ways`` are as for `encode`."""
    return np.stack([_encoded(model, question, vector_of, ways) for question in questions])


def composed_readings(model: Model, questions: Sequence[Composed]) -> list[Reading]:
    """How the words of each read to the model; those that are not wanted and not known change nothing, and are told."""
    return [_reading(model, question) for question in questions]


def _encoded(
    model: Model, question: Composed, vector_of: Callable[[str], Vector], ways: Sequence[TileOptions]
) -> Vector:
    wanted = []
    if question.images:
        wanted.append(_mean(encode(model, question.images, "image", ways)))
    if question.says_something:
        wanted.append(encode(model, [question.text], "text")[0])
    found = _mean(wanted)
    if question.without:
        found = _unit(found - NOT_WANTED * _mean(encode(model, question.without, "text")), found)
    for ids, weight in ((question.right, MARKED_RIGHT), (question.wrong, -MARKED_WRONG)):
        marked = _known(ids, vector_of)
        if marked:
            found = _unit(found + weight * _mean(marked), found)
    return found


def _known(ids: Sequence[str], vector_of: Callable[[str], Vector]) -> list[Vector]:
    """The vectors of those that are still there: a mark outlives its row."""
    vectors = []
    for row_id in ids:
        with suppress(NotFoundError):
            vectors.append(vector_of(row_id))
    return vectors


def _reading(model: Model, question: Composed) -> Reading:
    read = READ_WHOLE
    if question.says_something:
        (read,) = readings(model, [question.text], encode(model, [question.text], "text"), "text")
    known = model.domain
    if known is None or not question.without or read.new_words:
        return read
    unknown = (word for text in question.without for word in known.words_out_of_domain(known.new_words(text)))
    return replace(read, ignored_words=tuple(dict.fromkeys((*read.ignored_words, *unknown))))


def _mean(rows: Sequence[Vector] | Vector) -> Vector:
    return rows[0] if len(rows) == 1 else _unit(np.mean(rows, axis=0), rows[0])


def _unit(vector: Vector, otherwise: Vector) -> Vector:
    """``vector`` at length one; ``otherwise`` where its parts cancel each other out."""
    length = float(np.linalg.norm(vector))
    return otherwise if length < _SHORTEST else (vector / length).astype(np.float32)
