"""Rows that several processes write at once: each writes pieces of the table, one process commits them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evidex.files import telling_full_disk
from evidex.retrieval.rows import Row, WrittenRows, to_table
from evidex.retrieval.soundness.seal import digest_of
from evidex.retrieval.table import ROWS
from evidex.storage.objects import Place, lance_place


def write_rows(folder: Place, rows: Sequence[Row], vectors: NDArray[np.float32]) -> WrittenRows:
    """Write rows for the table of the gallery in ``folder``, which is not changed by it."""
    import json

    from lance.fragment import write_fragments

    where = lance_place(folder / ROWS)
    with telling_full_disk(folder):
        fragments = write_fragments(to_table(rows, vectors), where.pop("uri"), **where)
    names = [f"{ROWS}/data/{file.path}" for fragment in fragments for file in fragment.files]
    found = {name: digest_of(folder / name) for name in names}
    digests = {name: digest for name, digest in found.items() if digest is not None}
    return WrittenRows(tuple(rows), tuple(json.dumps(fragment.to_json()) for fragment in fragments), digests)


def commit_fragments(folder: Place, dataset: Any, fragments: Sequence[Sequence[str]]) -> Any:
    """Make pieces that were written a part of the table; its newest version."""
    import lance
    from lance.fragment import FragmentMetadata

    where = lance_place(folder / ROWS)
    append = lance.LanceOperation.Append([FragmentMetadata.from_json(text) for each in fragments for text in each])
    return lance.LanceDataset.commit(where.pop("uri"), append, read_version=int(dataset.version), **where)
