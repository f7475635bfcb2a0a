"""Places and times for rendered scenes, so that tools for real GeoTIFF files have something to read."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

EPSG = 32630
"""UTM zone 30 north; the scenes lie in the hinterland of Valencia."""

_EAST, _NORTH = (640_000.0, 720_000.0), (4_300_000.0, 4_420_000.0)
_FIRST_DAY, _DAYS = datetime.datetime(2019, 1, 1), 5 * 365
_MORNING = 10 * 60  # minutes; imaging satellites pass in the late morning


@dataclass(frozen=True)
class Placement:
    """Where the upper left corner of a scene lies, how large a pixel is, and when the scene was taken."""

    east: float
    north: float
    pixel_metres: float
    taken: datetime.datetime

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> Placement:
        pixel = float(rng.choice((0.5, 0.6, 0.8, 1.0, 1.5, 2.0)))
        east, north = (round(float(rng.uniform(*span)) / pixel) * pixel for span in (_EAST, _NORTH))
        minutes = _MORNING + int(rng.integers(0, 90))
        taken = _FIRST_DAY + datetime.timedelta(days=int(rng.integers(0, _DAYS)), minutes=minutes)
        return cls(east=east, north=north, pixel_metres=pixel, taken=taken)


def write_geotiff(path: Path, image: NDArray[np.uint8], placement: Placement) -> None:
    """Write ``image`` (height, width, 3) as a north-up GeoTIFF."""
    import rasterio

    height, width, bands = image.shape
    pixel = placement.pixel_metres
    with rasterio.open(
        path,
        "w",
        driver="GTiff",
        height=height,
        width=width,
        count=bands,
        dtype="uint8",
        crs=f"EPSG:{EPSG}",
        transform=rasterio.Affine(pixel, 0.0, placement.east, 0.0, -pixel, placement.north),
        photometric="RGB",
        compress="deflate",
    ) as target:
        target.write(np.ascontiguousarray(image.transpose(2, 0, 1)))
        target.update_tags(TIFFTAG_DATETIME=placement.taken.strftime("%Y:%m:%d %H:%M:%S"))
