"""Which bands become colours, which values black and white, and what counts as empty."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio
from PIL import Image

from evidex.data import rendering
from evidex.data.items import ReadOptions, opens_whole, read_items, read_whole
from evidex.data.rendering import Rendering, TileOptions, is_flat, to_bytes
from evidex.data.sensors import Told
from evidex.data.tiles import open_raster
from evidex.errors import BandsError, ImageError, InputError
from tests.retrieval.archive import write_raster


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


@pytest.mark.parametrize("placed", [True, False])
def test_a_fourth_band_that_only_is_called_alpha_is_not_taken_for_it(tmp_path: Path, placed: bool) -> None:
    """Writers call the fourth of four 8-bit bands alpha unless they are told what it is."""
    values = np.random.default_rng(5).integers(1, 255, (4, 96, 96), dtype=np.uint8)
    values[3, :40] = 0  # water, in near infrared
    where = {} if placed else {"crs": None, "transform": None}
    path = write_raster(tmp_path / "infrared.tif", values, tiled=False, **where)
    with rasterio.open(path) as source:
        assert source.colorinterp[3].name == "alpha"
    for read in (lambda: list(read_items(str(path), ReadOptions())), lambda: [read_whole(str(path))]):
        with pytest.raises(BandsError, match="has 4 bands, and band 4 is called alpha but looks like a picture"):
            read()
    (item,) = read_items(str(path), ReadOptions(TileOptions(bands=(1, 2, 3))))
    assert np.array_equal(np.asarray(item.picture), values[:3].transpose(1, 2, 0))


@pytest.mark.parametrize("placed", [True, False])
@pytest.mark.parametrize(
    "options",
    [TileOptions(sensor=name) for name in ("planetscope", "sentinel-2")]
    + [TileOptions(sensor="landsat-8", told=Told(bands=(1, 2, 3))), TileOptions(told=Told(bands=(1, 2, 3)))],
)
def test_a_band_that_only_is_called_alpha_darkens_nothing_where_bands_are_known(
    tmp_path: Path, placed: bool, options: TileOptions
) -> None:
    values = np.random.default_rng(5).integers(1, 255, (4, 96, 96), dtype=np.uint8)
    values[3, :40] = 0
    where = {} if placed else {"crs": None, "transform": None}
    path = str(write_raster(tmp_path / "infrared.tif", values, tiled=False, **where))
    (item,) = read_items(path, ReadOptions(options))
    for shown in (item.picture, read_whole(path, ReadOptions(options))):
        assert np.array_equal(np.asarray(shown), values[:3].transpose(1, 2, 0))
    assert not opens_whole(path, ReadOptions(options))


def test_near_infrared_of_the_sea_is_no_alpha(tmp_path: Path) -> None:
    """It is the same over all of the water, and nothing in a strip of it."""
    rng = np.random.default_rng(5)
    values = rng.integers(1, 255, (4, 96, 96), dtype=np.uint8)
    values[3], values[3, :12] = 3, 0
    values[3, 80:] = rng.integers(60, 200, (16, 96))
    path = write_raster(tmp_path / "coast.tif", values, tiled=False)
    with pytest.raises(BandsError, match="looks like a picture"):
        list(read_items(str(path), ReadOptions()))


def test_what_is_called_alpha_is_looked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(6).integers(1, 255, (4, 96, 96), dtype=np.uint8)
    values[3] = 255
    path = write_raster(tmp_path / "mosaic.tif", values, tiled=False)
    looked_at: list[tuple[int, ...]] = []
    sample = rendering._sample

    def noted(source: Any, bands: tuple[int, ...]) -> Any:
        looked_at.append(bands)
        return sample(source, bands)

    monkeypatch.setattr(rendering, "_sample", noted)
    with open_raster(path, TileOptions()) as raster:
        assert not raster.alpha_is_a_band
    assert looked_at == [(4,)]


def test_pages_are_told_from_thumbnails(tmp_path: Path) -> None:
    first = np.random.default_rng(8).integers(1, 255, (96, 96, 3), dtype=np.uint8)
    for name, size, more in (("pages", 96, True), ("thumbnail", 24, False)):
        second = Image.fromarray(first).resize((size, size))
        Image.fromarray(first).save(tmp_path / f"{name}.tif", save_all=True, append_images=[second])
        (item,) = read_items(str(tmp_path / f"{name}.tif"), ReadOptions())
        assert item.first_only is more


@pytest.mark.parametrize("inside", [255, 128])
@pytest.mark.parametrize("placed", [True, False])
def test_alpha_says_where_there_is_something_to_see(tmp_path: Path, placed: bool, inside: int) -> None:
    values = np.random.default_rng(6).integers(1, 255, (4, 96, 96), dtype=np.uint8)
    values[3] = inside
    values[3, :40] = 0
    values[3, 40] = np.arange(96)  # a soft edge
    where = {} if placed else {"crs": None, "transform": None}
    path = write_raster(tmp_path / "mosaic.tif", values, tiled=False, **where)
    (item,) = read_items(str(path), ReadOptions())
    shown = np.asarray(item.picture)
    assert not shown[:40].any()
    assert (shown[41:] > 0).mean() > 0.9


def test_a_fourth_band_beside_declared_colours_needs_no_choice(tmp_path: Path) -> None:
    values = np.random.default_rng(7).integers(1, 255, (4, 96, 96), dtype=np.uint8)
    path = write_raster(tmp_path / "declared.tif", values, tiled=False, photometric="RGB", ALPHA="NO")
    (item,) = read_items(str(path), ReadOptions())
    assert np.array_equal(np.asarray(item.picture), values[:3].transpose(1, 2, 0))


@pytest.mark.parametrize(
    "options", [{"tile": 4}, {"tile": 64, "overlap": 64}, {"bands": (1, 2)}, {"bands": (0, 1, 2)}, {"stretch": (98, 2)}]
)
def test_senseless_options_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(InputError):
        TileOptions(**options)  # type: ignore[arg-type]


def test_values_beyond_the_limits_and_none_at_all_stay_within_eight_bits() -> None:
    values = np.array([[[-np.inf, 0.0, 100.0], [200.0, np.inf, np.nan]]], np.float32)
    shown = to_bytes(values, Rendering((1,), (0.0,), (200.0,)))
    assert shown.tolist() == [[[0, 0, 128], [255, 255, 0]]]
    assert to_bytes(np.array([[[7]]], np.uint8), Rendering((1,))).tolist() == [[[7]]]


def test_a_rendering_survives_being_stored() -> None:
    rendering = Rendering((4, 3, 2), (0.5, 1.0, 2.0), (100.0, 200.0, 300.25))
    assert Rendering.loads(rendering.dumps()) == rendering


def test_only_valid_pixels_say_whether_a_window_is_empty() -> None:
    values = np.full((3, 4, 4), 9)
    everywhere = np.ones((4, 4), bool)
    assert is_flat(values, everywhere)
    values[1, 0, 0] = 8
    assert not is_flat(values, everywhere)
    everywhere[0, 0] = False
    assert is_flat(values, everywhere)


@pytest.mark.parametrize(
    "options",
    [TileOptions(), TileOptions(0, 0, (4, 3, 2), (0.5, 99.25)), TileOptions(64, 8, (1,), sensor="planetscope")],
)
def test_what_rows_note_of_the_options_is_read_back(options: TileOptions) -> None:
    assert TileOptions.of_words(options.words) == options
    assert TileOptions.of_words(options.words + " told landsat-8:::None:0 beside 0a1b") == options
    with pytest.raises(InputError, match="'by hand' does not say how"):
        TileOptions.of_words("by hand")
