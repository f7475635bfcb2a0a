"""Decode a split once: prepared pictures in one memory-mapped file, addressed by their content."""

from __future__ import annotations

import fcntl
import hashlib
import json
import math
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from evidex.data.datasets import Dataset
from evidex.data.images import decode_image
from evidex.files import cache_directory
from evidex.progress import Progress, silent

if TYPE_CHECKING:
    from PIL.Image import Image


MOST_BYTES = 20_000_000_000
"""That prepared pictures may take on the disk; what one run needs may be more."""
_KEPT = ".u8"
_ABANDONED_SECONDS = 86_400.0
_in_use: set[Path] = set()


def content_digests(dataset: Dataset) -> list[str]:
    """Return the SHA-256 of each image file of ``dataset``."""
    return [hashlib.sha256(dataset.image_bytes(index)).hexdigest() for index in range(len(dataset))]


def prepared_pixels(
    dataset: Dataset,
    prepare: Callable[[Image], np.ndarray],
    size: int,
    how: str,
    *,
    directory: Path | None = None,
    progress: Progress = silent,
) -> np.ndarray:
    """Return ``prepare`` of every image as a read-only array (n, 3, size, size) of uint8.

    ``how`` names the preparation: with the images' content it addresses the file, so that the same
    pictures are never decoded twice. Memory is bounded by the page cache, whatever the split's size; on the disk what
    was used least recently goes once all such files together take more than `MOST_BYTES`.
    """
    directory = cache_directory(directory) / "pixels"
    directory.mkdir(parents=True, exist_ok=True)
    key = hashlib.sha256(json.dumps([how, size, content_digests(dataset)]).encode()).hexdigest()[:32]
    path = directory / f"{key}{_KEPT}"
    shape = (len(dataset), 3, size, size)
    _in_use.add(path)
    while True:
        try:
            with path.open("rb") as stream:
                with suppress(OSError):  # no such locks there, or a cache that belongs to somebody else
                    fcntl.flock(stream, fcntl.LOCK_SH)  # as long as it is mapped: `make_room` leaves it alone
                with suppress(OSError):
                    os.utime(path)
                return np.memmap(stream, dtype=np.uint8, mode="r", shape=shape)
        except FileNotFoundError:
            make_room(directory, math.prod(shape))
            _make(path, dataset, prepare, shape, progress)


def make_room(directory: Path, room: int) -> None:
    """Remove the files used least recently, until ``room`` bytes fit below `MOST_BYTES`; none that a run has mapped.

    What a run that was killed had not finished goes too, a day after it was last written to. What may not be removed
    stays, as in a cache that several people share.
    """
    held: list[tuple[float, int, Path]] = []
    for path in directory.iterdir():
        with suppress(OSError):  # another run makes room as well, or it belongs to somebody else
            status = path.stat()
            if path.suffix == _KEPT:
                held.append((status.st_mtime, status.st_size, path))
            elif path.name.startswith(".") and time.time() - status.st_mtime > _ABANDONED_SECONDS:
                path.unlink()
    over = room + sum(size for _, size, _ in held) - MOST_BYTES
    for _, size, path in sorted(held):
        if over <= 0:
            return
        if path not in _in_use and _removed(path):
            over -= size


def _removed(path: Path) -> bool:
    """Whether ``path`` is gone; it stays where another run has mapped it, or it may not be removed."""
    try:
        with path.open("rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _make(
    path: Path, dataset: Dataset, prepare: Callable[[Image], np.ndarray], shape: tuple[int, ...], progress: Progress
) -> None:
    part = path.with_name(f".{path.stem}.{os.getpid()}")
    try:
        target = np.memmap(part, dtype=np.uint8, mode="w+", shape=shape)
        _fill(target, dataset, prepare, progress)
        target.flush()
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def _fill(target: np.ndarray, dataset: Dataset, prepare: Callable[[Image], np.ndarray], progress: Progress) -> None:
    def one(index: int) -> None:
        target[index] = prepare(decode_image(dataset.image_bytes(index), name=dataset.records[index].filename))

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for done, _ in enumerate(pool.map(one, range(len(dataset))), start=1):
            progress(done, len(dataset))
