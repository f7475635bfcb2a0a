"""Files that are either wholly there or not there at all."""

from __future__ import annotations

import atexit
import errno
import hashlib
import json
import logging
import os
import re
import reprlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from evidex.errors import DiskFullError, InputError
from evidex.overwriting import Kind, check_replaced
from evidex.storage.objects import ObjectPlace, Place
from evidex.storage.s3 import endpoint

_LOG = logging.getLogger("evidex.files")
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})

# Read once, while there is one thread: it can only be read by setting it.
_UMASK = os.umask(0)
os.umask(_UMASK)
_LONGEST_NAME, _LONGEST_PATH = (
    240,
    3800,
)  # bytes; file systems take 255 and 4096, temporary names beside them are longer


def at_home(path: str | Path) -> Path:
    """``path`` with a leading ``~`` resolved; as it is where there is no such user."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def cache_directory(directory: Path | None = None) -> Path:
    """Return ``directory``, else the environment's ``EVIDEX_CACHE``, else ``~/.cache/evidex``."""
    if directory is not None:
        return directory
    named = os.environ.get("EVIDEX_CACHE")
    return at_home(named) if named else Path.home() / ".cache" / "evidex"


def derived_folder(place: Place) -> Path:
    """Where what is derived from a gallery lies: in it, or for one in an object store in a folder of the cache."""
    if not isinstance(place, ObjectPlace):
        return place
    key = hashlib.blake2b(f"{endpoint()} {place}".encode(), digest_size=12).hexdigest()
    try:
        folder = cache_directory() / "galleries" / key
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK | os.X_OK):
            return folder
    except (OSError, RuntimeError):  # the latter where nobody knows a home
        pass
    folder = _scratch_folder() / key
    folder.mkdir(exist_ok=True)
    return folder


@cache
def _scratch_folder() -> Path:
    """Stands in for a cache that cannot be written, until this process ends."""
    try:
        folder = tempfile.mkdtemp(prefix="evidex-")
    except OSError:
        raise InputError(
            "neither the cache nor a temporary folder can be written; set EVIDEX_CACHE to a folder that can"
        ) from None
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    _LOG.warning("the cache cannot be written, so what is fetched is not kept; set EVIDEX_CACHE to a folder that can")
    return Path(folder)


def check_target(path: Path, kind: Kind) -> None:
    """Refuse a file that could not be written, before the work whose outcome of that ``kind`` it is to hold.

    Its folder must be there: a misspelt place is told, not made. What is there must be an earlier outcome.
    """
    folder = path.parent
    _check_name(path)
    if not folder.is_dir():
        raise InputError(f"'{path}' cannot be written: '{folder}' is no folder; make it, or name another place")
    if path.exists() and not path.is_file():
        raise InputError(f"'{path}' is there and is no file; name another place")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"'{path}' cannot be written: '{folder}' lets nobody write; name another place")
    check_replaced(path, kind)


def check_folder(path: Place) -> None:
    """Refuse a folder that could not be made or written into, or a store out of reach, before the work."""
    if isinstance(path, ObjectPlace):
        path.listed()
        return
    _check_name(path)
    there = next(place for place in (path, *path.absolute().parents) if os.path.lexists(place))
    if not there.is_dir():
        raise InputError(f"'{path}' cannot be made: '{there}' is there and is no folder; name another place")
    if not os.access(there, os.W_OK | os.X_OK):
        raise InputError(f"'{path}' cannot be written: '{there}' lets nobody write; name another place")


def _check_name(path: Path) -> None:
    if not path.name and path != Path() and path != Path("/"):
        raise InputError(f"'{path}' names nothing; give a path")
    for part in path.parts:
        try:
            usable = "\0" not in part and len(os.fsencode(part)) <= _LONGEST_NAME
        except UnicodeEncodeError:
            usable = False
        if not usable:
            raise InputError(f"{reprlib.repr(part)} is no name that a file can have; name another place")
    if len(os.fsencode(path)) > _LONGEST_PATH:
        raise InputError(f"the path {reprlib.repr(str(path))} is too long for a file; name another place")


@contextmanager
def telling_full_disk(place: Place) -> Iterator[None]:
    """Say which disk is full, or which store fails, where writing to ``place`` does not succeed for that."""
    try:
        yield
    except OSError as error:
        if isinstance(place, ObjectPlace) and (trouble := place.trouble(error)) is not None:
            raise trouble from None
        # Libraries that write by themselves pass the system's number on in words only.
        told = re.search(r"\(os error (\d+)\)", str(error))
        code = error.errno or (int(told[1]) if told else 0)
        if code not in _FULL or isinstance(error, DiskFullError):
            raise
        raise DiskFullError(
            f"'{place}' cannot be written: its disk is full ({os.strerror(code)}); make room there and run it again, "
            "what is written stays"
        ) from None


def write_atomic(path: Place, content: bytes | str, *, durable: bool = True) -> None:
    """Replace ``path`` by ``content`` so that a crash leaves the old file or the new one, never a part.

    Without ``durable`` a power cut may leave anything: for what can be made again and is checked when it is read.
    """
    data = content.encode() if isinstance(content, str) else content
    if isinstance(path, ObjectPlace):
        path.write_bytes(data)
        return
    with telling_full_disk(path):
        _write_atomic(path, data, durable)


def _write_atomic(path: Path, data: bytes, durable: bool) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, durable=durable) as place, place.open("wb") as stream:
        stream.write(data)


@contextmanager
def replacing(path: Path, *, durable: bool = True) -> Iterator[Path]:
    """A place beside ``path`` to write to; what stands there at the end takes the place of ``path`` in one step.

    Where the writing fails nothing is left of it.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    place = Path(name)
    try:
        yield place
        if durable:
            with place.open("rb+") as stream:
                os.fsync(stream.fileno())
        place.chmod(0o666 & ~_UMASK)
        os.replace(place, path)
    except BaseException:
        place.unlink(missing_ok=True)
        raise
    if durable:
        sync_directory(path.parent)


def write_json_atomic(path: Place, value: Mapping[str, Any] | list[Any]) -> None:
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
