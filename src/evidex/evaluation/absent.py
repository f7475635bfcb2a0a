"""Does an uncertainty notice that the gallery holds no answer?

Two kinds of absence: (a) every gallery item of the query's scene class is taken away; (b) the query comes from another
world. Taking away only the query's own image tells nothing where other scenes fit the caption as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evidex.errors import InputError
from evidex.evaluation.query_uncertainty import SCORE_NAMES, Scores, uncertainty_scores
from evidex.evaluation.recall import Similarity, as_matrix
from evidex.evaluation.selective import auroc


@dataclass(frozen=True)
class Absence:
    """``auroc[score]`` is the chance that a query without an answer is more uncertain than one that has it."""

    present: int
    absent: int
    auroc: Mapping[str, float]


def tell_apart(absent: Scores, present: Scores) -> Absence:
    """Compare the scores of queries without an answer with those of queries that have one."""
    return Absence(
        present=len(present.vacuity),
        absent=len(absent.vacuity),
        auroc={name: auroc(absent[name], present[name]) for name in SCORE_NAMES},
    )


def removed_class(
    similarity: Similarity,
    query_labels: Sequence[str | None],
    gallery_labels: Sequence[str | None],
    temperature: float,
    *,
    identity: NDArray[np.integer[Any]] | None = None,
    present: Scores | None = None,
) -> Absence:
    """Score each query with all gallery items of its own class removed, against the whole gallery.

    ``similarity`` is (queries, gallery). Left out are queries without a label and those whose class is not in the
    gallery or is all of it. ``present`` are the scores on the whole gallery, if they are known already.
    """
    matrix = as_matrix(similarity)
    asked, held = np.array(query_labels, dtype=object), np.array(gallery_labels, dtype=object)
    if (len(asked), len(held)) != matrix.shape:
        raise InputError(
            f"{len(asked)} query labels and {len(held)} gallery labels for a similarity of {matrix.shape[0]} by "
            f"{matrix.shape[1]}; give one label a row and one a column"
        )
    if present is None:
        present = uncertainty_scores(matrix, temperature, identity=identity)
    used: list[NDArray[np.intp]] = []
    parts: list[Scores] = []
    for label in sorted({label for label in query_labels if label is not None}):
        kept = np.flatnonzero(held != label)
        if not len(kept) or len(kept) == len(held):
            continue
        rows = np.flatnonzero(asked == label)
        used.append(rows)
        remaining = None if identity is None else identity[kept]
        parts.append(uncertainty_scores(matrix[np.ix_(rows, kept)], temperature, identity=remaining))
    if not parts:
        return Absence(0, 0, dict.fromkeys(SCORE_NAMES, float("nan")))
    absent = Scores(**{name: np.concatenate([part[name] for part in parts]) for name in SCORE_NAMES})
    return tell_apart(absent, present.rows(np.concatenate(used)))


def out_of_domain_queries() -> tuple[str, ...]:
    """The text queries from another world that ship with the package."""
    text = resources.files("evidex.evaluation").joinpath("out_of_domain.txt").read_text(encoding="utf-8")
    lines = (line.strip() for line in text.splitlines())
    return tuple(line for line in lines if line and not line.startswith("#"))
