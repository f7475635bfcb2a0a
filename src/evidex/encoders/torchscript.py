"""The tensors of a TorchScript archive, as OpenAI published CLIP, read without running anything that is in it.

Such an archive is a zip of raw numbers and of a pickle that says how they make up modules. The pickle is followed
instruction by instruction: names of classes stay names, nothing is imported and nothing is called, and an instruction
that plain modules of tensors do not need is refused.
"""

from __future__ import annotations

import pickletools
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from evidex.errors import ModelError

_TYPES = {
    "torch FloatStorage": torch.float32,
    "torch HalfStorage": torch.float16,
    "torch DoubleStorage": torch.float64,
    "torch BFloat16Storage": torch.bfloat16,
    "torch LongStorage": torch.int64,
    "torch IntStorage": torch.int32,
    "torch ByteStorage": torch.uint8,
    "torch BoolStorage": torch.bool,
}
_REBUILD = "torch._utils _rebuild_tensor_v2"
_NO_WEIGHT = "attn_mask"  # a constant that OpenAI's modules hold as an attribute


@dataclass(frozen=True)
class _Name:
    """A class or function that the pickle names; it is never looked up."""

    text: str


@dataclass
class _Module:
    state: dict[Any, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class _Storage:
    key: str
    type: torch.dtype


def is_torchscript(path: Path) -> bool:
    """Whether ``path`` is such an archive, and not a plain file of tensors."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return any("/code/" in name for name in archive.namelist())


def read_torchscript(path: Path) -> dict[str, torch.Tensor]:
    """Return every tensor of the archive's modules by its dotted name."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = {info.filename.partition("/")[2]: info for info in archive.infolist()}
            follower = _Follower(archive, entries)
            root = follower.follow(follower.taken("data.pkl"))
    except (zipfile.BadZipFile, ValueError, LookupError, TypeError, RuntimeError, AttributeError) as error:
        raise ModelError(
            f"'{path}' is no TorchScript archive of plain modules ({error}); save the model's state_dict() instead"
        ) from error
    found: dict[str, torch.Tensor] = {}
    _collect(root, "", found)
    return found


def _collect(part: Any, prefix: str, found: dict[str, torch.Tensor]) -> None:
    if not isinstance(part, _Module):
        return
    for name, value in part.state.items():
        if isinstance(value, torch.Tensor) and name != _NO_WEIGHT:
            found[f"{prefix}{name}"] = value
        else:
            _collect(value, f"{prefix}{name}.", found)


class _Follower:
    """A stack and a memo, and what each instruction does to them."""

    def __init__(self, archive: zipfile.ZipFile, entries: dict[str, zipfile.ZipInfo]) -> None:
        self._archive = archive
        self._entries = entries
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self._memo: dict[int, Any] = {}

    def taken(self, name: str) -> bytes:
        """A part of the archive; none is larger than the archive itself."""
        if self._entries[name].compress_type != zipfile.ZIP_STORED:
            raise ValueError(f"its {name} is compressed")
        return self._archive.read(self._entries[name])

    def follow(self, pickle: bytes) -> Any:
        for opcode, argument, _ in pickletools.genops(pickle):
            if opcode.name == "STOP":
                return self._stack.pop()
            self._do(opcode.name, argument)
        raise ValueError("its description has no end")

    def _do(self, name: str, argument: Any) -> None:
        stack = self._stack
        if name in ("BINUNICODE", "BININT", "BININT1", "BININT2", "BINFLOAT", "LONG1", "SHORT_BINSTRING"):
            stack.append(argument)
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name]())
        elif name == "GLOBAL":
            stack.append(_Name(argument))
        elif name == "MARK":
            self._marks.append(len(stack))
        elif name in ("BINPUT", "LONG_BINPUT"):
            self._memo[argument] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(self._memo[argument])
        elif name == "TUPLE":
            stack.append(tuple(self._since_mark()))
        elif name in ("TUPLE1", "TUPLE2", "TUPLE3"):
            count = int(name[-1])
            stack[-count:] = [tuple(stack[-count:])]
        elif name in ("SETITEM", "SETITEMS"):
            items = self._since_mark() if name == "SETITEMS" else [stack.pop(-2), stack.pop()]
            stack[-1].update(zip(items[::2], items[1::2], strict=True))
        elif name in ("APPEND", "APPENDS"):
            stack[-1].extend(self._since_mark() if name == "APPENDS" else [stack.pop()])
        elif name == "NEWOBJ":
            stack[-2:] = [_Module()]
        elif name == "BUILD":
            state = stack.pop()
            if isinstance(stack[-1], _Module) and isinstance(state, dict):
                stack[-1].state = state
        elif name == "BINPERSID":
            stack.append(_storage(stack.pop()))
        elif name == "REDUCE":
            arguments, maker = stack.pop(), stack.pop()
            stack.append(self._tensor(*arguments[:4]) if maker == _Name(_REBUILD) else None)
        elif name != "PROTO":
            raise ValueError(f"its description holds the instruction {name}")

    def _since_mark(self) -> list[Any]:
        start = self._marks.pop()
        items = self._stack[start:]
        del self._stack[start:]
        return items

    def _tensor(self, storage: _Storage, offset: int, size: tuple[int, ...], stride: tuple[int, ...]) -> torch.Tensor:
        content = bytearray(self.taken(f"data/{storage.key}"))
        if not content:
            return torch.empty(size, dtype=storage.type)
        flat = torch.frombuffer(content, dtype=storage.type)
        return flat.as_strided(size, stride, offset).clone()  # torch refuses what lies outside


def _storage(described: tuple[Any, ...]) -> _Storage:
    kind, named, key, *_ = described
    if kind != "storage" or not isinstance(named, _Name) or named.text not in _TYPES:
        raise ValueError(f"it holds numbers of a kind that is unknown here ({named})")
    return _Storage(str(key), _TYPES[named.text])


_CONSTANTS: dict[str, Any] = {
    "EMPTY_TUPLE": tuple,
    "EMPTY_DICT": dict,
    "EMPTY_LIST": list,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "NONE": lambda: None,
}
