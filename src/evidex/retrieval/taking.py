"""Rows and columns out of a Lance table with little memory.

Lance's own ways to them load its query engine, a tenth of what a cold search holds; its pieces are read without.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

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
    """One column of all rows as an Arrow array; many rows are read faster by the engine."""
    rows = dataset.count_rows()
    few = 0 < rows <= _FEW_ROWS
    table = take(dataset, range(rows), [name]) if few else dataset.to_table(columns=[name])
    return table.column(0).combine_chunks()
