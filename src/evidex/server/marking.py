"""Marks on hits over HTTP: read for a question, made one at a time.

Marks are the only thing that a client can change. A page of another site must not make any: it can send forms and plain
text to this machine, but no JSON without being asked whether it may, which this server never allows; and what a browser
sends for another site says so in its Origin.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from evidex.errors import NotFoundError
from evidex.retrieval.marks import Asked, Mark, Marks
from evidex.server.limits import within
from evidex.server.schemas import Problem
from evidex.server.service import Service

_Says = Literal["right", "wrong"]
_Text = Annotated[str | None, Field(max_length=4000, description="The words of the question.")]
_Item = Annotated[str | None, Field(max_length=200, description="The item whose like was looked for.")]


class MarkRequest(BaseModel):
    """What is said of one hit for one question."""

    model_config = ConfigDict(
        extra="forbid",
        cache_strings="keys",
        json_schema_extra={"examples": [{"text": "a river", "id": "0f3c5a7d9be1426488aa0b12", "says": "right"}]},
    )
    text: _Text = None
    item: _Item = None
    id: Annotated[str, Field(max_length=200, description="Of the hit.")]
    says: Annotated[_Says | None, Field(description="null takes back what was said before.")]


class MarkOut(BaseModel):
    id: str
    says: _Says


class MarksOut(BaseModel):
    """The marks for one question, of rows that are still what was looked at."""

    marks: list[MarkOut]


def mark_router(service: Service) -> APIRouter:
    router = APIRouter(prefix="/marks", tags=["marks"])
    place, seconds = service.settings.gallery, service.settings.request_seconds
    marks = Marks(place) if isinstance(place, Path) else None  # an object store keeps none

    def held(asked: Asked) -> MarksOut:
        counting = [mark for mark in ([] if marks is None else marks.of(asked)) if _counts(mark)]
        return MarksOut(marks=[MarkOut(id=mark.id, says=mark.says) for mark in counting if mark.says is not None])

    def _counts(mark: Mark) -> bool:
        try:
            return service.items.row(mark.id).sha256 == mark.sha256
        except NotFoundError:
            return False

    def added(request: MarkRequest) -> MarksOut:
        asked = Asked(request.text, request.item)
        assert marks is not None
        marks.add(Mark(asked, request.id, service.items.row(request.id).sha256, request.says))
        return held(asked)

    @router.get(
        "",
        response_model=MarksOut,
        responses={code: {"model": Problem} for code in (400, 401, 422, 429, 503, 504)},
        summary="What was said of hits for a question",
    )
    async def read(
        text: Annotated[str | None, Query(max_length=4000)] = None,
        item: Annotated[str | None, Query(max_length=200)] = None,
    ) -> Response:
        asked = Asked(text, item)
        return _json(await within(seconds, service.pictures.run(lambda: held(asked))))

    @router.post(
        "",
        response_model=MarksOut,
        responses={code: {"model": Problem} for code in (400, 401, 403, 404, 408, 413, 415, 422, 429, 503, 504, 507)},
        summary="Say of a hit that it is right or wrong",
    )
    async def make(request: Request, mark: MarkRequest) -> Response:
        check_own(request)
        if not service.settings.takes_marks:
            remedy = "its gallery is in an object store" if marks is None else "start it with --marks"
            raise HTTPException(403, f"this server keeps no marks; {remedy}")
        return _json(await within(seconds, service.pictures.run(lambda: added(mark))))

    return router


def check_own(request: Request) -> None:
    """Refuse what a page of another site may have sent."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, "the content type must be application/json")
    origin = request.headers.get("origin")
    if origin is not None and urlsplit(origin).netloc.lower() != request.headers.get("host", "").lower():
        raise HTTPException(403, "this comes from a page of another site, which may not change anything here")


def _json(model: BaseModel) -> JSONResponse:
    return JSONResponse(model.model_dump(mode="json"))
