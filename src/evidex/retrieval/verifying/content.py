"""Read every row of a gallery and say what is wrong with the rows or with the mapped copy of their vectors."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from evidex.progress import Progress
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.rows import Kind, from_table, vectors_in
from evidex.retrieval.soundness.mapped import DamagedVectors, MappedVectors, open_vectors
from evidex.retrieval.table import reading
from evidex.retrieval.vector_file import STATE, fragments_of, is_of_another_format, read_state

_HEX = set("0123456789abcdef")
_TOLERANCE = 1e-3


def check_rows(gallery: Gallery, progress: Progress) -> tuple[str | None, str | None]:
    """The first thing that is wrong with the rows, and with the mapped vectors; DamagedError where they end early."""
    mapped, vectors_problem = mapped_as_it_is(gallery)
    ids: set[str] = set()
    row = 0
    problem = None
    for batch in gallery.batches():
        with reading(gallery.place):
            rows, vectors = from_table(batch), vectors_in(batch)
        problem = problem or _first_wrong(rows, vectors, row)
        ids.update(each.id for each in rows)
        if mapped is not None and not _same_bits(mapped.values[row : row + len(rows)], vectors):
            vectors_problem = vectors_problem or f"differs from the table in rows {row} to {row + len(rows) - 1}"
        row += len(rows)
        progress(row, len(gallery))
    if problem is None and row != len(gallery):
        problem = f"holds {row} rows, not {len(gallery)}"
    if problem is None and len(ids) != row:
        problem = f"holds {row - len(ids)} rows twice"
    return problem, vectors_problem


def mapped_as_it_is(gallery: Gallery) -> tuple[MappedVectors | None, str | None]:
    """The mapped vectors without mending them, and what is wrong; both None where they are not made yet."""
    folder = gallery.derived
    files = list(folder.glob("vectors-*.f32"))
    if not len(gallery) or not (files or (folder / STATE).exists()):
        return None, None
    state = read_state(folder, gallery.dim)
    if state is None and is_of_another_format(folder):
        return None, None  # made again by who next searches
    if state is None:
        return None, f"has no readable {STATE}"
    if state.fragments != fragments_of(gallery.dataset)[: len(state.fragments)]:
        return None, None  # of another version: made again, or carried on, by who next searches
    try:
        mapped = open_vectors(folder / state.file, state.rows, gallery.dim, state.checks)
        mapped.ensure_all()
    except FileNotFoundError:
        return None, "is missing"
    except DamagedVectors:
        return None, "is not what was written"
    return (mapped, None) if state.rows == len(gallery) else (None, None)


def _same_bits(some: NDArray[np.float32], others: NDArray[np.float32]) -> bool:
    return np.array_equal(some.view(np.uint32), others.view(np.uint32))


def _first_wrong(rows: list[Any], vectors: NDArray[np.float32], first: int) -> str | None:
    for number, row in enumerate(rows, start=first):
        if row.kind not in get_args(Kind) or not row.id:
            return f"row {number} is of no known kind, or has no id"
        if len(row.sha256) != 64 or not set(row.sha256) <= _HEX:
            return f"row {number} ('{row.name}') has no digest of its file"
    lengths = np.sqrt((vectors.astype(np.float64) ** 2).sum(axis=1))
    wrong = np.flatnonzero(~(np.abs(lengths - 1) < _TOLERANCE))
    if len(wrong):
        place = int(wrong[0])
        return f"row {first + place} ('{rows[place].name}') has a vector of length {lengths[place]:g}, not 1"
    return None
