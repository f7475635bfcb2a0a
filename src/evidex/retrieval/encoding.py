"""Queries as vectors: as they are asked, and asked again in other forms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evidex.retrieval.phrasing import asked_for
from evidex.retrieval.queries import Direction, Query, picture_of
from evidex.retrieval.refine import Refining, refine_queries

if TYPE_CHECKING:
    from evidex.encoders.model import Model

_PICTURES_AT_ONCE = 64


def encode(model: Model, queries: Sequence[Query], direction: Direction) -> NDArray[np.float32]:
    """Unit rows of texts or images."""
    if direction == "text":
        return model.encode_texts([asked_for(query) for query in queries])
    parts = [queries[start : start + _PICTURES_AT_ONCE] for start in range(0, len(queries), _PICTURES_AT_ONCE)]
    return np.concatenate([model.encode_images([picture_of(query) for query in part]) for part in parts])


def encode_again(
    model: Model, queries: Sequence[Query], direction: Direction, refining: Refining
) -> NDArray[np.float32]:
    """The same for queries that are asked again in other forms."""
    # Every query draws as if it were the only one: the same query gets the same answer in any batch.
    alone = [0] * len(queries)
    asked = [asked_for(query) if direction == "text" else picture_of(query) for query in queries]
    return refine_queries(model, asked, direction, refining.forms, refining.seed, indices=alone)
