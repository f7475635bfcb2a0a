"""Vectors in a file that are held against their checksums before they are used.

The file is cut into blocks of rows, each with a CRC-32. A small file is read into memory and checked there: nothing
that happens to it later reaches what was read. A larger one is mapped, and a block is checked when a scan first comes
to it, through the very map that the scan reads, so a cold search reads the disk once. When the file's size or times
change, all blocks are checked again before they are used; `recheck` after a scan does it for what changed while it ran.
"""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from evidex.errors import DamagedError, InputWarning
from evidex.retrieval.scan.plain import FEW_VALUES, are_few, compiles
from evidex.retrieval.soundness.bus_guard import faults, guard
from evidex.retrieval.soundness.checks import State, is_settled, state_of

_BLOCK_BYTES = 1 << 22


class DamagedVectors(DamagedError):
    """The mapped vectors are not what was written; they can be made again from the table."""


def rows_a_block(dim: int) -> int:
    return max(_BLOCK_BYTES // (4 * dim), 1)


class MappedVectors:
    """The vectors of one version of a gallery; ``checks`` are the sums of its blocks, none for vectors in memory."""

    def __init__(self, values: NDArray[np.float32], stream: BinaryIO | None = None, checks: list[int] | None = None):
        self.values = self._all = values
        self._stream = stream
        self._checks = checks or []
        self._rows = rows_a_block(values.shape[1])
        self.used = 0, len(values)
        """The first row that anybody here reads, and the one after the last."""
        self._sound = np.zeros(len(self._checks), np.bool_)
        self._state: State | None = None
        self._faults = 0
        self.look()

    @classmethod
    def of_file(cls, path: Path, rows: int, dim: int, checks: list[int]) -> MappedVectors:
        """Map the file; FileNotFoundError where it is gone, DamagedVectors where it is too short."""
        stream = path.open("rb")
        try:
            values: NDArray[np.float32] = np.memmap(stream, dtype=np.float32, mode="r", shape=(rows, dim))
        except ValueError:
            stream.close()
            raise _too_short(path) from None
        guard(values)
        return cls(values, stream, checks)

    @classmethod
    def read(cls, path: Path, rows: int, dim: int, checks: list[int]) -> MappedVectors:
        """Read the file into memory and check all of it; errors as those of `of_file` and `ensure`."""
        values = np.fromfile(path, np.float32, rows * dim)
        if len(values) < rows * dim:
            raise _too_short(path)
        values = values.reshape(rows, dim)
        values.flags.writeable = False
        for first, expected in zip(range(0, rows, rows_a_block(dim)), checks, strict=True):
            _check(values[first : first + rows_a_block(dim)], expected, str(path))
        return cls(values)

    def first(self, rows: int) -> MappedVectors:
        """Show no more than so many rows, of a file that holds those of a later version too."""
        self.values, self.used = self._all[:rows], (0, rows)
        return self

    def look(self) -> bool:
        """Forget what was found sound if the file has changed since; whether it has."""
        if self._stream is None:
            return False
        now, seen = state_of(self._stream.fileno()), faults()
        if now == self._state and seen == self._faults:
            return False
        self._faults = seen
        self._sound[:] = False
        # A change in the same tick of the clock would not show: look again the next time.
        self._state = now if now is not None and is_settled(now) else None
        return True

    def ensure(self, first: int, stop: int) -> None:
        """DamagedVectors unless rows ``first`` to ``stop`` are what was written."""
        if self._stream is None or stop <= first:
            return
        for block in range(first // self._rows, -(-stop // self._rows)):
            if not self._sound[block]:
                self._check(block)

    def ensure_all(self) -> None:
        self.look()
        self.ensure(*self.used)

    def recheck(self) -> None:
        """DamagedVectors if the file changed since `look` and is not what was written any more."""
        if self.look():
            self.ensure(*self.used)

    def patrol(self) -> Iterator[None]:
        """Check every block again though nothing tells of a change, pausing after each."""
        for block in range(self.used[0] // self._rows, min(-(-self.used[1] // self._rows), len(self._checks))):
            self._check(block)
            yield

    def _check(self, block: int) -> None:
        part = self._all[block * self._rows : (block + 1) * self._rows]
        _check(part, self._checks[block], getattr(self._stream, "name", "the vectors"))
        self._sound[block] = True


def open_vectors(path: Path, rows: int, dim: int, checks: list[int]) -> MappedVectors:
    """The vectors in the file: few in memory, more mapped where that can be guarded."""
    if rows * dim > FEW_VALUES and not compiles():
        warnings.warn(
            f"{rows} rows are held in memory and compared by numpy; \"pip install 'evidex[fast]'\" is several times as "
            "fast for so many",
            InputWarning,
            stacklevel=2,
        )
    return (MappedVectors.read if are_few(rows, dim) else MappedVectors.of_file)(path, rows, dim, checks)


def _check(part: NDArray[np.float32], expected: int, name: str) -> None:
    if zlib.crc32(np.ascontiguousarray(part).data.cast("B")) != expected:
        raise DamagedVectors(f"'{name}' is damaged; 'evidex verify --repair' makes it again from the table")


def _too_short(path: Path) -> DamagedVectors:
    return DamagedVectors(f"'{path}' is shorter than it was; 'evidex verify --repair' makes it again")
