"""Files decoded and encoded elsewhere than in an index run's own processes: what it asks for, and what it gets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from evidex.data.items import ReadOptions
from evidex.retrieval.indexing.decode_worker import Content, DecodeTask, Failed, Finished, Same
from evidex.retrieval.indexing.row_making import Assets
from evidex.retrieval.rows import Row, WrittenRows


@dataclass(frozen=True, eq=False)
class EncodedFiles:
    """What became of some files, each of them whole."""

    rows: tuple[Row, ...]
    vectors: NDArray[np.float32] | None
    """Of the rows; None where they are written."""
    written: WrittenRows | None
    blank: tuple[str, ...]
    """For each picture that the model gives no finite vector for, its path."""
    ends: tuple[Finished | Failed | Same, ...]


@dataclass(frozen=True)
class Job:
    """The files of one pass of a run, and what bears on their rows."""

    tasks: Sequence[DecodeTask]
    read: ReadOptions
    reading: str
    """The options in words, as rows carry them."""
    captions: Callable[[str], tuple[str, ...]]
    assets: Assets
    """What catalogs tell of files, by path."""
    wanted: Callable[[Content], bool]
    """Whether a content is to be decoded, as its rows are not there."""
    is_new: Callable[[str], bool]
    """Whether the gallery has no row of this file: then its rows may be written beside the table."""
    workers: int | None


class Workforce(Protocol):
    """Those who decode and encode for a run."""

    def at_work(self, job: Job) -> AbstractContextManager[Iterator[EncodedFiles]]:
        """What became of all files of the job, as it comes; within, they are at work."""
