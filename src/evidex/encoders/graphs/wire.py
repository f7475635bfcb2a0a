"""The few messages of ONNX's format that a graph needs, as bytes (protocol buffers: field number, kind, content)."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Attribute = int | float | str | Sequence[int]

TYPES = {"float32": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7, "bool": 9, "float16": 10}
"""Names of element types, and ONNX's numbers for them."""
_IR_VERSION = 10
_OPSETS = (("", 20), ("com.microsoft", 1))
_REAL, _INTEGER, _STRING, _INTEGERS = 1, 2, 3, 7
_EXTERNAL = 1


def node(
    op: str, domain: str, inputs: Sequence[str], outputs: Sequence[str], attributes: Mapping[str, Attribute]
) -> bytes:
    names = [*(_text(1, name) for name in inputs), *(_text(2, name) for name in outputs)]
    parts = [*names, _text(4, op), _text(7, domain)]
    return b"".join([*parts, *(_block(5, _attribute(name, value)) for name, value in attributes.items())])


def tensor(name: str, values: NDArray[np.generic]) -> bytes:
    """A constant with its values."""
    return _declared(name, values.dtype.name, values.shape) + _block(9, np.ascontiguousarray(values).tobytes())


def outside(name: str, kind: str, shape: Sequence[int]) -> bytes:
    """A weight whose values are handed over when the graph is loaded."""
    where = _text(1, "location") + _text(2, "weights")
    return _declared(name, kind, shape) + _block(13, where) + _number(14, _EXTERNAL)


def value(name: str, kind: str, dims: Sequence[int | str]) -> bytes:
    """What goes in or comes out; a dimension of any length has a name."""
    shape = b"".join(_block(1, _text(2, dim) if isinstance(dim, str) else _number(1, dim)) for dim in dims)
    return _text(1, name) + _block(2, _block(1, _number(1, TYPES[kind]) + _block(2, shape)))


def model(nodes: Sequence[bytes], tensors: Sequence[bytes], inputs: Sequence[bytes], outputs: Sequence[bytes]) -> bytes:
    numbered = ((1, nodes), (5, tensors), (11, inputs), (12, outputs))
    graph = b"".join(_block(field, part) for field, parts in numbered for part in parts) + _text(2, "tower")
    opsets = b"".join(_block(8, _text(1, domain) + _number(2, version)) for domain, version in _OPSETS)
    return _number(1, _IR_VERSION) + _block(7, graph) + opsets


def _declared(name: str, kind: str, shape: Sequence[int]) -> bytes:
    return b"".join(_number(1, size) for size in shape) + _number(2, TYPES[kind]) + _text(8, name)


def _attribute(name: str, value: Attribute) -> bytes:
    if isinstance(value, str):
        content, kind = _text(4, value), _STRING
    elif isinstance(value, float):
        content, kind = _varint(2 << 3 | 5) + struct.pack("<f", value), _REAL
    elif isinstance(value, int):
        content, kind = _number(3, value), _INTEGER
    else:
        content, kind = b"".join(_number(8, each) for each in value), _INTEGERS
    return _text(1, name) + content + _number(20, kind)


def _block(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _text(field: int, content: str) -> bytes:
    return _block(field, content.encode())


def _number(field: int, number: int) -> bytes:
    return _varint(field << 3) + _varint(number & (1 << 64) - 1)


def _varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first, all but the last marked."""
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)
