"""Decode a split once: prepared pictures in one memory-mapped file, addressed by their content."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from evidex.data.datasets import Dataset
from evidex.data.images import decode_image
from evidex.files import cache_directory
from evidex.progress import Progress, silent

if TYPE_CHECKING:
    from PIL.Image import Image


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
    pictures are never decoded twice. Memory is bounded by the page cache, whatever the split's size.
    """
    directory = cache_directory(directory) / "pixels"
    directory.mkdir(parents=True, exist_ok=True)
    key = hashlib.sha256(json.dumps([how, size, content_digests(dataset)]).encode()).hexdigest()[:32]
    path = directory / f"{key}.u8"
    shape = (len(dataset), 3, size, size)
    if not path.exists():
        part = directory / f".{key}.{os.getpid()}"
        try:
            target = np.memmap(part, dtype=np.uint8, mode="w+", shape=shape)
            _fill(target, dataset, prepare, progress)
            target.flush()
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)
    return np.memmap(path, dtype=np.uint8, mode="r", shape=shape)


def _fill(target: np.ndarray, dataset: Dataset, prepare: Callable[[Image], np.ndarray], progress: Progress) -> None:
    def one(index: int) -> None:
        target[index] = prepare(decode_image(dataset.image_bytes(index), name=dataset.records[index].filename))

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for done, _ in enumerate(pool.map(one, range(len(dataset))), start=1):
            progress(done, len(dataset))
