"""Rasters by windows: every pixel is covered, each tile has its place, and no block is too large to read."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from evidex.data.items import ReadOptions, read_items
from evidex.data.rendering import TileOptions
from evidex.data.tiles import open_raster, tile_windows
from evidex.errors import ImageError
from tests.retrieval.archive import write_raster


@pytest.mark.parametrize(
    ("width", "height", "tile", "overlap"), [(1000, 700, 256, 32), (256, 256, 256, 0), (77, 513, 64, 63), (5, 9, 16, 3)]
)
def test_tiles_cover_every_pixel_and_overlap_enough(width: int, height: int, tile: int, overlap: int) -> None:
    windows = tile_windows(width, height, tile, overlap)
    covered = np.zeros((height, width), int)
    for window in windows:
        assert (window.width, window.height) == (min(tile, width), min(tile, height))
        assert window.x >= 0
        assert window.x + window.width <= width
        assert window.y + window.height <= height
        covered[window.y : window.y + window.height, window.x : window.x + window.width] += 1
    assert covered.min() >= 1
    assert len(set(windows)) == len(windows)
    starts = sorted({window.x for window in windows})
    assert all(b - a <= tile - overlap for a, b in pairwise(starts))


def _utm_to_wgs84(easting: float, northing: float, zone: int) -> tuple[float, float]:
    """Inverse transverse Mercator on WGS84 by Krüger's series, to well below a millimetre; no projection library."""
    a, f, k0 = 6378137.0, 1 / 298.257223563, 0.9996
    n = f / (2 - f)
    mean_radius = a / (1 + n) * (1 + n**2 / 4 + n**4 / 64)
    beta = (
        n / 2 - 2 * n**2 / 3 + 37 * n**3 / 96 - n**4 / 360,
        n**2 / 48 + n**3 / 15 - 437 * n**4 / 1440,
        17 * n**3 / 480 - 37 * n**4 / 840,
        4397 * n**4 / 161280,
    )
    xi, eta = northing / (k0 * mean_radius), (easting - 500_000.0) / (k0 * mean_radius)
    xi_ = xi - sum(b * math.sin(2 * j * xi) * math.cosh(2 * j * eta) for j, b in enumerate(beta, 1))
    eta_ = eta - sum(b * math.cos(2 * j * xi) * math.sinh(2 * j * eta) for j, b in enumerate(beta, 1))
    chi = math.asin(math.sin(xi_) / math.cosh(eta_))
    e = math.sqrt(f * (2 - f))
    latitude = chi
    for _ in range(20):  # the conformal latitude's inverse by fixed point
        s = math.sin(latitude)
        latitude = 2 * math.atan(math.tan(math.pi / 4 + chi / 2) * ((1 + e * s) / (1 - e * s)) ** (e / 2)) - math.pi / 2
    longitude = math.radians(zone * 6 - 183) + math.atan2(math.sinh(eta_), math.cos(xi_))
    return math.degrees(longitude), math.degrees(latitude)


def test_tile_footprints_are_right_to_a_small_part_of_a_pixel(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    path = write_raster(tmp_path / "scene.tif", rng.integers(0, 255, (3, 1300, 1500), dtype=np.uint8))
    with open_raster(path, TileOptions(tile=512, overlap=64)) as raster:
        for window in raster.windows():
            footprint = raster.footprint(window)
            assert footprint is not None
            corners = [
                (window.x, window.y),
                (window.x, window.y + window.height),
                (window.x + window.width, window.y + window.height),
                (window.x + window.width, window.y),
            ]
            expected = [_utm_to_wgs84(380_000 + 10 * x, 5_820_000 - 10 * y, 33) for x, y in corners]
            assert len(footprint.ring) == 4
            for (lon, lat), (true_lon, true_lat) in zip(footprint.ring, expected, strict=True):
                east_m = (lon - true_lon) * 111_320 * math.cos(math.radians(lat))
                north_m = (lat - true_lat) * 111_320
                assert math.hypot(east_m, north_m) < 0.01  # a thousandth of a 10 m pixel


def test_one_giant_block_is_refused_in_words(tmp_path: Path) -> None:
    import rasterio

    path = tmp_path / "bomb.tif"
    with rasterio.open(
        path, "w", driver="GTiff", width=40_000, height=40_000, count=1, dtype="uint8",
        compress="deflate", tiled=True, blockxsize=40_000, blockysize=40_000, SPARSE_OK=True,
    ):  # fmt: skip
        pass
    with pytest.raises(ImageError, match="TILED=YES"):
        list(read_items(str(path), ReadOptions()))
