"""One worker of a cluster that indexes: the model, loaded once, and decoding processes of its own.

A file that crashes a decoder ends one of those processes and is told of, as in a run on one machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version

import numpy as np
from numpy.typing import NDArray

from evidex.data.items import ReadOptions
from evidex.errors import ClusterError
from evidex.retrieval.gallery_info import read_info
from evidex.retrieval.gallery_model import load_model_of
from evidex.retrieval.indexing.decode_worker import DecodeTask, Failed, Finished, Picture, Same, WorkerSettings
from evidex.retrieval.indexing.decoding import DecodePool
from evidex.retrieval.indexing.row_making import Assets, RowMaker
from evidex.retrieval.indexing.run import encode_pictures, fit_of
from evidex.retrieval.indexing.workforce import EncodedFiles
from evidex.retrieval.rows import Row
from evidex.retrieval.soundness.checks import FileChecks
from evidex.retrieval.written_rows import write_rows
from evidex.storage.objects import place_of

_PICTURES_AT_ONCE = 64
_DECIDING = ("evidex", "pillow", "onnxruntime")  # in another version rows may differ, and nobody would notice


def installed() -> str:
    """The versions here of what decides how a row comes out."""
    return ", ".join(f"{package} {_version(package)}" for package in _DECIDING)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


@dataclass(frozen=True)
class WorkerJob:
    """What a worker must know before its first files."""

    gallery: str
    read: ReadOptions
    reading: str
    decoders: int
    made_with: str = field(default_factory=installed)


@dataclass(frozen=True)
class Batch:
    """Files for one worker."""

    tasks: tuple[DecodeTask, ...]
    captions: Mapping[str, tuple[str, ...]]
    assets: Assets
    write: bool
    """Whether their rows are new and the worker writes them beside the table; else they come back with vectors."""
    attempt: int = 1


class IndexWorker:
    """Lives as an actor; every call is answered for all files of its batch, or the worker is lost."""

    def __init__(self, job: WorkerJob) -> None:
        self._job = job

    def ready(self) -> bool:
        """Load the model. Not done above: of what fails there Ray tells no more than that the worker died."""
        job = self._job
        if (here := installed()) != job.made_with:
            raise ClusterError(f"a node has {here}, the run {job.made_with}; install the same on every node")
        self._place = place_of(job.gallery)
        info, seal = read_info(self._place)
        self._model = load_model_of(self._place, info, FileChecks(self._place, seal))
        self._reading = job.reading
        self._open = ExitStack()
        settings = WorkerSettings(job.read, fit_of(self._model))
        # A content that may be known is not decoded before the driver has said so: it asks by a task without `ask`.
        pool = DecodePool([], settings, workers=job.decoders, wanted=lambda _: False, keep=True)
        self._pool = self._open.enter_context(pool)
        self._messages = iter(self._pool)
        return True

    def encode(self, batch: Batch) -> EncodedFiles:
        """Decode and encode files, and write their rows where that is asked for."""
        maker = RowMaker(batch.captions, self._reading, batch.assets)
        rows: list[Row] = []
        vectors: list[NDArray[np.float32]] = []
        blank: list[str] = []
        waiting: list[Picture] = []
        ends: list[Finished | Failed | Same] = []

        def encode() -> None:
            if waiting:
                for picture, vector in zip(waiting, self._encoded(waiting), strict=True):
                    if np.isfinite(vector).all():
                        rows.append(maker.row(picture))
                        vectors.append(vector)
                    else:
                        blank.append(picture.path)
                waiting.clear()

        self._pool.add(batch.tasks)
        while len(ends) < len(batch.tasks):
            message = next(self._messages)
            if isinstance(message, Picture):
                waiting.append(message)
                if len(waiting) >= _PICTURES_AT_ONCE:
                    encode()
            elif isinstance(message, Finished | Failed | Same):
                ends.append(message)
        encode()
        found = np.stack(vectors) if vectors else np.empty((0, self._model.dim), np.float32)
        in_order = _by_task(batch.tasks, rows)
        rows, found = [rows[place] for place in in_order], found[in_order]
        written = write_rows(self._place, rows, found) if batch.write and rows else None
        kept = None if written is not None else found
        return EncodedFiles(tuple(rows), kept, written, tuple(blank), tuple(ends))

    def _encoded(self, pictures: Sequence[Picture]) -> NDArray[np.float32]:
        return encode_pictures(self._model, pictures, _PICTURES_AT_ONCE)


def _by_task(tasks: Sequence[DecodeTask], rows: Sequence[Row]) -> list[int]:
    """The places of the rows in the order of their files; those of a file stay as they came."""
    number = {task.file.path: place for place, task in enumerate(tasks)}
    return sorted(range(len(rows)), key=lambda place: number[rows[place].path])
