"""Files that are either wholly there or not there at all."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evidex.errors import DiskFullError

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})

# Read once, while there is one thread: it can only be read by setting it.
_UMASK = os.umask(0)
os.umask(_UMASK)


def cache_directory(directory: Path | None = None) -> Path:
    """Return ``directory``, else the environment's ``EVIDEX_CACHE``, else ``~/.cache/evidex``."""
    if directory is not None:
        return directory
    named = os.environ.get("EVIDEX_CACHE")
    return Path(named).expanduser() if named else Path.home() / ".cache" / "evidex"


@contextmanager
def telling_full_disk(place: Path) -> Iterator[None]:
    """Say which disk is full, where writing to ``place`` fails for that."""
    try:
        yield
    except OSError as error:
        # Libraries that write by themselves pass the system's number on in words only.
        told = re.search(r"\(os error (\d+)\)", str(error))
        code = error.errno or (int(told[1]) if told else 0)
        if code not in _FULL or isinstance(error, DiskFullError):
            raise
        raise DiskFullError(
            f"'{place}' cannot be written: its disk is full ({os.strerror(code)}); make room there and run it again, "
            "what is written stays"
        ) from None


def write_atomic(path: Path, content: bytes | str) -> None:
    """Replace ``path`` by ``content`` so that a crash leaves the old file or the new one, never a part."""
    data = content.encode() if isinstance(content, str) else content
    with telling_full_disk(path):
        _write_atomic(path, data)


def _write_atomic(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).chmod(0o666 & ~_UMASK)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def write_json_atomic(path: Path, value: Mapping[str, Any] | list[Any]) -> None:
    """Write ``value`` as JSON in UTF-8; where a name holds bytes that are none, in ASCII, which keeps them."""
    text = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        text = json.dumps(value, indent=1, allow_nan=False)
    write_atomic(path, text + "\n")


def sync_directory(path: Path) -> None:
    """Make a rename inside ``path`` survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sha256_of(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
