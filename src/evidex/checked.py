"""Frozen dataclasses that cannot hold a value of the wrong type or range, however they are made.

A field's annotation says what it may be, e.g. ``temperature: Positive = 0.1``; `Checked` looks at it whenever one is
made: from a file, with ``replace`` or by hand.
"""

from __future__ import annotations

import dataclasses
import math
import reprlib
import types
import typing
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from evidex.errors import ConfigError

Section = TypeVar("Section")


@dataclass(frozen=True)
class Range:
    """Numbers from ``low`` to ``high``; never NaN and never infinite."""

    low: float
    high: float
    words: str

    def holds(self, value: float) -> bool:
        return math.isfinite(value) and self.low <= value <= self.high


@dataclass(frozen=True)
class _Name:
    """Text that can name a file; empty only where that means none."""

    may_be_empty: bool


_TINY, _HUGE = 1e-30, 1e30  # what single precision holds, and some way from its ends
_LONGEST_TEXT = 4096
MOST = 1 << 20  # of things that are counted or take memory: more is a slip of the hand

Positive = Annotated[float, Range(_TINY, _HUGE, f"a number above 0, from {_TINY:g} to {_HUGE:g}")]
NotNegative = Annotated[float, Range(0.0, _HUGE, f"0 or more, at most {_HUGE:g}")]
Share = Annotated[float, Range(0.0, 1.0, "a number from 0 to 1")]
PositiveShare = Annotated[float, Range(_TINY, 1.0, "a number above 0, at most 1")]
Count = Annotated[int, Range(1, MOST, f"a number above 0, at most {MOST}")]
CountOrZero = Annotated[int, Range(0, MOST, f"0 or more, at most {MOST}")]
Seed = Annotated[int, Range(0, 2**63 - 1, "0 or more, below 2^63")]
Name = Annotated[str, _Name(may_be_empty=False)]
NameOrEmpty = Annotated[str, _Name(may_be_empty=True)]


class Checked:
    """Base of dataclasses whose fields are checked when one is made; ConfigError names the field."""

    def __post_init__(self) -> None:
        for name, hint in typing.get_type_hints(type(self), include_extras=True).items():
            object.__setattr__(self, name, _value(hint, getattr(self, name), name))


def to_table(config: Any) -> dict[str, Any]:
    """Return ``config`` as plain tables, the inverse of ``parse``."""
    return dataclasses.asdict(config)


def parse(cls: type[Section], table: Any, where: str, section: str = "") -> Section:
    """Build ``cls`` from ``table``; every key must exist there and have its type and range."""
    place = f"{where}: {section[:-1]}" if section else where
    if not isinstance(table, dict):
        raise ConfigError(f"{place}: expected a table, found {reprlib.repr(table)}")
    hints = typing.get_type_hints(cls)
    unknown = sorted(set(table) - set(hints))
    if unknown:
        raise ConfigError(f"{place}: unknown key '{unknown[0]:.80}'; known are {', '.join(sorted(hints))}")
    needed = [field.name for field in dataclasses.fields(typing.cast(Any, cls)) if _is_needed(field)]
    if missing := [name for name in needed if name not in table]:
        raise ConfigError(f"{place}: '{missing[0]}' is missing; give it a value")
    values = {key: _nested(hints[key], value, where, f"{section}{key}") for key, value in table.items()}
    try:
        return cls(**values)
    except ConfigError as error:
        raise ConfigError(f"{where}: {section}{error}") from None


def _is_needed(field: dataclasses.Field[Any]) -> bool:
    return field.init and field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _nested(hint: Any, value: Any, where: str, name: str) -> Any:
    """``value`` with the tables in it made into the dataclasses that ``hint`` names."""
    if typing.get_origin(hint) is types.UnionType:  # a section that may be missing
        (hint,) = (choice for choice in typing.get_args(hint) if choice is not type(None))
    if dataclasses.is_dataclass(hint):
        return parse(typing.cast(type, hint), value, where, f"{name}.")
    if typing.get_origin(hint) is tuple and isinstance(value, (list, tuple)):
        inner = typing.get_args(hint)[0]
        return tuple(_nested(inner, item, where, f"{name}[{number}]") for number, item in enumerate(value))
    return value


def _value(hint: Any, value: Any, name: str) -> Any:
    """``value`` if ``hint`` allows it, whole numbers as float where one is due; else ConfigError."""
    origin = typing.get_origin(hint)
    if origin is Annotated:
        inner, *limits = typing.get_args(hint)
        value = _value(inner, value, name)
        for limit in limits:
            _check(limit, value, name)
        return value
    if origin is types.UnionType:
        return value if value is None else _value(typing.get_args(hint)[0], value, name)
    if origin is Literal:
        choices = typing.get_args(hint)
        if not any(type(value) is type(choice) and value == choice for choice in choices):
            raise ConfigError(f"{name} = {reprlib.repr(value)}; choose one of {', '.join(map(repr, choices))}")
        return value
    if origin is tuple:
        if not isinstance(value, (list, tuple)):
            raise ConfigError(f"{name} = {reprlib.repr(value)}; expected a list")
        return tuple(_value(typing.get_args(hint)[0], item, name) for item in value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value) if abs(value) < _HUGE else math.inf
    kind = origin or hint
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ConfigError(f"{name} = {reprlib.repr(value)}; expected {kind.__name__}")
    if isinstance(value, str) and not _is_plain(value):
        raise ConfigError(f"{name} = {reprlib.repr(value)}; give plain text of at most {_LONGEST_TEXT} characters")
    return value


def _is_plain(text: str) -> bool:
    try:
        return "\0" not in text and len(text.encode()) <= _LONGEST_TEXT
    except UnicodeEncodeError:
        return False


def _check(limit: Any, value: Any, name: str) -> None:
    if isinstance(limit, Range) and not limit.holds(value):
        raise ConfigError(f"{name} = {reprlib.repr(value)}; give {limit.words}")
    if isinstance(limit, _Name) and not value.strip() and not (limit.may_be_empty and not value):
        raise ConfigError(f"{name} is empty; give a name")
