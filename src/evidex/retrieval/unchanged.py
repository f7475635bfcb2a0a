"""Whether the file of a row is still the one that was indexed: what lies at its path now may be another one."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

from evidex.errors import ImageError, NotFoundError
from evidex.files import sha256_of
from evidex.retrieval.rows import Row


def check_unchanged(row: Row) -> None:
    """Refuse a file that is gone or another one; what only its times tell apart is read, once."""
    try:
        state = row.file.stat()
    except (OSError, ValueError):
        raise NotFoundError(f"'{row.name}' is no longer there; bring it back, or index with --prune") from None
    if (state.st_size, state.st_mtime_ns, state.st_ctime_ns) == (row.size, row.mtime_ns, row.ctime_ns):
        return
    try:
        same = state.st_size == row.size and _content(row.file, _stamp(state)) == row.sha256
    except OSError as error:
        raise ImageError(f"'{row.name}' cannot be read ({error.strerror})") from None
    if not same:
        raise NotFoundError(f"'{row.name}' has changed since it was indexed; index it again")


def _stamp(state: os.stat_result) -> tuple[int, ...]:
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns


@lru_cache(maxsize=4096)
def _content(file: Path, stamp: tuple[int, ...]) -> str:  # noqa: ARG001 - which state of the file was read
    return sha256_of(file)
