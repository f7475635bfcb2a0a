"""Every failure as JSON with one line: ``{"error": "value, cause, remedy"}``."""

from __future__ import annotations

import logging

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from evidex.errors import EvidexError, outcome

_LOG = logging.getLogger("evidex.server")
_LONGEST = 500


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
    message = str(first["msg"])
    if first["type"] == "json_invalid":
        return f"the body is no JSON ({first.get('ctx', {}).get('error', message)})"
    if first["type"] == "extra_forbidden":
        return f"'{place}' is unknown; see /openapi.json for what can be sent"
    message = message.removeprefix("Value error, ").replace("Input should be", "it should be")
    message = message[:1].lower() + message[1:]
    if first["type"] == "missing":
        return f"'{place}' is missing; see /openapi.json for what can be sent"
    value = first.get("input")
    if place and isinstance(value, str | int | float):
        return f"{place} is {str(value)[:60]!r}; {message}"
    return f"{place}: {message}" if place else message


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
