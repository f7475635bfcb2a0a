"""The gallery's vectors as one memory-mapped float32 array beside the table, in the order of its rows.

The file is derived: it may be deleted at any time and is made again from the table. A small JSON beside it says which
fragments of the table it holds, with a checksum of each block of rows and one of itself. Rows that were only appended
are appended to the file; anything else writes a new one. Bytes below the stated number of rows never change, so readers
of an earlier version keep a valid map, or open one.
"""

from __future__ import annotations

import errno
import logging
import os
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evidex.documents import parse_json
from evidex.files import write_json_atomic
from evidex.retrieval.rows import vectors_in
from evidex.retrieval.scan.aligned import empty_aligned
from evidex.retrieval.soundness.mapped import DamagedVectors, MappedVectors, open_vectors, rows_a_block
from evidex.retrieval.soundness.seal import checksum_of

STATE = "vectors.json"
_FORMAT = 3
_BATCH_ROWS = 8192
_ATTEMPTS = 5
_LOG = logging.getLogger("evidex.gallery")


Fragment = list[Any]
"""Rows, id, and the names of the files of a piece of the table. Ids are given again after a version was gone back to;
names never are."""


@dataclass(frozen=True)
class FileState:
    """What vectors.json says."""

    file: str
    rows: int
    fragments: list[Fragment]
    """What the file holds, in their order."""
    checks: list[int]
    """CRC-32 of each block of rows."""


def map_vectors(folder: Path, dataset: Any, dim: int, *, anew: bool = False) -> MappedVectors:
    """The vectors of ``dataset`` (a Lance dataset at one version); ``anew``: whatever the file holds."""
    fragments = fragments_of(dataset)
    rows = sum(fragment[0] for fragment in fragments)
    if rows == 0:
        return MappedVectors(np.empty((0, dim), np.float32))
    for attempt in range(_ATTEMPTS):
        try:
            return _mapped(folder, dataset, fragments, rows, dim, anew or attempt > 1)
        except FileNotFoundError:
            # Another process replaced the file between our look at its state and our opening it; or it is gone.
            if attempt == _ATTEMPTS - 1:
                raise
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC):
                raise
            return MappedVectors(_in_memory(dataset, rows, dim))
        except DamagedVectors:  # what was written just now is short already: this disk keeps nothing
            return MappedVectors(_in_memory(dataset, rows, dim))
    raise AssertionError("unreachable")


def fragments_of(dataset: Any) -> list[Fragment]:
    return [
        [
            fragment.physical_rows - fragment.num_deletions,
            fragment.fragment_id,
            *(file.path for file in fragment.data_files()),
            fragment.deletion_file(),
        ]
        for fragment in dataset.get_fragments()
    ]


def is_beginning(one: list[Fragment], other: list[Fragment]) -> bool:
    """Whether the rows of one of the two are the first of the other's: rows were only appended in between."""
    return all(a == b for a, b in zip(one, other, strict=False))


def read_state(folder: Path, dim: int) -> FileState | None:
    """What the file holds; None where that cannot be told."""
    try:
        content = parse_json((folder / STATE).read_bytes())
        if content.pop("check") != checksum_of(content) or (content["format"], content["dim"]) != (_FORMAT, dim):
            return None
        return FileState(content["file"], content["rows"], content["fragments"], content["checks"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def is_of_another_format(folder: Path) -> bool:
    """Whether another version of evidex wrote the file's state."""
    try:
        version = parse_json((folder / STATE).read_bytes())["format"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return isinstance(version, int) and version != _FORMAT


def _mapped(folder: Path, dataset: Any, fragments: list[Fragment], rows: int, dim: int, anew: bool) -> MappedVectors:
    state = None if anew else read_state(folder, dim)
    if state is None or not is_beginning(fragments, state.fragments):
        state = _made(folder, dataset, fragments, dim)
    elif len(fragments) > len(state.fragments):
        state = _grown(folder, dataset, fragments, dim, state)
    try:
        return open_vectors(folder / state.file, state.rows, dim, state.checks).first(rows)
    except DamagedVectors:
        if anew:
            raise
        _LOG.warning("'%s' was damaged and is made again from its table", folder / state.file)
        return _mapped(folder, dataset, fragments, rows, dim, anew=True)


def _made(folder: Path, dataset: Any, fragments: list[Fragment], dim: int) -> FileState:
    name = _new_name(folder, int(dataset.version))
    try:
        rows, checks = _fill(folder / name, dataset, fragments, 0, [], dim)
    except BaseException:
        (folder / name).unlink(missing_ok=True)  # on a full disk every process would leave another
        raise
    state = FileState(name, rows, fragments, checks)
    _write_state(folder, state, dim)
    for old in folder.glob("vectors-*.f32"):
        if old.name != name:
            old.unlink(missing_ok=True)
    return state


def _grown(folder: Path, dataset: Any, fragments: list[Fragment], dim: int, held: FileState) -> FileState:
    more = fragments[len(held.fragments) :]
    rows, checks = _fill(folder / held.file, dataset, more, held.rows, held.checks, dim)
    state = FileState(held.file, rows, fragments, checks)
    _write_state(folder, state, dim)
    return state


def _new_name(folder: Path, version: int) -> str:
    """Never that of a file that is there: others may have it mapped."""
    number = 0
    while (folder / (name := f"vectors-{version}-{os.getpid()}{f'-{number}' * bool(number)}.f32")).exists():
        number += 1
    return name


def _write_state(folder: Path, state: FileState, dim: int) -> None:
    content = {
        "format": _FORMAT, "file": state.file, "dim": dim, "rows": state.rows, "fragments": state.fragments,
        "checks": state.checks,
    }  # fmt: skip
    write_json_atomic(folder / STATE, {**content, "check": checksum_of(content)})


def _fill(
    path: Path, dataset: Any, fragments: list[Fragment], first_row: int, checks: list[int], dim: int
) -> tuple[int, list[int]]:
    """Write the vectors of ``fragments`` from row ``first_row`` on; the rows then held, and their blocks' checksums.

    Two processes that do this at the same time write the same bytes to the same places.
    """
    wanted = {fragment[1] for fragment in fragments}
    parts = [fragment for fragment in dataset.get_fragments() if fragment.fragment_id in wanted]
    sums, row = list(checks), first_row
    descriptor = os.open(path, os.O_RDWR | (0 if first_row else os.O_CREAT), 0o644)
    try:
        for batch in _batches(dataset, parts):
            vectors = vectors_in(batch)
            _add(sums, row, vectors)
            _write_at(descriptor, memoryview(vectors.tobytes()), row * dim * 4)
            row += len(vectors)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return row, sums


def _add(checks: list[int], row: int, vectors: np.ndarray) -> None:
    """Carry the checksums on over rows that begin at ``row``."""
    size, first = rows_a_block(vectors.shape[1]), 0
    while first < len(vectors):
        stop = min(first + size - (row + first) % size, len(vectors))
        block = (row + first) // size
        if block == len(checks):
            checks.append(0)
        checks[block] = zlib.crc32(np.ascontiguousarray(vectors[first:stop]).tobytes(), checks[block])
        first = stop


def _write_at(descriptor: int, data: memoryview, offset: int) -> None:
    while data:
        written = os.pwrite(descriptor, data, offset)
        offset += written
        data = data[written:]


def _in_memory(dataset: Any, rows: int, dim: int) -> np.ndarray:
    """For galleries on read-only or full disks."""
    vectors = empty_aligned((rows, dim), np.float32)
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
