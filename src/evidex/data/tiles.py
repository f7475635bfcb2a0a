"""Rasters of any size, read by windows, each with its place on earth."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evidex.data.acquired import acquired_at
from evidex.data.discover import printable
from evidex.data.footprints import Footprint, Window, footprint_of
from evidex.data.remote import GDAL_OPTIONS, first_bytes, is_remote
from evidex.data.rendering import Rendering, TileOptions, alpha_is_a_band, choose_rendering, is_flat, to_bytes
from evidex.documents import open_regular
from evidex.errors import ImageError, ImageTooLargeError

if TYPE_CHECKING:
    from PIL.Image import Image

# Only formats with pixels of their own: a text file named .tif must not make GDAL read other files or addresses.
_DRIVERS = {
    "GTiff": (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"),
    "JP2OpenJPEG": (b"\0\0\0\x0cjP  ", b"\xffO\xffQ"),
}
_BLOCK_CACHE = 128 << 20
_LARGEST_BLOCK = 512 << 20
_MOST_TILES = 1_000_000
_LEAST_VALID = 0.05


def tile_windows(width: int, height: int, tile: int, overlap: int) -> list[Window]:
    """Cover a raster row by row with tiles that overlap by at least ``overlap``.

    The last tile of a row or column ends at the edge, so every tile of a large raster has its full size.
    """
    xs, ys = starts(width, tile, overlap), starts(height, tile, overlap)
    return [Window(x, y, min(tile, width), min(tile, height)) for y in ys for x in xs]


@dataclass(frozen=True)
class Raster:
    """An open raster; made by `open_raster`."""

    source: Any
    label: str
    options: TileOptions
    rendering: Rendering
    crs: str | None
    acquired: datetime | None
    _transform: Any = field(repr=False)
    _crs: Any = field(repr=False)
    alpha_is_a_band: bool = False

    @property
    def width(self) -> int:
        return int(self.source.width)

    @property
    def height(self) -> int:
        return int(self.source.height)

    @property
    def is_georeferenced(self) -> bool:
        return self._crs is not None

    @property
    def is_large(self) -> bool:
        return self.options.tile > 0 and max(self.width, self.height) > 2 * self.options.tile

    @property
    def is_plain(self) -> bool:
        """Whether an ordinary decoder shows it as well: 8-bit, one to four channels, of which none is wrongly alpha."""
        eight_bits = self.source.dtypes[0] == "uint8" and self.source.count <= 4
        return eight_bits and self.options.bands is None and not self.alpha_is_a_band

    @property
    def has_overviews(self) -> bool:
        return bool(self.source.overviews(self.rendering.bands[0]))

    @cached_property
    def has_pages(self) -> bool:
        """Whether the file holds more pictures than this one: its overviews, masks and thumbnails are none."""
        return any(map(self._is_a_page, self.source.subdatasets[1:]))

    def _is_a_page(self, name: str) -> bool:
        import rasterio

        try:
            with _gdal_errors(self.label), rasterio.open(name, driver=self.source.driver) as other:
                return bool(other.width >= self.width and other.height >= self.height)
        except ImageError:
            return False  # nothing to miss

    @property
    def whole(self) -> Window:
        return Window(0, 0, self.width, self.height)

    def windows(self) -> list[Window]:
        count_x, count_y = (len(starts(side, self.options.tile, self.options.overlap)) for side in self.source.shape)
        if count_x * count_y > _MOST_TILES:
            raise ImageTooLargeError(
                f"'{self.label}' would give {count_x * count_y} tiles of {self.options.tile}; choose a larger --tile"
            )
        return tile_windows(self.width, self.height, self.options.tile, self.options.overlap)

    @property
    def placement(self) -> tuple[Any, Any]:
        """rasterio's CRS, None where it has none, and the transform of its pixels."""
        return self._crs, self._transform

    def footprint(self, window: Window) -> Footprint | None:
        return footprint_of(self._crs, self._transform, window)

    def render(self, window: Window, *, longest: int | None = None) -> Image | None:
        """The window in 8-bit RGB, at most ``longest`` pixels a side; None if there is nothing to see in it."""
        from PIL import Image as PillowImage
        from rasterio.windows import Window as RasterWindow

        place = RasterWindow(window.x, window.y, window.width, window.height)
        scale = 1.0 if longest is None else min(1.0, longest / max(window.width, window.height))
        shape = (max(1, round(window.height * scale)), max(1, round(window.width * scale)))
        bands = self.rendering.bands
        with _gdal_errors(self.label):
            values = self.source.read(bands, window=place, out_shape=(len(bands), *shape))
            valid = (
                self._valid(values)
                if self.alpha_is_a_band
                else self.source.dataset_mask(window=place, out_shape=shape) > 0
            )
            palette = self._palette()
        if np.iscomplexobj(values):
            values = np.abs(values)
        if values.dtype.kind == "f":
            valid &= np.isfinite(values).all(axis=0)
        if valid.mean() < _LEAST_VALID or is_flat(values, valid):
            return None
        pixels = palette[values[0]] if palette is not None else to_bytes(values, self.rendering).transpose(1, 2, 0)
        if pixels.shape[2] == 1:
            pixels = np.repeat(pixels, 3, axis=2)
        return PillowImage.fromarray(np.where(valid[..., None], pixels, np.uint8(0)), "RGB")

    def _valid(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Where the file does not say it, as its alpha is none: everywhere but in the value that means no data."""
        nothing = self.source.nodata
        return np.ones(values.shape[1:], bool) if nothing is None else (values != nothing).any(axis=0)

    def _palette(self) -> NDArray[np.uint8] | None:
        if len(self.rendering.bands) != 1 or self.source.dtypes[0] != "uint8":
            return None
        try:
            colours = self.source.colormap(self.rendering.bands[0])
        except ValueError:
            return None
        table = np.zeros((256, 3), np.uint8)
        for value, colour in colours.items():
            if 0 <= value < 256:
                table[value] = colour[:3]
        return table


def raster_driver(path: str | Path) -> str | None:
    """The GDAL driver for the content of ``path``, whatever its name; None if it is no raster format."""
    label = printable(str(path))
    if is_remote(str(path)):
        head = _remote_head(str(path))
    else:
        with open_regular(path, ImageError, label) as stream:
            try:
                head = stream.read(16)
            except OSError as error:
                raise ImageError(f"'{label}' cannot be read ({(error.strerror or str(error)).lower()})") from None
    return driver_of(head)


def driver_of(head: bytes) -> str | None:
    """The GDAL driver for content that begins so; None if it is no raster format."""
    return next((driver for driver, magic in _DRIVERS.items() if head.startswith(magic)), None)


@lru_cache(maxsize=64)
def _remote_head(address: str) -> bytes:
    """Asked for once, though several steps on the way to a picture look at it."""
    return first_bytes(address, 16, ImageError)


@contextmanager
def open_raster(path: str | Path, options: TileOptions, rendering: Rendering | None = None) -> Iterator[Raster]:
    """Open ``path`` for reading by windows; never more than a few blocks are in memory.

    ``rendering`` shows it as before; without one bands are chosen and percentiles estimated.
    """
    import rasterio

    label = printable(str(path))
    remote = is_remote(str(path))
    driver = raster_driver(path)
    if driver is None:
        raise ImageError(f"'{label}' is neither TIFF nor JPEG 2000; only those are read by windows")
    with (
        warnings.catch_warnings(),
        rasterio.Env(GDAL_CACHEMAX=_BLOCK_CACHE, GDAL_PAM_ENABLED="NO", **(GDAL_OPTIONS if remote else {})),
        _under_a_plain_name(str(path)) as place,
    ):
        warnings.simplefilter("ignore")
        with _gdal_errors(label):
            source = rasterio.open(place, driver=driver)
        with source:
            _check_blocks(source, label)
            with _gdal_errors(label):
                crs, transform = _placement(source)
                bands = alpha_is_a_band(source)  # once, as it may be read over a network
                chosen = rendering or choose_rendering(source, options, label, false_alpha=bands)
                tags = {**source.tags(), **source.tags(ns="IMAGERY")}
            yield Raster(source, label, options, chosen, _crs_name(crs), acquired_at(tags), transform, crs, bands)


@contextmanager
def _under_a_plain_name(path: str) -> Iterator[str]:
    """``path`` as GDAL is told it: an address to be read by range, a link where the name is no UTF-8."""
    if is_remote(path):
        yield f"/vsicurl/{path}"
        return
    try:
        path.encode()
    except UnicodeEncodeError:
        with tempfile.TemporaryDirectory(prefix="evidex-") as folder:
            link = os.path.join(folder, "scene")  # noqa: PTH118 (as the path, which may hold bytes that are no UTF-8)
            os.symlink(os.path.abspath(path), link)  # noqa: PTH211, PTH100
            yield link
    else:
        yield path


@contextmanager
def _gdal_errors(label: str) -> Iterator[None]:
    from rasterio._err import CPLE_BaseError
    from rasterio.errors import RasterioError

    try:
        yield
    except (CPLE_BaseError, RasterioError, MemoryError, OSError) as error:
        reason = str(error.__cause__ or error).replace("\n", " ")
        raise ImageError(f"'{label}' cannot be read ({printable(reason)}); replace or remove the file") from None


def _check_blocks(source: Any, label: str) -> None:
    height, width = source.block_shapes[0]
    channels = source.count if source.interleaving is not None and source.interleaving.name == "pixel" else 1
    if height * width * channels * np.dtype(source.dtypes[0]).itemsize > _LARGEST_BLOCK:
        raise ImageTooLargeError(
            f"'{label}' is stored in blocks of {width}×{height} pixels, too large to read by windows; "
            "rewrite it with 'gdal_translate -co TILED=YES'"
        )


def _placement(source: Any) -> tuple[Any, Any]:
    """CRS and transform, from ground control points where there is no transform; (None, …) if it lies nowhere."""
    if source.crs is not None and not source.transform.is_identity:
        return source.crs, source.transform
    points, crs = source.gcps
    if crs is not None and len(points) >= 3:
        from rasterio.transform import from_gcps

        return crs, from_gcps(points)
    return None, source.transform


def _crs_name(crs: Any) -> str | None:
    from rasterio._err import CPLE_BaseError
    from rasterio.errors import CRSError

    if crs is None:
        return None
    try:
        code = crs.to_epsg()
        return f"EPSG:{code}" if code is not None else str(crs.to_wkt())
    except (CPLE_BaseError, CRSError):
        return "unknown"


def starts(side: int, tile: int, overlap: int) -> list[int]:
    """Where tiles along one side begin; the last one ends at the edge."""
    if side <= tile:
        return [0]
    last = side - tile
    return [*range(0, last, tile - overlap), last]
