"""Rows that lie on another server: fetched from there and handed on."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from starlette.responses import JSONResponse, Response

from evidex.data.images import decode_image
from evidex.errors import PartError
from evidex.retrieval.parts.part import Part
from evidex.server.questions import check_text
from evidex.server.schemas import ItemOut
from evidex.server.settings import Settings
from evidex.server.thumbnails import Size

if TYPE_CHECKING:
    from PIL.Image import Image


def forward_item(part: Part, own_id: str, item_id: str) -> Response:
    """The row's description, under the id that this server gave out for it."""
    return JSONResponse(fetch_item(part, own_id).model_copy(update={"id": item_id}).model_dump(mode="json"))


def forward_picture(part: Part, own_id: str, size: Size, tag: str | None) -> Response:
    reply = part.get(f"{_address(own_id)}/{size}", tag)
    kept = {name: value for name, value in reply.headers.items() if name in ("etag", "cache-control")}
    if reply.status == 304:
        return Response(status_code=304, headers=kept)
    return Response(reply.content, media_type="image/jpeg", headers=kept)


def fetch_like(part: Part, own_id: str, settings: Settings) -> tuple[str | Image, str | None]:
    """What to search for where the like of the row is wanted: its text, or its picture and name."""
    row = fetch_item(part, own_id)
    if row.kind == "text":
        return check_text(row.caption or row.path), None
    picture = part.get(f"{_address(own_id)}/preview").content
    return decode_image(picture, name=row.path, max_pixels=settings.max_pixels), row.path


def fetch_item(part: Part, own_id: str) -> ItemOut:
    """The row's description, under its own id there."""
    try:
        return ItemOut.model_validate_json(part.get(_address(own_id)).content)
    except ValueError:
        raise PartError(f"part {part.address} answers what cannot be read; update both sides") from None


def _address(own_id: str) -> str:
    return f"/items/{quote(own_id, safe='')}"
