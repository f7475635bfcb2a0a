"""The process that opens files for the index. A file that crashes a decoder ends this process and nothing else.

Run as ``python -m evidex.retrieval.indexing.decode_worker FD``, with one end of a pipe. It gets a `WorkerSettings`
and then `DecodeTask`s, and answers each with messages, the last of which is `Finished` or `Failed`.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from evidex.data.discover import FoundFile, printable
from evidex.data.images import shows_nothing, small_jpeg
from evidex.data.items import Item, Piece, ReadOptions, read_items
from evidex.data.perceptual_hash import perceptual_hash
from evidex.data.remote import is_remote
from evidex.data.sensors import NOTHING_TOLD, Told
from evidex.data.stac.finding import remote_digest
from evidex.data.tiles import raster_driver
from evidex.errors import ImageError

if TYPE_CHECKING:
    from PIL.Image import Image

_BYTES_A_PIXEL = 40  # a 16-bit image on its way to RGB, with all its copies
_LEAST_MEMORY = 4 << 30
_WINDOWS_A_SIGN = 32
_CLOCK_TICK_NS = 20_000_000  # file systems stamp by the kernel's tick, 10 ms at most


@dataclass(frozen=True)
class Fit:
    """How pictures are brought to the encoder's size: whole ("square"), centre ("crop"), or left to the encoder."""

    how: Literal["square", "crop", "none"]
    size: int


@dataclass(frozen=True)
class WorkerSettings:
    read: ReadOptions
    fit: Fit


@dataclass(frozen=True)
class DecodeTask:
    """A file to open. Windows in ``known`` are left out if it is still as found and its content ``known_sha256``."""

    file: FoundFile
    ask: bool = False
    """Whether to say what the content is and wait for a word before decoding."""
    known: frozenset[tuple[int, int]] = frozenset()
    known_sha256: str = ""
    pieces: tuple[Piece, ...] = ()
    """What of it is wanted, where that is not all."""
    told: Told = NOTHING_TOLD
    """What a catalog says of its bands."""


@dataclass(frozen=True)
class Ready:
    """The process runs and waits for its first task."""


@dataclass(frozen=True)
class Content:
    """A file was hashed and waits for the word (a bool) whether to decode it."""

    path: str
    sha256: str
    raster: bool
    """Whether the content is of a kind that the options for rasters bear on."""


@dataclass(frozen=True)
class Same:
    """The content is known; nothing was decoded."""

    path: str
    sha256: str
    raster: bool
    file: FoundFile
    """As it was when it was read, which may be later than when it was found."""


@dataclass(frozen=True)
class Picture:
    """One item, ready for the encoder; ``item.picture`` is None here, ``pixels`` stands for it."""

    path: str
    sha256: str
    raster: bool
    file: FoundFile
    pixels: NDArray[np.uint8]
    """(3, size, size), or (height, width, 3) where the encoder prepares pictures itself."""
    item: Item
    phash: int
    last: bool
    """Whether it is the last of its file, and all windows of it could be read."""
    thumbnail: bytes | None = None
    """Of what lies on another machine."""


@dataclass(frozen=True)
class Sign:
    """So many windows of a file are done."""

    path: str
    done: int
    windows: int


@dataclass(frozen=True)
class Finished:
    path: str
    sha256: str
    raster: bool
    file: FoundFile
    windows: int
    pictures: int
    unreadable: int
    problem: str | None
    blank: int = 0
    """Pictures of it all of whose pixels are alike; they are encoded like others."""
    first_only: bool = False
    """Whether the file holds more pictures, which are left out."""


@dataclass(frozen=True)
class Failed:
    path: str
    reason: str
    changed: bool = False
    """Whether the file was being changed, so that nothing can be said about it."""


Message = Content | Same | Picture | Sign | Finished | Failed


def main() -> None:
    connection = Connection(int(sys.argv[1]))
    with suppress(EOFError, BrokenPipeError, ConnectionResetError, KeyboardInterrupt):
        settings: WorkerSettings = connection.recv()
        _prepare_process(settings)
        connection.send(Ready())
        while True:
            task: DecodeTask | None = connection.recv()
            if task is None:
                return
            for message in _messages(task, settings, connection):
                connection.send(message)


def _prepare_process(settings: WorkerSettings) -> None:
    import logging
    import resource

    from PIL import Image as PillowImage

    PillowImage.MAX_IMAGE_PIXELS = None  # the limit of ReadOptions holds instead
    logging.disable(logging.CRITICAL)  # every failure goes into the report
    limit = max(_LEAST_MEMORY, _BYTES_A_PIXEL * settings.read.max_pixels)
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard == resource.RLIM_INFINITY or hard > limit:
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def _messages(task: DecodeTask, settings: WorkerSettings, connection: Connection) -> Iterator[Message]:
    """Read one file. What is said of a content holds for the bytes that were hashed: the file was the same before and
    after, by times that no program can set back."""
    path = task.file.path
    if is_remote(path):
        yield from _remote_messages(task, settings)
        return
    try:
        file = _settled(path)
        with open(path, "rb") as stream:  # noqa: PTH123 (a path may hold bytes that are no UTF-8)
            sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
        raster = raster_driver(path) is not None
    except OSError as error:
        yield Failed(path, f"cannot be opened: {(error.strerror or str(error)).lower()}")
        return
    except ImageError as error:
        yield Failed(path, _reason(error, path))
        return
    if file is None or not _is_still(file):
        yield _changed(path)
        return
    if task.ask:
        connection.send(Content(path, sha256, raster))
        if not connection.recv():
            yield Same(path, sha256, raster, file)
            return
    known = task.known if (sha256, file) == (task.known_sha256, task.file) else frozenset()
    try:
        yield from _pictures(replace(task, file=file, known=known), sha256, raster, settings)
    except ImageError as error:
        yield Failed(path, _reason(error, path)) if _is_still(file) else _changed(path)
    except MemoryError:
        yield Failed(path, "needs more memory than a decoder may take")


def _remote_messages(task: DecodeTask, settings: WorkerSettings) -> Iterator[Message]:
    """The same for a file on another machine, of which only parts are fetched; what fails there may work again."""
    path = task.file.path
    try:
        raster = raster_driver(path) is not None
        yield from _pictures(task, remote_digest(task.file), raster, settings)
    except ImageError as error:
        yield Failed(path, _reason(error, path), changed=True)
    except MemoryError:
        yield Failed(path, "needs more memory than a decoder may take")


def _pictures(task: DecodeTask, sha256: str, raster: bool, settings: WorkerSettings) -> Iterator[Message]:
    file, path = task.file, task.file.path
    options = replace(settings.read, tiles=replace(settings.read.tiles, told=task.told))
    pictures = windows = done = unreadable = blank = 0
    problem: str | None = None
    first_only = False
    held: Picture | None = None  # the last picture must say that it is the last
    for item in read_items(path, options, task.known, task.pieces):
        windows, done, first_only = item.windows, done + 1, first_only or item.first_only
        if item.problem is not None:
            unreadable, problem = unreadable + 1, problem or item.problem
        if done % _WINDOWS_A_SIGN == 0:
            yield Sign(path, done, windows)
        if item.picture is None:
            continue
        if held is not None:
            yield held
        pixels = fitted(item.picture, settings.fit)
        if not _is_still(file):
            break
        small = small_jpeg(item.picture) if is_remote(path) else None
        phash = perceptual_hash(item.picture)
        bare = replace(item, picture=None)
        held = Picture(path, sha256, raster, file, pixels, bare, phash, last=False, thumbnail=small)
        pictures, blank = pictures + 1, blank + shows_nothing(item.picture)
    if not _is_still(file):
        yield _changed(path)
        return
    if held is not None:
        yield replace(held, last=not unreadable)
    reason = None if problem is None else problem.removeprefix(f"'{printable(path)}' ")
    yield Finished(path, sha256, raster, file, windows, pictures, unreadable, reason, blank, first_only)


def fitted(picture: Image, fit: Fit) -> NDArray[np.uint8]:
    """What the encoder's own ``prepare_image`` makes of ``picture``, without loading the encoder."""
    from evidex.encoders.preprocess import resize_and_crop, resize_to_square

    if fit.how == "none":
        return np.asarray(picture, dtype=np.uint8)
    return np.asarray((resize_and_crop if fit.how == "crop" else resize_to_square)(picture, fit.size), dtype=np.uint8)


def _settled(path: str) -> FoundFile | None:
    """The file's state once its times are older than the system's clock can tell apart; None if it goes on changing.

    From then on any change of it leaves other times.
    """
    file = FoundFile.at(path)
    age = time.time_ns() - max(file.mtime_ns, file.ctime_ns)
    if not 0 <= age < _CLOCK_TICK_NS:
        return file
    time.sleep(_CLOCK_TICK_NS / 1e9)
    return file if _is_still(file) else None


def _is_still(file: FoundFile) -> bool:
    if is_remote(file.path):
        return True
    try:
        return FoundFile.at(file.path) == file
    except OSError:
        return False


def _changed(path: str) -> Failed:
    return Failed(path, "changed while it was read; run the index again", changed=True)


def _reason(error: ImageError, path: str) -> str:
    """The message without the name: the report has it in a column of its own."""
    return str(error).removeprefix(f"'{printable(path)}' ")


if __name__ == "__main__":
    # Run as a script the classes above would be those of __main__, and the parent could not read the messages.
    from evidex.retrieval.indexing.decode_worker import main as run

    run()
