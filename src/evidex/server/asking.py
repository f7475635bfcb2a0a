"""What a question is made of, ready to be asked: its words, and its examples as pictures."""

from __future__ import annotations

from typing import Any

from evidex.server.limits import within
from evidex.server.questions import Upload, check_text, decode_upload
from evidex.server.schemas import SearchRequest
from evidex.server.service import Service

_LIKE_PIXELS = 1024


async def parts_of(question: SearchRequest | Upload, service: Service) -> tuple[str | None, list[tuple[Any, str]]]:
    """The words, and the examples with what to call them."""
    settings = service.settings
    if isinstance(question, Upload):
        upload = question
        decoded = service.pictures.run(lambda: _decoded(upload, service))
        pictures = await within(settings.request_seconds, decoded)
        names = [name for name, _ in upload.pictures]
        return _text(upload.request.text), list(zip(pictures, names, strict=True))
    if question.item is None:
        return _text(question.text), []
    like, name = await _like(question.item, service)
    if name is not None:
        return _text(question.text), [(like, name)]
    return (like if question.text is None else check_text(f"{like} {question.text}")), []


def _decoded(upload: Upload, service: Service) -> list[Any]:
    ways = service.items.ways()
    return [decode_upload(name, content, service.settings, ways) for name, content in upload.pictures]


async def _like(row_id: str, service: Service) -> tuple[Any, str | None]:
    """The picture of an item and its name; or its text."""
    seconds = service.settings.request_seconds
    row = await within(seconds, service.pictures.run(lambda: service.items.row(row_id)))
    if row.kind == "text":
        return check_text(row.caption or row.name), None
    like = service.pictures.run(lambda: service.items.picture(row, _LIKE_PIXELS))
    return await within(seconds, like), row.name


def _text(text: str | None) -> str | None:
    return None if text is None else check_text(text)
