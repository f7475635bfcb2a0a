"""What is looked for in a scene: read and encoded as a search would, and how alike a window must be to count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evidex.encoders.domain import Domain
from evidex.errors import InputError
from evidex.retrieval.composing import split_minus
from evidex.retrieval.content import names_something
from evidex.retrieval.encoding import encode
from evidex.retrieval.out_of_domain import Bar, Reading, readings
from evidex.retrieval.queries import Direction, Query, check_query, shown
from evidex.retrieval.spelling import question_of

if TYPE_CHECKING:
    from evidex.encoders.model import Model


@dataclass(frozen=True, eq=False)
class Asked:
    """A question, encoded."""

    shown: str
    """As it was asked."""
    thing: str
    """What it asks for, in a sentence: 'storage tanks'."""
    vector: NDArray[np.float32]
    reading: Reading
    bar: Bar
    known: Domain | None
    """What the model knows about matches to such questions; None for pictures, and where it was not measured."""
    left_out: tuple[str, ...] = ()
    """What it names with a minus: a map shows where something is, not where something is not."""

    @property
    def is_judged(self) -> bool:
        """Whether the model knows how alike a right answer is."""
        return self.bar.floor is not None

    def likeness(self, similarity: NDArray[np.float32]) -> NDArray[np.floating]:
        """How far windows of this ``similarity`` are matches, in [0, 1].

        The share of right answers that are less similar, and 0 for what is no match at all. Where the model does not
        know right answers, the similarity itself.
        """
        shares = None if self.known is None else self.known.matched(similarity)
        return np.clip(similarity, 0.0, 1.0) if shares is None else shares


def ask(model: Model, query: Query, direction: Direction, name: str | None = None) -> Asked:
    """Encode a text, or a picture (a path or Pillow's); ``name`` is what to call a picture."""
    model.check_inner_product()
    check_query(query, direction)
    called = name or shown(query)
    left_out: tuple[str, ...] = ()
    if direction == "text":
        query, left_out = split_minus(query)
        if query is None:
            raise InputError(f"'{called}' says only what is not wanted; say what to look for")
        if not names_something(query):
            raise InputError(f"'{called}' names nothing that could be seen; name a thing, such as 'storage tanks'")
    vectors = encode(model, [query], direction)
    (reading,) = readings(model, [query], vectors, direction)
    thing = question_of(query, model.domain).text.strip(" .?!") if direction == "text" else called
    bar = Bar.of(model.domain, direction, "images", decides=True, refuses=True)
    return Asked(called, thing, vectors[0], reading, bar, model.domain if direction == "text" else None, left_out)
