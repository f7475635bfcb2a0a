"""The tensors of a TorchScript archive (``torch.jit.save``), read without torch and without unpickling.

The archive is a zip: ``data.pkl`` says how modules nest and which numbers are whose, ``data/N`` holds the numbers. The
pickle's instructions are followed as data: whatever they name stays a name, nothing of it is ever imported or called.
"""

from __future__ import annotations

import math
import pickletools
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evidex.errors import ModelError

_TYPES = {
    "HalfStorage": np.float16, "FloatStorage": np.float32, "DoubleStorage": np.float64, "ByteStorage": np.uint8,
    "CharStorage": np.int8, "ShortStorage": np.int16, "IntStorage": np.int32, "LongStorage": np.int64,
    "BoolStorage": np.bool_,
}  # fmt: skip
_REBUILD = "torch._utils _rebuild_tensor_v2"
_PLAIN = frozenset({
    "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8",
})  # fmt: skip
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_MARK = object()


@dataclass(frozen=True)
class _Name:
    """Something that the pickle names, left as a name."""

    path: str


@dataclass(frozen=True)
class _Call:
    """A call that the pickle asks for and does not get."""

    path: str
    arguments: Any


@dataclass(frozen=True)
class _Storage:
    """The numbers ``data/key``."""

    dtype: np.dtype[Any]
    key: str


class _Module(dict[str, Any]):
    """A module's attributes by name."""


def is_torchscript(path: Path) -> bool:
    """Whether ``path`` is such an archive, and not a plain file of tensors."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return any("/code/" in name for name in archive.namelist())


def read_torchscript(path: Path, prefix: str = "") -> dict[str, np.ndarray]:
    """Return the tensors whose dotted names begin with ``prefix``, under these names without it."""
    try:
        with zipfile.ZipFile(path) as archive:
            (described,) = (name for name in archive.namelist() if name.endswith("/data.pkl"))
            folder = described.removesuffix(".pkl")
            found = _tensors(_structure(_part(archive, described)), "")
            wanted = {name.removeprefix(prefix): call for name, call in found.items() if name.startswith(prefix)}
            if not wanted:
                raise ValueError(f"it holds no tensor '{prefix}…'")
            return {name: _numbers(archive, folder, call) for name, call in wanted.items()}
    except (zipfile.BadZipFile, OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ModelError(f"'{path}' is no readable TorchScript archive ({error}); fetch it again") from None


def _part(archive: zipfile.ZipFile, name: str) -> bytes:
    """A part of the archive; as none is compressed, none is larger than the archive itself."""
    if archive.getinfo(name).compress_type != zipfile.ZIP_STORED:
        raise ValueError(f"its {name} is compressed")
    return archive.read(name)


def _structure(pickled: bytes) -> Any:
    """Follow the pickle's instructions; modules become dictionaries, everything else that is made stays a `_Call`."""
    stack: list[Any] = []
    memo: dict[int, Any] = {}
    for code, argument, _ in pickletools.genops(pickled):
        operation = code.name
        if operation in _PLAIN:
            stack.append(argument)
        elif operation in _CONSTANTS:
            stack.append(_CONSTANTS[operation])
        elif operation in ("BINPUT", "LONG_BINPUT"):
            memo[_number(argument)] = stack[-1]
        elif operation in ("BINGET", "LONG_BINGET"):
            stack.append(memo[_number(argument)])
        elif operation == "GLOBAL":
            stack.append(_Name(str(argument)))
        elif operation == "STOP":
            return stack.pop()
        elif operation != "PROTO":
            _collect(operation, stack)
    raise ValueError("the description does not end")


def _collect(operation: str, stack: list[Any]) -> None:
    """The instructions that put together what lies on the stack."""
    if operation == "MARK":
        stack.append(_MARK)
    elif operation in ("EMPTY_TUPLE", "EMPTY_LIST", "EMPTY_DICT"):
        stack.append({"EMPTY_TUPLE": (), "EMPTY_LIST": [], "EMPTY_DICT": {}}[operation])
    elif operation in _TUPLES:
        stack.append(tuple(_taken(stack, _TUPLES[operation])))
    elif operation == "TUPLE":
        stack.append(tuple(_since_mark(stack)))
    elif operation == "APPENDS":
        items = _since_mark(stack)
        stack[-1].extend(items)
    elif operation == "APPEND":
        item = stack.pop()
        stack[-1].append(item)
    elif operation == "SETITEMS":
        items = _since_mark(stack)
        stack[-1].update(zip(items[::2], items[1::2], strict=True))
    elif operation == "SETITEM":
        key, value = _taken(stack, 2)
        stack[-1][key] = value
    elif operation == "NEWOBJ":
        _taken(stack, 2)
        stack.append(_Module())
    elif operation == "BUILD":
        attributes = stack.pop()
        stack[-1].update(attributes)
    elif operation == "REDUCE":
        function, arguments = _taken(stack, 2)
        stack.append(_Call(function.path, arguments))
    elif operation == "BINPERSID":
        _, kind, key, *_ = stack.pop()
        stack.append(_Storage(np.dtype(_TYPES[kind.path.rpartition(" ")[2]]), str(key)))
    else:
        raise ValueError(f"instruction {operation} is none of a TorchScript archive's")


def _taken(stack: list[Any], count: int) -> list[Any]:
    items = stack[-count:]
    del stack[-count:]
    return items


def _since_mark(stack: list[Any]) -> list[Any]:
    at = max(index for index, item in enumerate(stack) if item is _MARK)
    items = stack[at + 1 :]
    del stack[at:]
    return items


def _number(argument: Any) -> int:
    return int(argument)


def _tensors(part: Any, path: str) -> dict[str, _Call]:
    """Every tensor below ``part`` by its dotted name."""
    if isinstance(part, _Call):
        return {path: part} if part.path == _REBUILD else {}
    if not isinstance(part, _Module):
        return {}
    return {
        name: call for key, value in part.items() for name, call in _tensors(value, f"{path}.{key}".strip(".")).items()
    }


def _numbers(archive: zipfile.ZipFile, folder: str, call: _Call) -> np.ndarray:
    storage, offset, shape, strides, *_ = call.arguments
    numbers = np.frombuffer(_part(archive, f"{folder}/{storage.key}"), storage.dtype.newbyteorder("<"))
    last = offset + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    inside = min((offset, *shape, *strides), default=0) >= 0 and (0 in shape or last < len(numbers))
    if not inside or math.prod(shape) > len(numbers):  # repeated by a stride of 0 they could fill any memory
        raise ValueError(f"a tensor of shape {tuple(shape)} reaches beyond its {len(numbers)} numbers")
    steps = [stride * storage.dtype.itemsize for stride in strides]
    return np.lib.stride_tricks.as_strided(numbers[offset:], shape, steps, writeable=False).copy()
