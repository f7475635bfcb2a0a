"""Maps as files: what GIS programs read of them, and that none is ever half there."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio
from PIL import Image

from evidex.data.footprints import Window
from evidex.errors import InputError
from evidex.locating.asked import ask
from evidex.locating.heat import Heat
from evidex.locating.locate import locate
from evidex.locating.located import Finding, Located
from evidex.locating.view import view_of_file, view_of_picture
from evidex.locating.writing import check_output, coloured, write_located
from tests.retrieval.archive import picture, tiny_model, write_raster


def _located(tmp_path: Path) -> tuple[Path, Located]:
    values = np.random.default_rng(0).integers(0, 255, (3, 700, 600), np.uint8)
    values[:, :, 60:] = 0
    path = write_raster(tmp_path / "scene.tif", values)
    with view_of_file(str(path)) as view:
        return path, locate(tiny_model(), view, ask(tiny_model(), "a lake in a forest", "text"))


def test_a_geotiff_lies_exactly_over_the_scene_as_rasterio_and_pyogrio_read_it(tmp_path: Path) -> None:
    path, found = _located(tmp_path)
    with view_of_file(str(path)) as view:
        for name in ("heat.tif", "peaks.geojson", "heat.png"):
            write_located(tmp_path / name, found, view)
    with rasterio.open(path) as scene, rasterio.open(tmp_path / "heat.tif") as heat:
        assert (heat.crs, heat.transform, heat.shape) == (scene.crs, scene.transform, scene.shape)
        assert heat.dtypes == ("float32",)
        assert np.isnan(heat.nodata)
        values = heat.read(1)
        assert heat.tags()["query"] == "a lake in a forest"
    assert np.array_equal(values, found.heat.block(Window(0, 0, 600, 700)), equal_nan=True)
    assert np.isnan(values[:, 570:]).all()
    assert np.isfinite(values[:, :56]).all()
    assert np.nanmax(values) == pytest.approx(found.heat.peak, abs=0.01)
    pyogrio = pytest.importorskip("pyogrio", reason="a plain install has none")

    about = pyogrio.read_info(tmp_path / "peaks.geojson")
    assert about["features"] == len(found.peaks) > 0
    assert about["geometry_type"] == "Point"
    assert about["crs"] == "EPSG:4326"
    west, south, east, north = about["total_bounds"]
    assert 13.0 < west <= east < 14.0
    assert 52.0 < south <= north < 53.0
    with Image.open(tmp_path / "heat.png") as shown:
        assert shown.size == (600, 700)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["heat.png", "heat.tif", "peaks.geojson", "scene.tif"]


def test_a_scene_without_a_place_gets_a_map_without_one(tmp_path: Path) -> None:
    view = view_of_picture(picture(0, (100, 80)), "a.png")
    found = locate(tiny_model(), view, ask(tiny_model(), "a lake", "text"))
    write_located(tmp_path / "heat.tif", found, view)
    write_located(tmp_path / "peaks.json", found, view)
    with pytest.warns(rasterio.errors.NotGeoreferencedWarning), rasterio.open(tmp_path / "heat.tif") as heat:
        assert (heat.crs, heat.shape) == (None, (80, 100))
    features = json.loads((tmp_path / "peaks.json").read_text())["features"]
    assert all(feature["geometry"] is None for feature in features)


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, found = _located(tmp_path)
    target = tmp_path / "heat.tif"
    target.write_text("the old one")

    first = Heat.block

    def broken(self: Heat, window: Window) -> Any:
        if window.y:
            raise OSError(28, "No space left on device")
        return first(self, window)

    monkeypatch.setattr(Heat, "block", broken)
    with view_of_file(str(path)) as view, pytest.raises(InputError, match="its disk is full"):
        write_located(target, found, view)
    assert target.read_text() == "the old one"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["heat.tif", "scene.tif"]


def test_a_flat_map_leaves_the_picture_as_it_is() -> None:
    view = view_of_picture(picture(0, (64, 64)), "a.png")
    found = locate(tiny_model(), view, ask(tiny_model(), "a lake", "text"))
    flat = replace(found, heat=found.heat.flattened(), finding=Finding.NOTHING, peaks=())
    assert not np.asarray(coloured(flat.heat, (64, 64)))[..., 3].any()
    assert np.asarray(coloured(found.heat, (64, 64)))[..., 3].max() > 100


@pytest.mark.parametrize(
    ("name", "words"), [("heat.jpg", "neither .tif"), ("nowhere/heat.tif", "is no folder"), ("heat", "neither .tif")]
)
def test_a_place_that_cannot_be_written_is_refused_before_anything_is_looked_at(
    tmp_path: Path, name: str, words: str
) -> None:
    with pytest.raises(InputError, match=words):
        check_output(tmp_path / name)
