"""POST /locate: where in an item of the gallery something is. Only what the gallery holds can be looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fastapi import APIRouter
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from evidex.data.discover import printable
from evidex.errors import InputError
from evidex.locating.asked import ask
from evidex.locating.locate import locate
from evidex.locating.located import Located
from evidex.locating.view import View, view_of_picture
from evidex.retrieval.hits import Hit
from evidex.server.limits import within
from evidex.server.locate_schemas import LocatedOut, LocateForm, LocateRequest, locate_body, located_out
from evidex.server.questions import Upload, check_text, decode_upload
from evidex.server.routes import problems
from evidex.server.schemas import ImageRequest
from evidex.server.service import Service

if TYPE_CHECKING:
    from PIL.Image import Image

    from evidex.encoders.model import Model

_LONGEST = 768
"""Pixels a side of the picture that is looked at, so that one request takes about a second of one core."""
_LONGEST_EXAMPLE = 2048


@dataclass(frozen=True)
class _Wanted:
    """What to look for in which item: words, an item of the gallery, or a picture that came along."""

    item: str
    text: str | None = None
    like: str | None = None
    name: str = ""
    content: bytes | None = None


def locate_router(service: Service) -> APIRouter:
    router = APIRouter(tags=["search"])
    seconds = service.settings.request_seconds

    @router.post(
        "/locate",
        response_model=LocatedOut,
        responses=problems(404, 408, 413, 415, 422, 503, 504),
        openapi_extra=locate_body(),
        summary="Where in an item something is: a map of likeness and its peaks",
    )
    async def locate_in_item(request: Request) -> Response:
        wanted = await _read(request)
        if wanted.text is not None:
            check_text(wanted.text)
        model = await within(seconds, service.model())
        found = await within(seconds, service.maps.run(lambda: _located(service, model, wanted)))
        return JSONResponse(located_out(found).model_dump(mode="json"))

    return router


async def _read(request: Request) -> _Wanted:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json":
        asked = LocateRequest.model_validate_json(await request.body())
        if (asked.text is None) == (asked.like is None):
            raise InputError("give either a text to look for, or in 'like' an item to look for the like of")
        return _Wanted(asked.item, asked.text, asked.like)
    if kind == "multipart/form-data":
        return await _form(request)
    raise HTTPException(
        415,
        f"the content type is {printable(kind[:60]) or 'nothing'}; send application/json, "
        "or multipart/form-data with an image",
    )


async def _form(request: Request) -> _Wanted:
    async with request.form(max_files=1, max_fields=4, max_part_size=4096) as form:
        pictures = [value for value in form.getlist("image") if isinstance(value, UploadFile)]
        if len(pictures) != 1:
            raise InputError("the form holds no picture; send a file in the field 'image'")
        fields = LocateForm.model_validate({name: value for name, value in form.items() if name != "image"})
        content = await pictures[0].read()
        name = printable((pictures[0].filename or "").replace("\\", "/").rpartition("/")[2][:80])
    return _Wanted(fields.item, name=name or "the picture", content=content)


def _located(service: Service, model: Model, wanted: _Wanted) -> Located:
    view = _view(service, wanted.item)
    if wanted.text is not None:
        return locate(model, view, ask(model, wanted.text, "text"))
    query, name = _example(service, wanted)
    if isinstance(query, str):
        return locate(model, view, ask(model, query, "text"))
    return locate(model, view, ask(model, query, "image", name))


def _example(service: Service, wanted: _Wanted) -> tuple[Image | str, str | None]:
    """The picture to look for the like of and its name; or a text, where that is what the item is."""
    settings = service.settings
    if wanted.like is None:
        upload = Upload(wanted.name, wanted.content or b"", ImageRequest())
        return decode_upload(upload, settings, service.items.ways()), wanted.name
    row = service.items.row(wanted.like)
    if row.kind == "text":
        return check_text(row.caption or row.name), None
    return service.items.picture(row, _LONGEST_EXAMPLE), row.name


def _view(service: Service, item: str) -> View:
    """The item's picture as it was encoded, placed where its corners are."""
    row = service.items.row(item)
    return view_of_picture(service.items.picture(row, _LONGEST), row.name, Hit.of(row, 1, 0.0).corners)
