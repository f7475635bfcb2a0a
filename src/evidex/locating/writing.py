"""A map of likeness as a file: GeoTIFF, PNG over the scene, or GeoJSON of its peaks; the suffix says which."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evidex.data.footprints import Window
from evidex.errors import InputError
from evidex.files import check_target, replacing, telling_full_disk, write_atomic, write_json_atomic
from evidex.locating.heat import Heat
from evidex.locating.located import Located, collection
from evidex.locating.view import View
from evidex.overwriting import MARK, as_png

if TYPE_CHECKING:
    from PIL.Image import Image

RASTERS = (".tif", ".tiff")
PICTURES = (".png",)
TABLES = (".geojson", ".json")
_BLOCK = 512
_LONGEST_PICTURE = 1600
_STRONGEST = 0.7
"""Of the colours over the scene: what lies under the best place can still be seen."""
_COLOURS = ((0.0, (40, 20, 90)), (0.35, (170, 40, 110)), (0.7, (245, 125, 35)), (1.0, (255, 235, 100)))


def check_output(path: Path) -> None:
    """Refuse what could not be written, before anything is looked at."""
    if path.suffix.lower() not in (*RASTERS, *PICTURES, *TABLES):
        raise InputError(f"'{path}' is neither .tif, .png nor .geojson; name the map one of them")
    check_target(path, "json" if path.suffix.lower() in TABLES else "picture")


def write_located(path: Path, located: Located, view: View) -> None:
    """Write ``path``, wholly or not at all."""
    check_output(path)
    suffix = path.suffix.lower()
    if suffix in RASTERS:
        write_geotiff(path, located, view)
    elif suffix in PICTURES:
        write_atomic(path, as_png(overlay(located, view)))
    else:
        write_peaks(path, [located])


def write_peaks(path: Path, located: Sequence[Located]) -> None:
    """The peaks of several scenes as one GeoJSON file."""
    write_json_atomic(path, collection(list(located)))


def write_geotiff(path: Path, located: Located, view: View) -> None:
    """Float32 in the scene's own pixels, CRS and transform, a block at a time; NaN where there was nothing to see."""
    import rasterio

    heat = located.heat
    profile = {
        "driver": "GTiff",
        "dtype": "float32",
        "count": 1,
        "width": heat.width,
        "height": heat.height,
        "nodata": float("nan"),
        "crs": view.crs,
        "transform": view.transform,
        "tiled": True,
        "blockxsize": _BLOCK,
        "blockysize": _BLOCK,
        "compress": "deflate",
        "predictor": 3,
        "BIGTIFF": "IF_SAFER",
    }
    with (
        telling_full_disk(path),
        replacing(path) as place,
        warnings.catch_warnings(),
        rasterio.Env(GDAL_PAM_ENABLED="NO"),
    ):
        warnings.simplefilter("ignore")  # a scene without a place is no mistake
        with rasterio.open(place, "w", **{key: value for key, value in profile.items() if value is not None}) as target:
            target.update_tags(TIFFTAG_SOFTWARE=MARK)
            target.update_tags(query=located.asked.shown, finding=located.finding.value, scene=located.scene)
            target.set_band_description(1, f"likeness to {located.asked.thing}")
            for window in _blocks(heat):
                target.write(heat.block(window), 1, window=_raster_window(window))


def overlay(located: Located, view: View) -> Image:
    """The scene, no larger than a screen, under the colours of the map and with rings around the peaks."""
    from PIL import Image as PillowImage
    from PIL import ImageDraw

    shown = view.render(view.whole, _LONGEST_PICTURE)
    scene = PillowImage.new("RGB", _fitted(view), (128, 128, 128)) if shown is None else shown.convert("RGB")
    colours = coloured(located.heat, scene.size)
    picture = PillowImage.alpha_composite(scene.convert("RGBA"), colours).convert("RGB")
    draw = ImageDraw.Draw(picture)
    scale = scene.width / view.width
    for peak in located.peaks:
        x, y, radius = peak.spot.x * scale, peak.spot.y * scale, max(5, scene.width // 80)
        for width, colour in ((4, "black"), (2, "white")):
            draw.ellipse((x - radius, y - radius, x + radius, y + radius), outline=colour, width=width)
    return picture


def coloured(heat: Heat, size: tuple[int, int]) -> Image:
    """The map as a picture of ``size`` (RGBA), clear where nothing is; the best place has the strongest colour."""
    from PIL import Image as PillowImage
    from PIL.Image import Resampling

    values = PillowImage.fromarray(np.nan_to_num(heat.values, nan=0.0).astype(np.float32))
    box = (0.0, 0.0, heat.width / heat.cell, heat.height / heat.cell)
    drawn = np.asarray(values.resize(size, Resampling.BILINEAR, box=box)) / max(heat.peak, 1e-6)
    return PillowImage.fromarray(_rgba(np.clip(drawn, 0.0, 1.0)))


def _rgba(share: NDArray[np.float32]) -> NDArray[np.uint8]:
    stops = [stop for stop, _ in _COLOURS]
    bands = [np.interp(share, stops, [colour[band] for _, colour in _COLOURS]) for band in range(3)]
    return np.rint(np.stack([*bands, 255 * _STRONGEST * share], axis=-1)).astype(np.uint8)


def _fitted(view: View) -> tuple[int, int]:
    scale = min(1.0, _LONGEST_PICTURE / max(view.width, view.height))
    return max(1, round(view.width * scale)), max(1, round(view.height * scale))


def _blocks(heat: Heat) -> list[Window]:
    return [
        Window(x, y, min(_BLOCK, heat.width - x), min(_BLOCK, heat.height - y))
        for y in range(0, heat.height, _BLOCK)
        for x in range(0, heat.width, _BLOCK)
    ]


def _raster_window(window: Window) -> object:
    from rasterio.windows import Window as RasterWindow

    return RasterWindow(window.x, window.y, window.width, window.height)
