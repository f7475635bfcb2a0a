"""Rasters by windows: cover, bands, stretch, nodata, places on earth."""

from __future__ import annotations

import math
import os
import shutil
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from evidex.data.acquired import parse_time
from evidex.data.footprints import Bounds, Footprint, Window, footprint_of
from evidex.data.items import ReadOptions, read_items, read_window
from evidex.data.rendering import TileOptions
from evidex.data.tiles import open_raster, tile_windows
from evidex.errors import ImageError, InputError
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


def test_footprint_of_a_wide_raster_follows_the_curve_of_its_edges() -> None:
    from rasterio.crs import CRS
    from rasterio.transform import from_origin
    from rasterio.warp import transform as warp

    crs, place = CRS.from_epsg(3035), from_origin(2_500_000, 5_400_000, 1000, 1000)
    window = Window(0, 0, 4000, 3000)
    footprint = footprint_of(crs, place, window)
    assert footprint is not None
    assert len(footprint.ring) > 4
    lon, lat = warp(crs, "EPSG:4326", [2_500_000 + 777_000], [5_400_000])
    x, y = np.array([*footprint.ring, footprint.ring[0]]).T
    distances = []
    for ax, ay, bx, by in zip(x, y, x[1:], y[1:], strict=False):
        along = np.clip(
            ((lon[0] - ax) * (bx - ax) + (lat[0] - ay) * (by - ay)) / ((bx - ax) ** 2 + (by - ay) ** 2), 0, 1
        )
        distances.append(math.hypot(ax + along * (bx - ax) - lon[0], ay + along * (by - ay) - lat[0]))
    assert min(distances) * 111_320 < 1000  # less than a pixel


def test_footprint_across_the_date_line_is_cut_in_two() -> None:
    from rasterio.crs import CRS
    from rasterio.transform import from_origin

    footprint = footprint_of(CRS.from_epsg(32601), from_origin(150_000, 1_000_000, 100, 100), Window(0, 0, 1000, 1000))
    assert footprint is not None
    assert footprint.bounds.west > footprint.bounds.east
    shape = footprint.geojson()
    assert shape["type"] == "MultiPolygon"
    longitudes = [point[0] for polygon in shape["coordinates"] for point in polygon[0]]
    assert all(-180 <= longitude <= 180 for longitude in longitudes)
    assert Footprint.from_flat(footprint.flat()) == footprint


def test_a_box_is_a_box() -> None:
    ring = ((10.0, 50.0), (11.0, 50.0), (11.0, 51.0), (10.0, 51.0))
    assert Footprint(ring).bounds == Bounds(10.0, 50.0, 11.0, 51.0)
    assert Footprint(ring).geojson()["coordinates"][0][0] == Footprint(ring).geojson()["coordinates"][0][-1]


def test_a_16_bit_scene_is_stretched_by_percentiles_of_valid_pixels(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    values = rng.integers(1000, 3001, (1, 1200, 1200)).astype(np.uint16)
    values[0, :, :700] = 0
    values[0, 0, 800] = 65535  # one hot pixel must not darken the rest
    path = write_raster(tmp_path / "deep.tif", values, nodata=0)
    items = list(read_items(str(path), ReadOptions()))
    empty = [item for item in items if item.picture is None]
    full = [item for item in items if item.picture is not None]
    assert empty
    assert full
    assert all(item.window is not None and item.window.x + item.window.width <= 700 + 0.05 * 512 + 1 for item in empty)
    rendering = full[0].rendering
    assert rendering is not None
    assert rendering.low[0] == pytest.approx(1040, abs=15)
    assert rendering.high[0] == pytest.approx(2960, abs=15)
    last = full[-1]
    assert last.window is not None
    assert last.picture is not None
    window = last.window
    part = values[0, window.y : window.y + 512, window.x : window.x + 512].astype(np.float64)
    expected = np.clip((part - rendering.low[0]) * 255 / (rendering.high[0] - rendering.low[0]), 0, 255)
    expected[part == 0] = 0
    assert np.abs(np.asarray(last.picture)[..., 1] - expected).max() <= 0.51


def test_a_small_georeferenced_tiff_is_one_item_with_its_place_and_time(tmp_path: Path) -> None:
    values = np.random.default_rng(3).integers(0, 255, (3, 100, 120), dtype=np.uint8)
    path = write_raster(tmp_path / "small.tif", values, tiled=False)
    import rasterio

    with rasterio.open(path, "r+") as target:
        target.update_tags(TIFFTAG_DATETIME="2021:05:06 07:08:09")
    (item,) = read_items(str(path), ReadOptions())
    assert item.window is None
    assert item.footprint is not None
    assert item.crs == "EPSG:32633"
    assert item.acquired is not None
    assert item.acquired.isoformat() == "2021-05-06T07:08:09+00:00"
    assert item.picture is not None
    assert np.array_equal(np.asarray(item.picture), values.transpose(1, 2, 0))


def test_bands_are_chosen_by_name_by_colour_or_refused(tmp_path: Path) -> None:
    values = np.random.default_rng(4).integers(1, 255, (13, 64, 64), dtype=np.uint8)
    path = write_raster(tmp_path / "sentinel.tif", values, tiled=False)
    with pytest.raises(ImageError, match="13 bands; choose three with --bands"):
        list(read_items(str(path), ReadOptions()))
    (item,) = read_items(str(path), ReadOptions(TileOptions(bands=(4, 3, 2))))
    assert item.picture is not None
    assert np.array_equal(np.asarray(item.picture), values[[3, 2, 1]].transpose(1, 2, 0))
    with pytest.raises(ImageError, match="not 14"):
        list(read_items(str(path), ReadOptions(TileOptions(bands=(14, 3, 2)))))


def test_a_tile_is_shown_again_as_it_was_encoded(tmp_path: Path) -> None:
    values = np.random.default_rng(5).integers(200, 9000, (3, 1100, 1100)).astype(np.uint16)
    path = write_raster(tmp_path / "scene.tif", values)
    item = list(read_items(str(path), ReadOptions()))[-1]
    assert item.picture is not None
    again = read_window(str(path), item.window, item.rendering, 512)
    assert np.array_equal(np.asarray(again), np.asarray(item.picture))


def test_a_scene_whose_name_is_no_utf8_is_read_like_any_other(tmp_path: Path) -> None:
    values = np.random.default_rng(0).integers(0, 256, (3, 64, 64)).astype(np.uint8)
    plain = write_raster(tmp_path / "plain.tif", values)
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/lat\xefin.tif")
    shutil.copy(plain, odd)
    (expected,), (got,) = (list(read_items(str(path), ReadOptions())) for path in (plain, odd))
    assert got.picture is not None
    assert expected.picture is not None
    assert got.picture.tobytes() == expected.picture.tobytes()
    assert got.footprint == expected.footprint
    with pytest.raises(ImageError, match=r"lat\\xefout.tif' does not exist"):
        list(read_items(odd.replace("in.tif", "out.tif"), ReadOptions()))


def test_known_windows_are_left_out(tmp_path: Path) -> None:
    values = np.random.default_rng(6).integers(0, 255, (3, 1100, 1100), dtype=np.uint8)
    path = str(write_raster(tmp_path / "scene.tif", values))
    places = [item.window for item in read_items(path, ReadOptions())]
    known = frozenset((window.x, window.y) for window in places[:-1] if window is not None)
    rest = [item.window for item in read_items(path, ReadOptions(), known) if item.picture is not None]
    assert rest == places[-1:]


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


def test_a_virtual_raster_in_disguise_reads_nothing(tmp_path: Path) -> None:
    write_raster(tmp_path / "secret.tif", np.full((1, 64, 64), 9, np.uint8), tiled=False)
    (tmp_path / "evil.tif").write_text(
        '<VRTDataset rasterXSize="64" rasterYSize="64"><VRTRasterBand dataType="Byte" band="1"><SimpleSource>'
        '<SourceFilename relativeToVRT="1">secret.tif</SourceFilename></SimpleSource></VRTRasterBand></VRTDataset>'
    )
    with pytest.raises(ImageError):
        list(read_items(str(tmp_path / "evil.tif"), ReadOptions()))


def test_a_plain_tiff_comes_out_as_pillow_shows_it(tmp_path: Path) -> None:
    picture = Image.fromarray(np.random.default_rng(7).integers(0, 255, (40, 60, 3), dtype=np.uint8))
    for mode in ("RGB", "L", "CMYK", "P", "RGBA"):
        path = tmp_path / f"{mode}.tif"
        picture.convert(mode).save(path)
        (item,) = read_items(str(path), ReadOptions())
        assert item.picture is not None
        assert item.picture.mode == "RGB"
        assert item.footprint is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2020:01:02 03:04:05", "2020-01-02T03:04:05+00:00"),
        ("2020-01-02T03:04:05.678Z", "2020-01-02T03:04:05.678000+00:00"),
        ("2020-01-02", "2020-01-02T00:00:00+00:00"),
        ("20200102", "2020-01-02T00:00:00+00:00"),
        ("2020-01-02T03:04:05+02:00", "2020-01-02T01:04:05+00:00"),
        ("0000:00:00 00:00:00", None),
        ("    ", None),
        ("2020-13-40", None),
        ("yesterday", None),
    ],
)
def test_times_as_files_write_them(text: str, expected: str | None) -> None:
    time = parse_time(text)
    assert (None if time is None else time.isoformat()) == expected


@pytest.mark.parametrize(
    "options", [{"tile": 4}, {"tile": 64, "overlap": 64}, {"bands": (1, 2)}, {"bands": (0, 1, 2)}, {"stretch": (98, 2)}]
)
def test_senseless_options_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(InputError):
        TileOptions(**options)  # type: ignore[arg-type]
