"""Every failure as JSON with one line: ``{"error": "value, cause, remedy"}``."""

from __future__ import annotations

import json
import logging

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from evidex.errors import EvidexError, outcome

_LOG = logging.getLogger("evidex.server")
_LONGEST = 500
_LONGEST_VALUE = 60
_EXAMPLE = '{"text": "a river"}'
_WHOLE, _NUMBER, _TEXT, _YES_OR_NO = "give a whole number", "give a number", "give a text", "give true or false"
_REMEDIES = {
    "int_type": _WHOLE, "int_parsing": _WHOLE, "int_parsing_size": _WHOLE, "int_from_float": _WHOLE,
    "float_type": _NUMBER, "float_parsing": _NUMBER, "finite_number": _NUMBER,
    "string_type": _TEXT, "bool_type": _YES_OR_NO, "bool_parsing": _YES_OR_NO,
    "greater_than_equal": "give {ge:g} or more", "less_than_equal": "give {le:g} or less",
    "too_short": "give at least {min_length}, here are {actual_length}",
    "too_long": "give at most {max_length}, here are {actual_length}",
    "string_too_long": "give at most {max_length} characters",
    "list_type": "give a list", "literal_error": "give {expected}",
}  # fmt: skip
"""What to send instead, by pydantic's names of faults; for others its own words must do."""


def problem(status: int, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    line = " ".join(message.split()).encode("utf-8", "replace").decode()
    extra = dict(headers or {})
    if status == 429:
        extra.setdefault("Retry-After", "1")
    return JSONResponse({"error": line[:_LONGEST]}, status_code=status, headers=extra)


def problem_of(error: EvidexError, headers: dict[str, str] | None = None) -> JSONResponse:
    """With the status that `evidex.errors` lists for it."""
    return problem(outcome(error).http_status, str(error), headers)


def validation_line(error: ValidationError | RequestValidationError) -> str:
    """The first thing that is wrong with a request, in a line."""
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"] if part not in ("body", "query", "path"))
    kind, told = str(first["type"]), first.get("ctx", {})
    if kind == "json_invalid":
        return f"the body is no JSON ({told.get('error', first['msg'])}); send an object such as {_EXAMPLE}"
    if kind == "extra_forbidden":
        return f"'{place}' is unknown; see /openapi.json for what can be sent"
    if kind == "missing":
        return f"'{place}' is missing; see /openapi.json for what can be sent"
    value = _shown(first.get("input"))
    if not place:
        return f"the body is {value}; send an object such as {_EXAMPLE}"
    remedy = _REMEDIES.get(kind, "").format(**told) or str(first["msg"]).removeprefix("Value error, ")
    return f"{place} is {value}; {remedy[:1].lower()}{remedy[1:]}"


def _shown(value: object) -> str:
    """A value as JSON writes it, the beginning of a long one; what no JSON can hold as Python does."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=repr)
    except (ValueError, RecursionError):
        text = type(value).__name__
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


def install(app: FastAPI) -> None:
    """Let ``app`` answer every exception in this form."""

    async def ours(_: Request, error: Exception) -> Response:
        assert isinstance(error, EvidexError)
        return problem_of(error)

    async def http(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        headers = dict(error.headers) if error.headers else None
        words = {404: "there is no such address; see /openapi.json", 405: "this address does not take that method"}
        known = error.detail in ("Not Found", "Method Not Allowed")
        return problem(error.status_code, words[error.status_code] if known else str(error.detail), headers)

    async def invalid(_: Request, error: Exception) -> Response:
        assert isinstance(error, (ValidationError, RequestValidationError))
        return problem(422, validation_line(error))

    async def unexpected(request: Request, error: Exception) -> Response:
        _LOG.error("%s %s failed", request.method, request.url.path, exc_info=error)
        return problem(500, "the server failed on this request; its log says why")

    app.add_exception_handler(EvidexError, ours)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(ValidationError, invalid)
    app.add_exception_handler(Exception, unexpected)
