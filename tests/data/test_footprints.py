"""Rasters in every kind of CRS: those that have a place on earth are found there, the others are indexed without."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from rasterio.crs import CRS
from rasterio.transform import from_bounds, from_origin
from rasterio.warp import transform as warp

from evidex.data.footprints import Bounds, Footprint, Window, footprint_of
from evidex.data.items import ReadOptions, read_items, read_whole
from evidex.retrieval.filters import Filters, Selector
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.indexing import IndexOptions
from tests.cli.running import Runner, runner
from tests.retrieval.archive import tiny_model, write_raster

Box = tuple[float, float, float, float]
_DISK, _GOES, _ARCTIC, _ANTARCTIC = 5_570_248.0, 5_434_894.0, "EPSG:3413", "EPSG:3031"
_PLATE = "+proj=eqc +ellps=WGS84 +units=m"
_MERCATOR = 20_037_508.342789244
_AROUND: list[Box] = [(x, 80, x + 1, 81) for x in range(-180, 180, 5)]

NOWHERE: dict[str, tuple[str, Box]] = {
    "msg": ("+proj=geos +h=35785831 +a=6378169 +b=6356583.8 +units=m", (-_DISK, -_DISK, _DISK, _DISK)),
    "goes": ("+proj=geos +lon_0=-75 +h=35786023 +sweep=x +ellps=GRS80", (-_GOES, -_GOES, _GOES, _GOES)),
    "orthographic": ("+proj=ortho +lat_0=40 +lon_0=10 +ellps=WGS84", (-7e6, -7e6, 7e6, 7e6)),
    "local": ('LOCAL_CS["site",UNIT["metre",1]]', (0, 0, 100, 100)),
    "moon": ("+proj=longlat +a=1737400 +b=1737400 +no_defs", (10, 10, 20, 20)),
    "moon_map": ("+proj=eqc +R=1737400 +units=m", (0, 0, 1e5, 1e5)),
    "east_of_the_zone": ("EPSG:32633", (9e8, 5e6, 9.001e8, 5.1e6)),
    "north_of_the_zone": ("EPSG:32633", (5e5, 5e7, 5.01e5, 5.01e7)),
    "east_of_a_map_of_bent_ends": ("+proj=sinu +R=6371007.181", (16e6, 4.4e6, 17e6, 5.5e6)),
    "many_turns_away": ("EPSG:3857", (9e8, 5e6, 9.001e8, 5.1e6)),
    "grads_beyond_the_pole": ("EPSG:4807", (0, 130, 10, 140)),
    "metres_as_degrees": ("EPSG:4326", (380_000, 5_820_000, 381_000, 5_821_000)),
}
# Boxes that touch each raster, and boxes that do not.
SOMEWHERE: dict[str, tuple[str, Box, list[Box], list[Box]]] = {
    "world": ("EPSG:4326", (-180, -90, 180, 90), [(-180, 89, 180, 90), (179, 0, -179, 1), (12, 51, 13, 52)], []),
    "world_from_0": ("EPSG:4326", (0, -90, 360, 90), [(-10, 50, -9, 51), (-1, -90, 1, -89), (179, 0, -179, 1)], []),
    "world_by_centres": ("EPSG:4326", (-182.25, -91, 177.75, 91), [(178, 89.5, 179, 90), (-180, -90, 180, -89)], []),
    "mercator_world": ("EPSG:3857", (-_MERCATOR, -_MERCATOR, _MERCATOR, _MERCATOR), [(179, 0, -179, 1)], []),
    "north": ("EPSG:4326", (-20, 60, 20, 90), [(-180, 89, 180, 90), (0, 61, 1, 62)], [(30, 61, 40, 62)]),
    "over_the_pole": (_ARCTIC, (-3e6, -3e6, 3e6, 3e6), [(-180, 89, 180, 90), *_AROUND], [(0, -90, 1, 40)]),
    "over_the_south_pole": (_ANTARCTIC, (-3e6, -3e6, 3e6, 3e6), [(179, -81, -179, -80), (-46, -70, -40, -69)], []),
    "pole_on_an_edge": (_ARCTIC, (-3e6, -3e6, 0, 3e6), [(-150, 89.9, -149, 90), (179, 80, -179, 81)], [(0, 80, 9, 81)]),
    "pole_on_an_edge_beside_points": (_ARCTIC, (-3e6, -1.234e6, 0, 3e6), [(-150, 89.9, -149, 90)], [(0, 80, 10, 81)]),
    "pole_on_a_corner": (_ARCTIC, (0, 0, 3e6, 3e6), [(80, 89.9, 81, 90), (60, 80, 61, 81)], [(-90, 80, -80, 81)]),
    "date_line": ("EPSG:32601", (150_000, 900_000, 250_000, 1_000_000), [(179.9, 8, -179.9, 9)], [(0, 8, 1, 9)]),
    "fiji": ("EPSG:3857", (19.6e6, -2.2e6, 20.2e6, -1.8e6), [(179.9, -18, -179.9, -17)], [(170, -18, 175, -17)]),
    "fiji_from_the_east": ("EPSG:3857", (-20.2e6, -2.2e6, -19.6e6, -1.8e6), [(179, -18, 179.9, -17)], [(0, 0, 1, 1)]),
    "plate_carree": (_PLATE, (19.6e6, -2e6, 20.4e6, -1.8e6), [(179.9, -18, -179.9, -17)], [(-176, -18, -170, -17)]),
    "north_in_grads": ("EPSG:4807", (0, 92, 4, 98), [(3, 84, 4, 85)], [(3, 89, 4, 90), (10, 84, 11, 85)]),
    "part_of_a_disk": (NOWHERE["goes"][0], (-1e6, 0, 1e6, 1e6), [(-75, 1, -74, 2)], [(0, 1, 1, 2)]),
}  # fmt: skip


def _written(path: Path, crs: str, box: Box) -> Path:
    values = np.random.default_rng(len(path.name)).integers(0, 255, (3, 60, 80), dtype=np.uint8)
    return write_raster(path, values, crs=CRS.from_user_input(crs), transform=from_bounds(*box, 80, 60), tiled=False)


@pytest.mark.parametrize("name", NOWHERE)
def test_a_raster_that_lies_nowhere_is_read_without_a_footprint(name: str, tmp_path: Path) -> None:
    path = _written(tmp_path / f"{name}.tif", *NOWHERE[name])
    (item,) = read_items(str(path), ReadOptions())
    assert item.picture is not None
    assert item.crs is not None
    assert item.footprint is None
    assert read_whole(str(path)).size == (80, 60)  # to search with


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Gallery:
    folder = tmp_path_factory.mktemp("placed")
    for name, (crs, box, _, _) in SOMEWHERE.items():
        _written(folder / f"{name}.tif", crs, box)
    made = Gallery.create(folder / "gallery", tiny_model())
    report = made.add(folder, options=IndexOptions(workers=1))
    assert (report.added, report.unplaced) == (len(SOMEWHERE), 0)
    return made


@pytest.mark.parametrize("name", SOMEWHERE)
def test_boxes_find_rasters_on_poles_and_across_the_date_line(name: str, gallery: Gallery) -> None:
    _, _, touched, missed = SOMEWHERE[name]
    paths = gallery.column("path").to_pylist()
    row = next(number for number, path in enumerate(paths) if Path(path).stem == name)
    selector = Selector(gallery)
    for box in (*touched, *missed):
        kept = selector.select(Filters(bbox=Bounds(*box)), "images")
        assert (kept is None or bool(kept[row])) == (box in touched), box


@pytest.mark.parametrize("name", SOMEWHERE)
def test_shapes_for_maps_stay_on_the_map(name: str) -> None:
    crs, box, _, _ = SOMEWHERE[name]
    footprint = footprint_of(CRS.from_user_input(crs), from_bounds(*box, 80, 60), Window(0, 0, 80, 60))
    assert footprint is not None
    shape = footprint.geojson()
    rings = [shape["coordinates"]] if shape["type"] == "Polygon" else shape["coordinates"]
    for longitude, latitude in (point for ring in rings for point in ring[0]):
        assert -180 <= longitude <= 180
        assert -90 <= latitude <= 90
    assert abs(footprint.center[0]) <= 180


def test_footprint_of_a_wide_raster_follows_the_curve_of_its_edges() -> None:
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


def test_the_report_says_how_many_rasters_lie_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    evidex: Runner = runner(monkeypatch, capsys)
    tiny_model().save(tmp_path / "model.safetensors")
    (tmp_path / "scenes").mkdir()
    for name in ("msg", "local", "moon"):
        _written(tmp_path / "scenes" / f"{name}.tif", *NOWHERE[name])
    _written(tmp_path / "scenes" / "world.tif", *SOMEWHERE["world"][:2])
    ran = evidex(
        "index", tmp_path / "scenes", "--gallery", tmp_path / "g", "--model", tmp_path / "model.safetensors",
        "--no-calibrate",
    )  # fmt: skip
    assert "4 files found: 4 added" in ran.out
    assert "3 rasters have coordinates that lead to no place on earth" in ran.out
    assert evidex("search", "--image", tmp_path / "scenes" / "msg.tif", "--gallery", tmp_path / "g").code == 0
