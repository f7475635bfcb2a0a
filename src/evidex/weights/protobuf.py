"""Protocol-buffer messages as they travel, read without a schema: numbered fields, each a number or bytes."""

from __future__ import annotations

from collections.abc import Iterator

_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5
_MOST_BITS = 64


def fields(message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Yield each field's number and value; a submessage, text or array comes as the bytes it is.

    ValueError where the bytes are no message.
    """
    at = 0
    while at < len(message):
        key, at = varint(message, at)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, at = varint(message, at)
            yield number, value
            continue
        if kind == _BYTES:
            size, at = varint(message, at)
        elif kind in (_EIGHT_BYTES, _FOUR_BYTES):
            size = 8 if kind == _EIGHT_BYTES else 4
        else:
            raise ValueError(f"field {number} is of the unknown kind {kind}")
        if at + size > len(message):
            raise ValueError(f"field {number} ends {at + size - len(message)} bytes behind the message")
        yield number, message[at : at + size]
        at += size


def varint(message: memoryview, at: int) -> tuple[int, int]:
    """Return the whole number that begins at ``at``, seven bits a byte, and where it ends."""
    value = shift = 0
    while shift < _MOST_BITS:
        if at >= len(message):
            raise ValueError("the message ends within a number")
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("a number has more than 64 bits")


def varints(packed: memoryview) -> list[int]:
    """The numbers of a packed array."""
    numbers, at = [], 0
    while at < len(packed):
        number, at = varint(packed, at)
        numbers.append(number)
    return numbers
