"""Rows and columns out of a Lance table with little memory.

Lance's own ways to them load its query engine, a tenth of what a cold search holds; its pieces are read without.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evidex.retrieval.rows import LATER_COLUMNS, Row, from_table, row_schema, vectors_in

IDS_AT_ONCE = 1000
_FEW_ROWS = 1 << 14


def take(dataset: Any, positions: Sequence[int], columns: Sequence[str]) -> Any:
    """The rows at these positions of all rows, in their order, as an Arrow table."""
    import pyarrow as pa

    wanted = np.asarray(positions, np.int64)
    parts, places, first = [], [], 0
    for fragment in dataset.get_fragments():
        rows = fragment.physical_rows - fragment.num_deletions
        inside = np.flatnonzero((wanted >= first) & (wanted < first + rows))
        if len(inside):
            offsets = np.unique(wanted[inside] - first)
            part = fragment.take(offsets.tolist(), columns=list(columns))
            parts.append(part.take(pa.array(np.searchsorted(offsets, wanted[inside] - first))))
            places.append(inside)
        first += rows
    if sum(map(len, places)) < len(wanted):
        raise ValueError(f"the table has {first} rows; there is none at {int(wanted.max())}")
    return pa.concat_tables(parts).take(pa.array(np.argsort(np.concatenate(places))))


def column(dataset: Any, name: str) -> Any:
    """One column of all rows as an Arrow array; many rows are read faster by the engine.

    A column that tables of earlier versions lack holds nothing there.
    """
    rows = dataset.count_rows()
    if _lacks(dataset, name):
        return _nothing(name, rows)
    few = 0 < rows <= _FEW_ROWS
    table = take(dataset, range(rows), [name]) if few else dataset.to_table(columns=[name])
    return table.column(0).combine_chunks()


@dataclass(frozen=True)
class Piece:
    """Rows ``first`` to ``stop`` of those that are left in one fragment of a table."""

    fragment: Any
    first: int
    stop: int


def pieces_between(dataset: Any, first: int, stop: int) -> list[Piece]:
    """The fragments that hold the table's rows from ``first`` on, up to but without ``stop``, and which of theirs."""
    pieces, begin = [], 0
    for fragment in dataset.get_fragments():
        rows = fragment.physical_rows - fragment.num_deletions
        inside = Piece(fragment, max(first - begin, 0), min(stop - begin, rows))
        if inside.first < inside.stop:
            pieces.append(inside)
        begin += rows
    return pieces


def column_between(dataset: Any, name: str, first: int, stop: int) -> Any:
    """One column of the rows from ``first`` on, up to but without ``stop``; other fragments are not read."""
    import pyarrow as pa

    if _lacks(dataset, name):
        return _nothing(name, stop - first)
    pieces = pieces_between(dataset, first, stop)
    if not pieces:
        return pa.array([], dataset.schema.field(name).type)
    held = [piece.fragment for piece in pieces]
    table = dataset.scanner(columns=[name], fragments=held, scan_in_order=True).to_table()
    return table.column(0).slice(pieces[0].first, stop - first).combine_chunks()


def _lacks(dataset: Any, name: str) -> bool:
    return name in LATER_COLUMNS and name not in dataset.schema.names


def _nothing(name: str, rows: int) -> Any:
    import pyarrow as pa

    return pa.nulls(rows, row_schema(1).field(name).type)


def id_filter(ids: Sequence[str]) -> str:
    """The condition, in Lance's SQL, that a row has one of ``ids``."""
    return "id IN (" + ", ".join("'" + row_id.replace("'", "''") + "'" for row_id in ids) + ")"


def with_ids(dataset: Any, ids: Sequence[str]) -> Iterator[tuple[Row, NDArray[np.float32]]]:
    """The rows with these ids and their vectors, in the table's order."""
    for start in range(0, len(ids), IDS_AT_ONCE):
        table = dataset.to_table(filter=id_filter(ids[start : start + IDS_AT_ONCE]))
        yield from zip(from_table(table), vectors_in(table), strict=True)
