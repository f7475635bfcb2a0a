"""The gallery's vectors as one memory-mapped float32 array beside the table, in the order of its rows.

The file is derived: it may be deleted at any time and is made again from the table. A small JSON beside it says which
fragments of the table it holds. Rows that were only appended are appended to the file; anything else writes a new one.
Bytes below the stated number of rows never change, so readers of an earlier version keep a valid map.
"""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evidex.files import write_json_atomic
from evidex.retrieval.rows import vectors_in

_STATE = "vectors.json"
_FORMAT = 1
_BATCH_ROWS = 8192
_ATTEMPTS = 5


def map_vectors(folder: Path, dataset: Any, dim: int) -> NDArray[np.float32]:
    """The vectors of ``dataset`` (a Lance dataset at one version), read-only."""
    fragments = [
        [fragment.fragment_id, fragment.physical_rows, fragment.num_deletions] for fragment in dataset.get_fragments()
    ]
    rows = sum(physical - deleted for _, physical, deleted in fragments)
    if rows == 0:
        return np.empty((0, dim), np.float32)
    for attempt in range(_ATTEMPTS):
        try:
            return _mapped(folder, dataset, fragments, rows, dim)
        except FileNotFoundError:
            # Another process replaced the file between our look at its state and our opening it.
            if attempt == _ATTEMPTS - 1:
                raise
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC):
                raise
            return _in_memory(dataset, rows, dim)
    raise AssertionError("unreachable")


def _mapped(folder: Path, dataset: Any, fragments: list[list[int]], rows: int, dim: int) -> NDArray[np.float32]:
    state = _read_state(folder, dim)
    held: list[list[int]] = state["fragments"] if state else []
    if state is None or fragments[: len(held)] != held:
        name = f"vectors-{dataset.version}-{os.getpid()}.f32"
        _fill(folder / name, dataset, fragments, 0, dim)
        _write_state(folder, name, fragments, rows, dim)
        for old in folder.glob("vectors-*.f32"):
            if old.name != name:
                old.unlink(missing_ok=True)
    else:
        name = state["file"]
        if len(fragments) > len(held):
            _fill(folder / name, dataset, fragments[len(held) :], state["rows"], dim)
            _write_state(folder, name, fragments, rows, dim)
    return np.memmap(folder / name, dtype=np.float32, mode="r", shape=(rows, dim))


def _read_state(folder: Path, dim: int) -> dict[str, Any] | None:
    try:
        state: dict[str, Any] = json.loads((folder / _STATE).read_bytes())
        size = (folder / state["file"]).stat().st_size
        fits = state["format"] == _FORMAT and state["dim"] == dim and size >= state["rows"] * dim * 4
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return state if fits else None


def _write_state(folder: Path, name: str, fragments: list[list[int]], rows: int, dim: int) -> None:
    write_json_atomic(
        folder / _STATE, {"format": _FORMAT, "file": name, "dim": dim, "rows": rows, "fragments": fragments}
    )


def _fill(path: Path, dataset: Any, fragments: list[list[int]], first_row: int, dim: int) -> None:
    """Write the vectors of ``fragments`` from row ``first_row`` on.

    Two processes that do this at the same time write the same bytes to the same places.
    """
    wanted = {fragment_id for fragment_id, _, _ in fragments}
    parts = [fragment for fragment in dataset.get_fragments() if fragment.fragment_id in wanted]
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        offset = first_row * dim * 4
        for batch in _batches(dataset, parts):
            data = memoryview(vectors_in(batch).tobytes())
            while data:
                written = os.pwrite(descriptor, data, offset)
                offset += written
                data = data[written:]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _in_memory(dataset: Any, rows: int, dim: int) -> NDArray[np.float32]:
    """For galleries on read-only or full disks."""
    vectors = np.empty((rows, dim), np.float32)
    first = 0
    for batch in _batches(dataset, dataset.get_fragments()):
        part = vectors_in(batch)
        vectors[first : first + len(part)] = part
        first += len(part)
    vectors.flags.writeable = False
    return vectors


def _batches(dataset: Any, fragments: list[Any]) -> Any:
    return dataset.scanner(
        columns=["vector"], fragments=fragments, batch_size=_BATCH_ROWS, scan_in_order=True
    ).to_batches()
