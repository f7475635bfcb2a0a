"""What of a file goes into a gallery: one picture, or the tiles of a scene."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from evidex.data.acquired import taken_at
from evidex.data.discover import printable
from evidex.data.footprints import Footprint, Window
from evidex.data.images import MAX_PIXELS, decode_image, open_picture
from evidex.data.rendering import Rendering, TileOptions
from evidex.data.tiles import Raster, open_raster, raster_driver
from evidex.errors import ImageError, InputError

if TYPE_CHECKING:
    from PIL.Image import Image

_WHOLE_SCENE = 2048
_MOST_PIXELS = 10**12


@dataclass(frozen=True)
class ReadOptions:
    """Limits and choices for reading files."""

    tiles: TileOptions = field(default_factory=TileOptions)
    max_pixels: int = MAX_PIXELS

    def __post_init__(self) -> None:
        if not 1 <= self.max_pixels <= _MOST_PIXELS:
            raise InputError(f"max_pixels is {self.max_pixels}; give 1 to {_MOST_PIXELS}")


@dataclass(frozen=True)
class Item:
    """A picture with what its file tells about it; ``picture`` is None where a window shows nothing."""

    picture: Image | None
    width: int
    height: int
    window: Window | None = None
    footprint: Footprint | None = None
    crs: str | None = None
    acquired: datetime | None = None
    rendering: Rendering | None = None
    windows: int = 1
    """How many windows the file is cut into, empty ones included."""
    problem: str | None = None
    """Why this window could not be read."""


def read_items(path: str, options: ReadOptions, known: frozenset[tuple[int, int]] = frozenset()) -> Iterator[Item]:
    """Yield the items of ``path`` one at a time; windows that begin at a place in ``known`` are left out.

    The content decides how a file is read, not its name. Raises ImageError if it cannot be read.
    """
    if raster_driver(path) is None:
        yield _plain(path, options, None)
        return
    with ExitStack() as stack:
        try:
            raster = stack.enter_context(open_raster(path, options.tiles))
        except ImageError:
            # Pillow knows some TIFFs that GDAL refuses.
            if options.tiles.bands is not None or not _pillow_opens(path):
                raise
            yield _plain(path, options, None)
            return
        if raster.is_large:
            yield from _tiles(raster, known)
        elif raster.is_georeferenced or not raster.is_plain:
            yield _whole(raster)
        else:
            yield _plain(path, options, raster)


def read_window(path: str, window: Window | None, rendering: Rendering | None, longest: int) -> Image:
    """The picture of one item again, as it was encoded, at most ``longest`` pixels a side."""
    if rendering is None:
        picture = decode_image(path)
        picture.thumbnail((longest, longest))
        return picture
    with open_raster(path, TileOptions(), rendering) as raster:
        shown = raster.render(window or raster.whole, longest=longest)
    if shown is None:
        raise ImageError(f"'{printable(path)}' has nothing to show there; it has changed since it was indexed")
    return shown


def read_whole(path: str, options: ReadOptions | None = None) -> Image:
    """One picture of all of ``path``, rendered as for a gallery but never cut into tiles: to search with."""
    options = options or ReadOptions()
    name = printable(path)
    if raster_driver(path) is not None:
        try:
            with open_raster(path, options.tiles) as raster:
                if raster.is_large or raster.is_georeferenced or not raster.is_plain:
                    picture = _whole(raster).picture
                    if picture is not None:
                        return picture
        except ImageError:
            if options.tiles.bands is not None or not _pillow_opens(path):
                raise
    return decode_image(path, max_pixels=options.max_pixels, name=name)


def opens_whole(path: str, options: ReadOptions) -> bool:
    """Whether ``path`` is decoded whole, as one picture: no raster, or a small plain one without a place."""
    if raster_driver(path) is None:
        return True
    try:
        with open_raster(path, options.tiles) as raster:
            return not (raster.is_large or raster.is_georeferenced) and raster.is_plain
    except ImageError:
        if options.tiles.bands is not None or not _pillow_opens(path):
            raise
        return True


def _plain(path: str, options: ReadOptions, raster: Raster | None) -> Item:
    picture = decode_image(path, max_pixels=options.max_pixels, name=printable(path))
    with open_picture(path, printable(path)) as opened:
        acquired = taken_at(opened)
    if acquired is None and raster is not None:
        acquired = raster.acquired
    return Item(picture, picture.width, picture.height, acquired=acquired)


def _whole(raster: Raster) -> Item:
    picture = raster.render(raster.whole, longest=_WHOLE_SCENE)
    if picture is None:
        raise ImageError(f"'{raster.label}' holds no data: all its pixels are empty or alike")
    return _item(raster, raster.whole, None, picture, 1)


def _tiles(raster: Raster, known: frozenset[tuple[int, int]]) -> Iterator[Item]:
    windows = raster.windows()
    for window in windows:
        if (window.x, window.y) in known:
            yield Item(None, window.width, window.height, window=window, windows=len(windows))
            continue
        try:
            picture = raster.render(window)
        except ImageError as error:
            yield Item(None, window.width, window.height, window=window, windows=len(windows), problem=str(error))
            continue
        yield _item(raster, window, window, picture, len(windows))


def _item(raster: Raster, window: Window, stored: Window | None, picture: Image | None, windows: int) -> Item:
    return Item(
        picture,
        window.width,
        window.height,
        window=stored,
        footprint=raster.footprint(window) if picture is not None else None,
        crs=raster.crs,
        acquired=raster.acquired,
        rendering=raster.rendering,
        windows=windows,
    )


def _pillow_opens(path: str) -> bool:
    """Whether Pillow can tell the size: a file that neither reader opens keeps the first one's reason."""
    try:
        with open_picture(path) as opened:
            return opened.size[0] > 0
    except ImageError:
        return False
