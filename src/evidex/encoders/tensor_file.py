"""A safetensors file read tensor by tensor, each when it is needed, and held against its checksum every time.

Read, not mapped: a file that is cut short under a running server is then an error and not the end of the process.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike, NDArray

from evidex.documents import parse_json
from evidex.errors import ModelError

_TYPES = {"F16": "<f2", "F32": "<f4", "F64": "<f8", "I8": "<i1", "I32": "<i4", "I64": "<i8", "U8": "<u1", "BOOL": "?"}
_LENGTH_BYTES = 8


class StoredTensor:
    """One tensor in its file; numpy reads it where an array is wanted."""

    def __init__(self, file: BinaryIO, dtype: str, shape: tuple[int, ...], start: int, size: int) -> None:
        self._file, self._start, self._size = file, start, size
        self.dtype, self.shape = np.dtype(_TYPES[dtype]), shape
        self._sum: int | None = None

    @property
    def checksum(self) -> int:
        """The CRC-32 of its content as it was when this was first asked."""
        if self._sum is None:
            self._sum = zlib.crc32(self._bytes())
        return self._sum

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        content = self._bytes()
        if zlib.crc32(content) != self.checksum:
            raise ModelError(f"'{self._file.name}' changed while it was in use; fetch or train it again")
        values = np.frombuffer(content, self.dtype).reshape(self.shape)
        return values.astype(dtype or self.dtype, copy=bool(copy))

    def _bytes(self) -> bytes:
        content = os.pread(self._file.fileno(), self._size, self._start)
        if len(content) != self._size:
            raise ModelError(f"'{self._file.name}' is shorter than it was; fetch or train it again")
        return content


class TensorFile(Mapping[str, StoredTensor]):
    """The tensors of a file by name. SafetensorError, OSError or ValueError where it is none."""

    def __init__(self, path: Path) -> None:
        from safetensors import safe_open

        with safe_open(path, framework="np") as stream:  # it refuses offsets that overlap or lead out of the file
            self.metadata: dict[str, str] = stream.metadata() or {}
        file = path.open("rb")
        length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
        header = parse_json(file.read(length))
        header.pop("__metadata__", None)
        begin = _LENGTH_BYTES + length
        self._tensors = {name: self._tensor(file, name, entry, begin) for name, entry in header.items()}

    @staticmethod
    def _tensor(file: BinaryIO, name: str, entry: dict[str, Any], begin: int) -> StoredTensor:
        if entry["dtype"] not in _TYPES:
            raise ValueError(f"'{name}' holds numbers of type {entry['dtype']}")
        start, end = entry["data_offsets"]
        return StoredTensor(file, entry["dtype"], tuple(entry["shape"]), begin + start, end - start)

    def __getitem__(self, name: str) -> StoredTensor:
        return self._tensors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)
