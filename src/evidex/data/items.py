"""What of a file goes into a gallery: one picture, or the tiles of a scene."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from evidex.data.acquired import taken_at
from evidex.data.discover import printable
from evidex.data.footprints import Footprint, Window
from evidex.data.images import (
    ENOUGH_TO_ENCODE,
    MAX_PIXELS,
    check_shown,
    decode_image,
    holds_more,
    open_picture,
    upright_size,
)
from evidex.data.remote import MOST_PICTURE, fetch, is_remote
from evidex.data.rendering import Rendering, TileOptions
from evidex.data.tiles import Raster, open_raster, raster_driver
from evidex.errors import BandsError, BlankImageError, ImageError, ImageTooLargeError, InputError

if TYPE_CHECKING:
    from PIL.Image import Image

_WHOLE_SCENE = 2048
_MOST_PIXELS = 10**12


@dataclass(frozen=True)
class ReadOptions:
    """Limits and choices for reading files."""

    tiles: TileOptions = field(default_factory=TileOptions)
    max_pixels: int = MAX_PIXELS
    remote_side: int = 512
    """Longest side in pixels at which scenes on other machines are read, from the overview that has it."""

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
    first_only: bool = False
    """Whether the file holds more pictures, which are left out."""
    problem: str | None = None
    """Why this window could not be read."""


@dataclass(frozen=True)
class Piece:
    """What of a file is wanted, where that is not all: a window, or the whole picture, shown as it was before."""

    window: Window | None
    rendering: Rendering | None


def read_items(
    path: str,
    options: ReadOptions,
    known: frozenset[tuple[int, int]] = frozenset(),
    pieces: Sequence[Piece] = (),
) -> Iterator[Item]:
    """Yield the items of ``path`` one at a time; windows that begin at a place in ``known`` are left out.

    The content decides how a file is read, not its name; of ``pieces``, if there are some, only those are read. A scene
    on another machine is one item, read from an overview. Raises ImageError if it cannot be read.
    """
    if pieces and raster_driver(path) is not None:
        yield from _pieces(path, options, known, pieces)
        return
    if is_remote(path):
        yield _remote(path, options)
        return
    if raster_driver(path) is None:
        yield _plain(path, options, None)
        return
    with ExitStack() as stack:
        try:
            raster = stack.enter_context(open_raster(path, options.tiles))
        except ImageError as error:
            if not _is_for_pillow(path, options, error):
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
        picture = decode_image(path, at_least=longest)
        picture.thumbnail((longest, longest))
        return picture
    with open_raster(path, TileOptions(), rendering) as raster:
        shown = raster.render(window or raster.whole, longest=longest)
    if shown is None:
        raise ImageError(f"'{printable(path)}' has nothing to show there; it has changed since it was indexed")
    return shown


def read_whole(path: str, options: ReadOptions | None = None) -> Image:
    """One picture of all of ``path``, rendered as for a gallery but never cut into tiles: to search with.

    BlankImageError where it shows nothing.
    """
    options = options or ReadOptions()
    name = printable(path)
    if raster_driver(path) is not None:
        try:
            with open_raster(path, options.tiles) as raster:
                if raster.is_large or raster.is_georeferenced or not raster.is_plain:
                    picture = raster.render(raster.whole, longest=_WHOLE_SCENE)
                    if picture is None:
                        raise BlankImageError(_no_data(raster))
                    return check_shown(picture, f"'{name}'")
        except ImageError as error:
            if not _is_for_pillow(path, options, error):
                raise
    picture = decode_image(path, max_pixels=options.max_pixels, name=name, at_least=ENOUGH_TO_ENCODE)
    return check_shown(picture, f"'{name}'")


def opens_whole(path: str, options: ReadOptions) -> bool:
    """Whether ``path`` is decoded whole, as one picture: no raster, or a small plain one without a place."""
    if raster_driver(path) is None:
        return True
    try:
        with open_raster(path, options.tiles) as raster:
            return not (raster.is_large or raster.is_georeferenced) and raster.is_plain
    except ImageError as error:
        if not _is_for_pillow(path, options, error):
            raise
        return True


def read_example(path: str, ways: Sequence[TileOptions] = (), max_pixels: int = MAX_PIXELS) -> Image:
    """`read_whole` in the first of these ways that fits the file, else as if nothing were known of it."""
    for tiles in ways:
        try:
            return read_whole(path, ReadOptions(tiles, max_pixels))
        except ImageTooLargeError:
            raise
        except ImageError:
            continue
    return read_whole(path, ReadOptions(max_pixels=max_pixels))


def _remote(path: str, options: ReadOptions) -> Item:
    if raster_driver(path) is None:
        content = fetch(path, ImageError, most=MOST_PICTURE)
        return _opened(content, path, options)
    with open_raster(path, replace(options.tiles, tile=0)) as raster:
        return _from_overview(raster, raster.whole, None, options, 1)


def _from_overview(raster: Raster, window: Window, stored: Window | None, options: ReadOptions, windows: int) -> Item:
    """A part of a remote scene, no larger than it is looked at; without overviews all of it would have to be sent."""
    side = options.remote_side
    if max(window.width, window.height) > 2 * side and not raster.has_overviews:
        raise ImageError(
            f"'{raster.label}' has no overviews, so all of it would have to be sent; "
            "make it a COG ('gdal_translate -of COG'), or copy it here"
        )
    picture = raster.render(window, longest=side)
    if picture is None:
        raise BlankImageError(_no_data(raster))
    return _item(raster, window, stored, picture, windows)


def _pieces(
    path: str, options: ReadOptions, known: frozenset[tuple[int, int]], pieces: Sequence[Piece]
) -> Iterator[Item]:
    """Some windows of a scene, each shown as it was."""
    for piece in pieces:
        place = piece.window
        if place is not None and (place.x, place.y) in known:
            yield Item(None, place.width, place.height, window=place, windows=len(pieces))
            continue
        with open_raster(path, options.tiles, piece.rendering) as raster:
            window = place or raster.whole
            if window.x + window.width > raster.width or window.y + window.height > raster.height:
                raise ImageError(f"'{raster.label}' has no window {window.x},{window.y}; it has changed since")
            if is_remote(path):
                yield _from_overview(raster, window, place, options, len(pieces))
                continue
            picture = raster.render(window, longest=_WHOLE_SCENE if place is None else None)
            if picture is None:
                raise ImageError(f"'{raster.label}' has nothing to show there; it has changed since")
            yield _item(raster, window, place, picture, len(pieces))


def _plain(path: str, options: ReadOptions, raster: Raster | None) -> Item:
    item = _opened(path, printable(path), options)
    if raster is None:
        return item
    return replace(item, acquired=item.acquired or raster.acquired, first_only=raster.has_pages)


def _opened(source: bytes | str, name: str, options: ReadOptions) -> Item:
    """What Pillow opens, as one item; a large JPEG is decoded no larger than encoders need it."""
    picture = decode_image(source, max_pixels=options.max_pixels, name=name, at_least=ENOUGH_TO_ENCODE)
    with open_picture(source, name) as opened:
        width, height = upright_size(opened)
        return Item(picture, width, height, acquired=taken_at(opened), first_only=holds_more(opened))


def _whole(raster: Raster) -> Item:
    picture = raster.render(raster.whole, longest=_WHOLE_SCENE)
    if picture is None:
        raise BlankImageError(_no_data(raster))
    return _item(raster, raster.whole, None, picture, 1)


def _no_data(raster: Raster) -> str:
    return f"'{raster.label}' holds no data: all its pixels are empty or alike"


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
        first_only=raster.has_pages,
        windows=windows,
    )


def _is_for_pillow(path: str, options: ReadOptions, refusal: ImageError) -> bool:
    """Whether Pillow may read what GDAL did not: it knows some TIFFs that GDAL refuses. Of what is blank it would make
    a grey picture, of unknown bands one that nobody asked for. What neither opens keeps the first one's reason.
    """
    if options.tiles.bands is not None or isinstance(refusal, (BlankImageError, BandsError)):
        return False
    try:
        with open_picture(path) as opened:
            return opened.size[0] > 0
    except ImageError:
        return False
