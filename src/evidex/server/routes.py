"""The addresses of the interface."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import JSONResponse, Response

from evidex.errors import InputError
from evidex.retrieval.composing import asked
from evidex.retrieval.retriever import Search
from evidex.server.asking import parts_of
from evidex.server.failures import problem
from evidex.server.limits import within
from evidex.server.metrics import CONTENT_TYPE
from evidex.server.questions import Upload, check_text, check_top, read_question
from evidex.server.schemas import (
    AnswerOut,
    BatchOut,
    BatchRequest,
    GalleryOut,
    ImageRequest,
    ItemOut,
    NeighboursOut,
    Problem,
    SearchRequest,
    StatusOut,
    answer_out,
    hit_out,
    item_out,
)
from evidex.server.service import Service
from evidex.server.thumbnails import Size

ItemId = Annotated[str, Path(description="From a hit.", max_length=200, examples=["0f3c5a7d9be1426488aa0b12"])]


def problems(*codes: int) -> dict[int | str, dict[str, Any]]:
    """What can go wrong at an address, for the schema: these and what can everywhere."""
    return {code: {"model": Problem} for code in (400, 401, 429, *codes)}


def _search_body() -> dict[str, Any]:
    form = ImageRequest.model_json_schema()
    picture = {"type": "string", "format": "binary"}
    form["properties"] = {"image": {"type": "array", "items": picture, "maxItems": 8}, **form["properties"]}
    form["required"] = ["image"]
    json_schema = SearchRequest.model_json_schema()
    examples = {str(number): {"value": value} for number, value in enumerate(json_schema.pop("examples"), start=1)}
    content = {
        "application/json": {"schema": json_schema, "examples": examples},
        "multipart/form-data": {"schema": form},
    }
    return {"requestBody": {"required": True, "content": content}}


def search_router(service: Service) -> APIRouter:
    router = APIRouter(tags=["search"])
    settings = service.settings

    @router.post(
        "/search",
        response_model=AnswerOut,
        responses=problems(404, 408, 413, 415, 422, 503, 504),
        openapi_extra=_search_body(),
        summary="Search by text, by picture, or for the like of an item",
    )
    async def search(request: Request) -> Response:
        question = await read_question(request)
        what = question.request if isinstance(question, Upload) else question
        top, filters = check_top(what.top, settings), what.filters()
        text, likes = await parts_of(question, service)
        said = {} if isinstance(question, Upload) else {"right": question.right, "wrong": question.wrong}
        direction, query = asked(text, [like for like, _ in likes], what.without, **said)
        key = Search(direction, top, filters, what.among, what.refine, what.copies)
        (answer,) = await service.search(key, [query])
        names = [name for _, name in likes] + ([what.text] if likes and what.text else [])
        shown = " + ".join(names) + "".join(f" -{word}" for word in what.without) if likes else None
        return _json(answer_out(answer, shown))

    @router.post(
        "/search/batch",
        response_model=BatchOut,
        responses=problems(408, 413, 422, 503, 504),
        summary="Answer several texts in one scan",
    )
    async def search_batch(request: BatchRequest) -> Response:
        if len(request.texts) > settings.largest_batch:
            raise InputError(f"{len(request.texts)} texts are too many; send at most {settings.largest_batch}")
        texts = [check_text(text) for text in request.texts]
        top = check_top(request.top, settings)
        key = Search("text", top, request.filters(), request.among, request.refine, request.copies)
        answers = await service.search(key, texts)
        return _json(BatchOut(answers=[answer_out(answer) for answer in answers]))

    return router


def item_router(service: Service) -> APIRouter:
    router = APIRouter(prefix="/items/{item_id}", tags=["items"])
    seconds = service.settings.request_seconds

    @router.get("", response_model=ItemOut, responses=problems(404, 422, 503, 504), summary="One row of the gallery")
    async def item(item_id: ItemId) -> Response:
        return _json(item_out(await within(seconds, service.pictures.run(lambda: service.items.row(item_id)))))

    @router.get(
        "/neighbours",
        response_model=NeighboursOut,
        responses=problems(404, 422, 503, 504),
        summary="The rows most like this one",
    )
    async def neighbours(item_id: ItemId, top: Annotated[int, Query(json_schema_extra={"minimum": 1})] = 8) -> Response:
        hits = await service.neighbours(item_id, check_top(top, service.settings))
        return _json(NeighboursOut(id=item_id, hits=[hit_out(hit) for hit in hits]))

    picture_responses: dict[int | str, dict[str, Any]] = {
        200: {"content": {"image/jpeg": {"schema": {"type": "string", "format": "binary"}}}},
        304: {"description": "The client has it already."},
        **problems(404, 413, 415, 422, 503, 504),
    }

    async def _picture(request: Request, item_id: str, size: Size) -> Response:
        row = await within(seconds, service.pictures.run(lambda: service.items.row(item_id)))
        headers = {"ETag": service.thumbnails.tag(row, size), "Cache-Control": "private, max-age=3600"}
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        content = await within(seconds, service.pictures.run(lambda: service.thumbnails.jpeg(row, size)))
        return Response(content, media_type="image/jpeg", headers=headers)

    @router.get("/thumbnail", response_class=Response, responses=picture_responses, summary="Its picture, small")
    async def thumbnail(request: Request, item_id: ItemId) -> Response:
        return await _picture(request, item_id, "thumbnail")

    @router.get("/preview", response_class=Response, responses=picture_responses, summary="Its picture, larger")
    async def preview(request: Request, item_id: ItemId) -> Response:
        return await _picture(request, item_id, "preview")

    return router


def about_router(service: Service) -> APIRouter:
    router = APIRouter(tags=["server"])

    @router.get("/gallery", response_model=GalleryOut, responses=problems(503, 504), summary="What is in the gallery")
    async def gallery() -> Response:
        return _json(await service.overview())

    @router.get("/health", response_model=StatusOut, summary="Whether the process is alive")
    async def health() -> Response:
        return _json(StatusOut(status="alive"))

    @router.get(
        "/ready", response_model=StatusOut, responses={503: {"model": Problem}}, summary="Whether it can answer"
    )
    async def ready() -> Response:
        return _json(StatusOut(status="ready")) if service.trouble is None else problem(503, service.trouble)

    @router.get(
        "/metrics",
        response_class=Response,
        responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, 401: {"model": Problem}},
        summary="Counters for Prometheus",
    )
    async def metrics() -> Response:
        return Response(service.metrics.text(), headers={"Content-Type": CONTENT_TYPE})

    return router


def _json(model: Any) -> JSONResponse:
    return JSONResponse(model.model_dump(mode="json"))
