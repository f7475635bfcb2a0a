"""Queries as vectors: as they are asked, and asked again in other forms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evidex.retrieval.queries import Direction, Query, picture_of
from evidex.retrieval.refine import Refining, refine_features, refine_queries
from evidex.retrieval.short_questions import forms_of
from evidex.retrieval.spelling import question_of

if TYPE_CHECKING:
    from evidex.data.rendering import TileOptions
    from evidex.encoders.model import Model

_PICTURES_AT_ONCE = 64


@dataclass(frozen=True)
class _Asking:
    """A model that is asked: a text is encoded in all its forms at once, and their mean is taken."""

    model: Model

    def encode_texts(self, texts: Sequence[str], *, batch_size: int = 256) -> NDArray[np.float32]:
        if not texts:
            return self.model.encode_texts(texts)
        forms = [forms_of(text) for text in texts]
        rows = self.model.encode_texts(list(chain.from_iterable(forms)), batch_size=batch_size)
        ends = np.cumsum([len(group) for group in forms])
        return np.stack([_mean(part) for part in np.split(rows, ends[:-1])])

    def encode_images(self, images: Sequence[Query], *, batch_size: int = 64) -> NDArray[np.float32]:
        return self.model.encode_images(images, batch_size=batch_size)


def encode(
    model: Model, queries: Sequence[Query], direction: Direction, ways: Sequence[TileOptions] = ()
) -> NDArray[np.float32]:
    """Unit rows of texts or images; ``ways`` are those in which example files may be read."""
    if direction == "text":
        return _Asking(model).encode_texts([question_of(query, model.domain).text for query in queries])
    parts = [queries[start : start + _PICTURES_AT_ONCE] for start in range(0, len(queries), _PICTURES_AT_ONCE)]
    return np.concatenate([model.encode_images([picture_of(query, ways) for query in part]) for part in parts])


def encode_again(
    model: Model,
    queries: Sequence[Query],
    direction: Direction,
    refining: Refining,
    ways: Sequence[TileOptions] = (),
) -> NDArray[np.float32]:
    """The same for queries that are asked again in other forms."""
    # Every query draws as if it were the only one: the same query gets the same answer in any batch.
    alone = [0] * len(queries)
    known = model.domain
    asked = [question_of(query, known).text if direction == "text" else picture_of(query, ways) for query in queries]
    return refine_queries(_Asking(model), asked, direction, refining.forms, refining.seed, indices=alone)


def _mean(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Of the forms of one text, at length one; a single form stays what it is, bit by bit."""
    return rows[0] if len(rows) == 1 else refine_features(rows[0], rows[1:])
