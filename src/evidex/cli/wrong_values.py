"""What is wrong with the value of an option, in plain words: typer hands on what its checker says of types."""

from __future__ import annotations

from typing import Any

import typer

_LIMITS = {
    "greater_than_equal": ("ge", "too small; give {} or more"),
    "less_than_equal": ("le", "too large; give at most {}"),
}
_KINDS = {
    "int_parsing": "no whole number",
    "int_parsing_size": "no whole number that fits",
    "float_parsing": "no number",
}
_NO_NUMBERS = ("nan", "+nan", "-nan")  # which are neither too small nor too large


def told(error: typer.TyperException) -> str | None:
    """The option, its value and what is wrong with it; None where typer's own words have to do."""
    parameter, errors = getattr(error, "param", None), getattr(error.__cause__, "errors", None)
    if parameter is None or errors is None:
        return None
    first: dict[str, Any] = errors()[0]
    name = max(getattr(parameter, "opts", ()) or (parameter.name,), key=len)
    value, kind = str(first["input"]), str(first["type"])
    subject = f"{name} {value}" if value.strip() else f"{name} '{value}'"
    if value.strip().lower() in _NO_NUMBERS:
        return f"{subject} is no number"
    if kind in _LIMITS:
        key, words = _LIMITS[kind]
        limit = first["ctx"][key]
        return f"{subject} is {words.format(f'{limit:g}' if isinstance(limit, float) else limit)}"
    if kind in _KINDS:
        return f"{subject} is {_KINDS[kind]}"
    if kind == "value_error":  # typer's own: not one of the choices
        return f"{name}: {str(first['msg']).removeprefix('Value error, ')}"
    return None
