"""Presets of sensors: which bands, which values are black and white, and what does not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio

from evidex.data.items import ReadOptions, read_example, read_items, read_whole
from evidex.data.rendering import Rendering, TileOptions
from evidex.data.sensors import SENSORS, Told, named_bands, sensor_of_platform
from evidex.data.tiles import open_raster
from evidex.errors import ImageError, InputError
from tests.retrieval.archive import write_raster

SIDE = 64


def _scene(place: Path, bands: int, dtype: str = "uint16", top: float = 4000, **profile: Any) -> Path:
    """A smooth picture whose bands all differ; band b is b+1 times as steep as the first."""
    slope = np.linspace(0, 1, SIDE)[None, :, None] * np.linspace(0.2, 1, SIDE)[None, None, :]
    values = slope * np.linspace(0.3, 1, bands)[:, None, None] * top
    return write_raster(place, values.astype(dtype), tiled=False, **profile)


def _rendering(path: Path, **options: Any) -> Rendering:
    with open_raster(path, TileOptions(**options)) as raster:
        return raster.rendering


@pytest.mark.parametrize(
    ("sensor", "bands", "expected"),
    [
        ("sentinel-2", 13, (4, 3, 2)),
        ("sentinel-2", 12, (4, 3, 2)),
        ("sentinel-2", 4, (3, 2, 1)),
        ("landsat-8", 7, (4, 3, 2)),
        ("landsat-9", 11, (4, 3, 2)),
        ("planetscope", 4, (3, 2, 1)),
        ("planetscope", 8, (6, 4, 2)),
    ],
)
def test_bands_are_chosen_by_their_number(tmp_path: Path, sensor: str, bands: int, expected: tuple[int, ...]) -> None:
    assert _rendering(_scene(tmp_path / "s.tif", bands), sensor=sensor).bands == expected


def test_bands_that_have_names_are_chosen_by_these(tmp_path: Path) -> None:
    path = _scene(tmp_path / "s.tif", 5)
    with rasterio.open(path, "r+") as target:
        target.descriptions = ("B08", "B02", "B03", "B04", "SCL")
    assert _rendering(path, sensor="sentinel-2").bands == (4, 3, 2)
    with rasterio.open(path, "r+") as target:
        target.descriptions = ("nir", "Blue", "Green", "Red", "mask")
    assert _rendering(path).bands == (4, 3, 2)  # without a preset too


@pytest.mark.parametrize(
    ("sensor", "bands", "black", "white"),
    [("sentinel-2", 12, 0, 3000), ("planetscope", 4, 0, 3000), ("landsat-8", 7, 0.2 / 2.75e-5, 0.5 / 2.75e-5)],
)
def test_black_and_white_are_reflectances(tmp_path: Path, sensor: str, bands: int, black: float, white: float) -> None:
    shown = _rendering(_scene(tmp_path / "s.tif", bands), sensor=sensor)
    assert shown.low == pytest.approx((black,) * 3)
    assert shown.high == pytest.approx((white,) * 3)


@pytest.mark.parametrize(
    ("tags", "black"),
    [
        ({"PROCESSING_BASELINE": "05.09"}, 1000),
        ({"PROCESSING_BASELINE": "N0400"}, 1000),
        ({"BOA_ADD_OFFSET": "-1000"}, 1000),
        ({"PROCESSING_BASELINE": "N0301"}, 0),
        ({"PROCESSING_BASELINE": "new"}, 0),
    ],
)
def test_newer_scenes_of_sentinel_2_are_shifted_where_they_tell(
    tmp_path: Path, tags: dict[str, str], black: int
) -> None:
    path = _scene(tmp_path / "s.tif", 12)
    with rasterio.open(path, "r+") as target:
        target.update_tags(**tags)
    shown = _rendering(path, sensor="sentinel-2")
    assert (shown.low[0], shown.high[0]) == pytest.approx((black, black + 3000))


def test_the_files_own_scale_comes_before_the_sensors_and_the_items_before_both(tmp_path: Path) -> None:
    path = _scene(tmp_path / "s.tif", 4)
    with rasterio.open(path, "r+") as target:
        target.scales, target.offsets = (2e-4,) * 4, (-0.1,) * 4
    shown = _rendering(path, sensor="sentinel-2")
    assert (shown.low[0], shown.high[0]) == pytest.approx((500, 2000))
    told = _rendering(path, told=Told("sentinel-2", (1, 2, 3), 1e-4, 0.0))
    assert told.bands == (1, 2, 3)
    assert (told.low[0], told.high[0]) == pytest.approx((0, 3000))


def test_counts_and_reflectances_of_the_same_scene_look_the_same(tmp_path: Path) -> None:
    counts = _scene(tmp_path / "counts.tif", 12, "uint16", 3000)
    floats = _scene(tmp_path / "floats.tif", 12, "float32", 0.3)
    shifted = write_raster(tmp_path / "new.tif", rasterio.open(counts).read() + np.uint16(1000), tiled=False)
    with rasterio.open(shifted, "r+") as target:
        target.update_tags(PROCESSING_BASELINE="05.11")
    options = ReadOptions(TileOptions(sensor="sentinel-2"))
    pictures = [np.asarray(read_whole(str(path), options), int) for path in (counts, floats, shifted)]
    assert pictures[0].std() > 20
    assert np.abs(pictures[0] - pictures[1]).max() <= 1
    assert np.abs(pictures[0] - pictures[2]).max() <= 1


def test_a_scene_that_does_not_fit_is_one_line(tmp_path: Path) -> None:
    path = _scene(tmp_path / "s.tif", 6)
    with pytest.raises(ImageError, match=r"6 bands, and scenes of sentinel-2 have 3, 4, 10, 12 or 13; choose with"):
        list(read_items(str(path), ReadOptions(TileOptions(sensor="sentinel-2"))))
    (item,) = read_items(str(path), ReadOptions(TileOptions(sensor="sentinel-2", bands=(5, 4, 3))))
    assert item.rendering is not None
    assert item.rendering.bands == (5, 4, 3)
    assert item.rendering.high[0] == pytest.approx(3000)
    with pytest.raises(InputError, match="sensor 'spot' is unknown; known are sentinel-2, landsat-8"):
        TileOptions(sensor="spot")


def test_pictures_that_show_colours_already_are_left_as_they_are(tmp_path: Path) -> None:
    path = _scene(tmp_path / "tci.tif", 3, "uint8", 255)
    options = ReadOptions(TileOptions(sensor="landsat-9"))
    assert np.array_equal(np.asarray(read_whole(str(path), options)), np.asarray(read_whole(str(path))))


def test_an_example_is_read_in_the_first_way_that_fits(tmp_path: Path) -> None:
    path = str(_scene(tmp_path / "s.tif", 7, top=30_000))
    ways = (TileOptions(sensor="sentinel-2"), TileOptions(sensor="landsat-8"))
    expected = read_whole(path, ReadOptions(ways[1]))
    assert read_example(path, ways).tobytes() == expected.tobytes()
    with pytest.raises(ImageError, match="choose three with --bands"):
        read_example(path)


def test_names_of_bands_and_platforms() -> None:
    assert named_bands(["nir", "RED", None, "blue", " green "]) == (2, 5, 4)
    assert named_bands(["red", "green"]) is None
    for name in ("sentinel-2a", "Sentinel-2C", "sentinel-2"):
        assert sensor_of_platform(None, name) == "sentinel-2"
    assert sensor_of_platform("landsat-8") == "landsat-8"
    assert sensor_of_platform("LANDSAT_9") == "landsat-9"
    assert sensor_of_platform("sentinel-1a", "landsat-80", 7, "") is None
    assert all(sensor.name == name and 3 in sensor.bands for name, sensor in SENSORS.items())
