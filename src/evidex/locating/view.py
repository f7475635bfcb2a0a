"""What is looked at: a file by windows, one picture, or a row of a gallery, as it is rendered for a gallery."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evidex.data.discover import printable
from evidex.data.footprints import Point, Window
from evidex.data.images import decode_image, shows_nothing
from evidex.data.items import ReadOptions, opens_whole
from evidex.data.rendering import TileOptions
from evidex.data.tiles import Raster, open_raster
from evidex.errors import NotFoundError
from evidex.retrieval.unchanged import check_unchanged

if TYPE_CHECKING:
    from PIL.Image import Image

    from evidex.retrieval.rows import Row

_LONGEST_WINDOW = 2048


@dataclass(frozen=True)
class View:
    """A rectangle of pixels that can be looked at piece by piece; windows count from its upper left corner."""

    name: str
    width: int
    height: int
    render: Callable[[Window, int], Image | None]
    """A window as a picture, at most so many pixels a side; None where there is nothing to see."""
    crs: Any = None
    """rasterio's; None where the view lies nowhere."""
    transform: Any = None
    place: Callable[[float, float], Point | None] = lambda _x, _y: None
    """Longitude and latitude of a pixel; None where it lies nowhere."""

    @property
    def whole(self) -> Window:
        return Window(0, 0, self.width, self.height)

    def picture(self, window: Window) -> Image | None:
        """The window as it would be encoded for a gallery."""
        return self.render(window, _LONGEST_WINDOW)


def view_of_picture(picture: Image, name: str, corners: Sequence[Sequence[float]] | None = None) -> View:
    """Of a picture that is decoded already; its ``corners`` on earth run from the upper left to the right and round."""

    def render(window: Window, longest: int) -> Image | None:
        shown = picture.crop((window.x, window.y, window.x + window.width, window.y + window.height))
        if shows_nothing(shown):
            return None
        if longest < max(shown.size):
            shown.thumbnail((longest, longest))
        return shown

    def place(x: float, y: float) -> Point | None:
        return None if corners is None else _between(corners, x / picture.width, y / picture.height)

    return View(name, picture.width, picture.height, render, place=place)


@contextmanager
def view_of_file(path: str, options: ReadOptions | None = None) -> Iterator[View]:
    """Of all of ``path``. TIFF and JPEG 2000 are read window by window, others are decoded whole within the limit."""
    options = options or ReadOptions()
    if opens_whole(path, options):
        yield view_of_picture(decode_image(path, max_pixels=options.max_pixels, name=printable(path)), printable(path))
        return
    with open_raster(path, options.tiles) as raster:
        yield _view_of_raster(raster, raster.whole, raster.label)


@contextmanager
def view_of_row(row: Row) -> Iterator[View]:
    """Of what a row of a gallery shows, rendered as it was."""
    if row.kind == "text":
        raise NotFoundError(f"'{row.id}' is a text and has no picture")
    check_unchanged(row)
    if row.rendering is None:
        yield view_of_picture(decode_image(row.path, name=row.name), row.name)
        return
    with open_raster(row.path, TileOptions(), row.rendering) as raster:
        yield _view_of_raster(raster, row.window or raster.whole, row.name)


def _view_of_raster(raster: Raster, part: Window, name: str) -> View:
    from rasterio.windows import Window as RasterWindow
    from rasterio.windows import transform as moved

    def placed(window: Window) -> Window:
        return Window(part.x + window.x, part.y + window.y, window.width, window.height)

    def render(window: Window, longest: int) -> Image | None:
        return raster.render(placed(window), longest=longest)

    def place(x: float, y: float) -> Point | None:
        there = raster.footprint(placed(Window(int(x), int(y), 1, 1)))
        return None if there is None else there.center

    crs, transform = raster.placement
    transform = moved(RasterWindow(part.x, part.y, part.width, part.height), transform)
    return View(name, part.width, part.height, render, crs, transform, place)


def _between(corners: Sequence[Sequence[float]], right: float, down: float) -> Point:
    """A point inside a picture, from its corners; near enough for what is as small as a row of a gallery."""
    (ax, ay), (bx, by), (cx, cy), (dx, dy) = corners
    top = ax + (bx - ax) * right, ay + (by - ay) * right
    bottom = dx + (cx - dx) * right, dy + (cy - dy) * right
    return top[0] + (bottom[0] - top[0]) * down, top[1] + (bottom[1] - top[1]) * down
