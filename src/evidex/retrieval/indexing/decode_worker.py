"""The process that opens files for the index. A file that crashes a decoder ends this process and nothing else.

Run as ``python -m evidex.retrieval.indexing.decode_worker FD``, with one end of a pipe. It gets a `WorkerSettings`
and then `Task`s, and answers each with messages, the last of which is `Finished` or `Failed`.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from evidex.data.discover import FoundFile, printable
from evidex.data.items import Item, ReadOptions, read_items
from evidex.errors import ImageError

if TYPE_CHECKING:
    from PIL.Image import Image

_BYTES_A_PIXEL = 40  # a 16-bit image on its way to RGB, with all its copies
_LEAST_MEMORY = 4 << 30
_WINDOWS_A_SIGN = 32


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
class Task:
    """A file to open. Windows in ``known`` are left out if the file's content is still ``known_sha256``."""

    file: FoundFile
    ask: bool = False
    """Whether to say what the content is and wait for a word before decoding."""
    known: frozenset[tuple[int, int]] = frozenset()
    known_sha256: str = ""


@dataclass(frozen=True)
class Ready:
    """The process runs and waits for its first task."""


@dataclass(frozen=True)
class Content:
    """A file was hashed and waits for the word (a bool) whether to decode it."""

    path: str
    sha256: str


@dataclass(frozen=True)
class Same:
    """The content is known; nothing was decoded."""

    path: str
    sha256: str


@dataclass(frozen=True)
class Picture:
    """One item, ready for the encoder; ``item.picture`` is None here, ``pixels`` stands for it."""

    path: str
    sha256: str
    pixels: NDArray[np.uint8]
    """(3, size, size), or (height, width, 3) where the encoder prepares pictures itself."""
    item: Item
    last: bool


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
    windows: int
    pictures: int
    unreadable: int
    problem: str | None


@dataclass(frozen=True)
class Failed:
    path: str
    reason: str


Message = Content | Same | Picture | Sign | Finished | Failed


def main() -> None:
    connection = Connection(int(sys.argv[1]))
    with suppress(EOFError, BrokenPipeError, ConnectionResetError, KeyboardInterrupt):
        settings: WorkerSettings = connection.recv()
        _prepare_process(settings)
        connection.send(Ready())
        while True:
            task: Task | None = connection.recv()
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


def _messages(task: Task, settings: WorkerSettings, connection: Connection) -> Iterator[Message]:
    path = task.file.path
    try:
        with open(path, "rb") as stream:  # noqa: PTH123 (a path may hold bytes that are no UTF-8)
            sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        yield Failed(path, f"cannot be opened: {(error.strerror or str(error)).lower()}")
        return
    if task.ask:
        connection.send(Content(path, sha256))
        if not connection.recv():
            yield Same(path, sha256)
            return
    known = task.known if sha256 == task.known_sha256 else frozenset()
    pictures = windows = done = unreadable = 0
    problem: str | None = None
    held: Picture | None = None  # the last picture must say that it is the last
    try:
        for item in read_items(path, settings.read, known):
            windows, done = item.windows, done + 1
            if item.problem is not None:
                unreadable, problem = unreadable + 1, problem or item.problem
            if done % _WINDOWS_A_SIGN == 0:
                yield Sign(path, done, windows)
            if item.picture is None:
                continue
            if held is not None:
                yield held
            pixels = fitted(item.picture, settings.fit)
            held = Picture(path, sha256, pixels, replace(item, picture=None), last=False)
            pictures += 1
    except ImageError as error:
        yield Failed(path, _reason(error, path))
        return
    except MemoryError:
        yield Failed(path, "needs more memory than a decoder may take")
        return
    if not _unchanged(task.file):
        yield Failed(path, "changed while it was read; run the index again")
        return
    if held is not None:
        yield replace(held, last=True)
    reason = None if problem is None else problem.removeprefix(f"'{printable(path)}' ")
    yield Finished(path, sha256, windows, pictures, unreadable, reason)


def fitted(picture: Image, fit: Fit) -> NDArray[np.uint8]:
    """What the encoder's own ``prepare_image`` makes of ``picture``, without loading the encoder."""
    if fit.how == "crop":
        from evidex.encoders.preprocess import resize_and_crop

        return np.asarray(resize_and_crop(picture, fit.size), dtype=np.uint8)
    if fit.how == "none":
        return np.asarray(picture, dtype=np.uint8)
    from PIL.Image import Resampling

    if picture.size != (fit.size, fit.size):
        picture = picture.resize((fit.size, fit.size), Resampling.BICUBIC, reducing_gap=3.0)
    return np.ascontiguousarray(np.asarray(picture, dtype=np.uint8).transpose(2, 0, 1))


def _unchanged(file: FoundFile) -> bool:
    try:
        status = Path(file.path).stat()
    except OSError:
        return False
    return (status.st_size, status.st_mtime_ns) == (file.size, file.mtime_ns)


def _reason(error: ImageError, path: str) -> str:
    """The message without the name: the report has it in a column of its own."""
    return str(error).removeprefix(f"'{printable(path)}' ")


if __name__ == "__main__":
    # Run as a script the classes above would be those of __main__, and the parent could not read the messages.
    from evidex.retrieval.indexing.decode_worker import main as run

    run()
