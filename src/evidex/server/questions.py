"""From the body of a request to a query: JSON with a text or an item, or a form with a picture."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request

from evidex.data.discover import printable
from evidex.data.images import ENOUGH_TO_ENCODE, check_shown, decode_image
from evidex.data.items import read_example
from evidex.data.rendering import Rendering, TileOptions
from evidex.data.tiles import driver_of, open_raster
from evidex.errors import ImageError, ImageTooLargeError, InputError
from evidex.retrieval.queries import check_query
from evidex.server.schemas import ImageRequest, SearchRequest
from evidex.server.settings import Settings

if TYPE_CHECKING:
    from PIL.Image import Image

_LONGEST = 2048
_FORM_FIELDS = 24
_MOST_PICTURES = 8


@dataclass(frozen=True)
class Upload:
    """Pictures as they arrived, each with its name, and what came along."""

    pictures: tuple[tuple[str, bytes], ...]
    request: ImageRequest


async def read_question(request: Request) -> SearchRequest | Upload:
    """Either form, by the content type."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json":
        return SearchRequest.model_validate_json(await request.body())
    if kind == "multipart/form-data":
        return await _upload(request)
    shown = printable(kind[:60]) or "nothing"
    raise HTTPException(
        415, f"the content type is {shown}; send application/json, or multipart/form-data with an image"
    )


async def _upload(request: Request) -> Upload:
    async with request.form(max_files=_MOST_PICTURES, max_fields=_FORM_FIELDS, max_part_size=4096) as form:
        pictures = [value for value in form.getlist("image") if isinstance(value, UploadFile)]
        if not pictures or len(pictures) != len(form.getlist("image")):
            raise InputError("the form holds no picture; send a file in the field 'image'")
        fields: dict[str, Any] = {
            name: value for name, value in form.items() if name not in ("image", "without") and value != ""
        }
        fields["without"] = [value for value in form.getlist("without") if value != ""]
        arrived = tuple([(_name(picture), await picture.read()) for picture in pictures])
    return Upload(arrived, ImageRequest.model_validate(fields))


def _name(picture: UploadFile) -> str:
    name = printable((picture.filename or "").replace("\\", "/").rpartition("/")[2][:80])
    return name or "the picture"


def decode_upload(name: str, content: bytes, settings: Settings, ways: Sequence[TileOptions] = ()) -> Image:
    """A picture, no larger than it is looked at; a scene of many bands in one of the ways the gallery's are read."""
    if not content:
        raise ImageError(f"'{name}' is empty; send the file's bytes")
    if driver_of(content[:16]) is not None:
        return _decode_scene(name, content, settings, ways)
    picture = decode_image(content, max_pixels=settings.max_pixels, name=name, at_least=ENOUGH_TO_ENCODE)
    # Waiting pictures take memory; scenes are indexed no larger than this either.
    picture.thumbnail((_LONGEST, _LONGEST))
    # Here, before it is encoded together with the questions of others.
    return check_shown(picture, f"'{name}'")


def _decode_scene(name: str, content: bytes, settings: Settings, ways: Sequence[TileOptions]) -> Image:
    """As a file with that content would be read; GDAL is given a file, which it reads by parts."""
    with tempfile.NamedTemporaryFile(prefix="evidex-") as file:
        file.write(content)
        file.flush()
        try:
            _check_size(file.name, settings.max_pixels)
            picture = read_example(file.name, ways, settings.max_pixels)
        except ImageError as error:
            raise type(error)(str(error).replace(file.name, name)) from None
    picture.thumbnail((_LONGEST, _LONGEST))
    return picture


def _check_size(path: str, max_pixels: int) -> None:
    """Refuse a scene that takes long to read, however few bytes it has, before any pixel of it is decoded."""
    try:
        with open_raster(path, TileOptions(), Rendering((1,))) as raster:
            width, height = raster.width, raster.height
    except ImageTooLargeError:
        raise
    except ImageError:
        return  # Pillow may know it all the same, and then looks at its size
    if width * height > max_pixels:
        raise ImageTooLargeError(f"'{path}' has {width}×{height} pixels, over {max_pixels}")


def check_text(text: str) -> str:
    """``text`` if it can be asked."""
    check_query(text, "text")
    return text


def check_top(top: int, settings: Settings) -> int:
    if not 1 <= top <= settings.max_top:
        raise InputError(f"top is {str(top)[:60]}; give 1 to {settings.max_top}")
    return top
