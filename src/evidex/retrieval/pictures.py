"""The picture of a row: from its file, or for one on another machine the small one that the gallery keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from evidex.data.items import read_window
from evidex.data.remote import is_remote
from evidex.errors import NotFoundError
from evidex.retrieval.rows import Row
from evidex.retrieval.unchanged import check_unchanged

if TYPE_CHECKING:
    from PIL.Image import Image


def picture_of_row(row: Row, longest: int, kept: Callable[[], bytes | None]) -> Image:
    """As it was encoded, at most ``longest`` pixels a side, if the file is still what was indexed.

    Nothing is fetched from other machines.
    """
    if row.kind == "text":
        raise NotFoundError(f"'{row.id}' is a text and has no picture")
    if not is_remote(row.path):
        check_unchanged(row)
        return read_window(row.path, row.window, row.rendering, longest)
    content = kept()
    if content is None:
        raise NotFoundError(f"'{row.name}' is on another machine and no picture of it is kept here; open its address")
    from evidex.data.images import decode_image

    picture = decode_image(content, name=row.name)
    picture.thumbnail((longest, longest))
    return picture
