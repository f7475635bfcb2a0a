"""What of a file goes into a gallery: one picture or tiles, read for what the file holds, and shown again alike."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from evidex.data.items import ReadOptions, read_example, read_items, read_whole, read_window
from evidex.data.rendering import TileOptions
from evidex.errors import BlankImageError, ImageError, ImageTooLargeError, InputError
from tests.retrieval.archive import picture, write_raster


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


def test_a_plain_tiff_comes_out_as_pillow_shows_it(tmp_path: Path) -> None:
    picture = Image.fromarray(np.random.default_rng(7).integers(0, 255, (40, 60, 3), dtype=np.uint8))
    for mode in ("RGB", "L", "CMYK", "P", "RGBA"):
        path = tmp_path / f"{mode}.tif"
        picture.convert(mode).save(path)
        (item,) = read_items(str(path), ReadOptions())
        assert item.picture is not None
        assert item.picture.mode == "RGB"
        assert item.footprint is None


def test_a_virtual_raster_in_disguise_reads_nothing(tmp_path: Path) -> None:
    write_raster(tmp_path / "secret.tif", np.full((1, 64, 64), 9, np.uint8), tiled=False)
    (tmp_path / "evil.tif").write_text(
        '<VRTDataset rasterXSize="64" rasterYSize="64"><VRTRasterBand dataType="Byte" band="1"><SimpleSource>'
        '<SourceFilename relativeToVRT="1">secret.tif</SourceFilename></SimpleSource></VRTRasterBand></VRTDataset>'
    )
    with pytest.raises(ImageError):
        list(read_items(str(tmp_path / "evil.tif"), ReadOptions()))


def test_a_scene_to_search_with_is_never_cut(tmp_path: Path) -> None:
    values = np.random.default_rng(8).integers(1, 255, (3, 90, 120), dtype=np.uint8)
    path = str(write_raster(tmp_path / "scene.tif", values, tiled=False))
    options = ReadOptions(TileOptions(tile=32, overlap=0))
    assert len(list(read_items(path, options))) == 12
    assert np.array_equal(np.asarray(read_whole(path, options)), values.transpose(1, 2, 0))


def test_a_scene_that_holds_nothing_is_refused_in_words(tmp_path: Path) -> None:
    path = str(write_raster(tmp_path / "empty.tif", np.zeros((3, 40, 40), np.uint8), tiled=False))
    with pytest.raises(ImageError, match="holds no data"):
        list(read_items(path, ReadOptions()))


def test_what_shows_nothing_is_nothing_to_search_with(tmp_path: Path) -> None:
    nothing = np.full((1, 40, 40), np.nan, np.float32)
    write_raster(tmp_path / "placed.tif", nothing, tiled=False)
    Image.fromarray(nothing[0]).save(tmp_path / "plain.tif")
    Image.new("RGB", (40, 40), "white").save(tmp_path / "white.png")
    Image.new("RGBA", (40, 40), (9, 9, 9, 0)).save(tmp_path / "clear.png")
    for name in ("placed.tif", "plain.tif", "white.png", "clear.png"):
        for ways in ((), (TileOptions(bands=(1,)),)):
            said = f"{name}' (holds no data|shows nothing): all its pixels are empty"
            with pytest.raises(BlankImageError, match=said):
                read_example(str(tmp_path / name), ways)
    almost = Image.new("RGB", (40, 40), "white")
    almost.putpixel((3, 3), (255, 255, 254))
    almost.save(tmp_path / "almost.png")
    assert read_whole(str(tmp_path / "almost.png")).size == (40, 40)


def test_the_limit_on_pixels_holds_for_plain_pictures(tmp_path: Path) -> None:
    path = str(tmp_path / "plain.png")
    picture(1).save(path)
    (item,) = read_items(path, ReadOptions())
    assert (item.width, item.height, item.window, item.rendering) == (48, 40, None, None)
    with pytest.raises(ImageTooLargeError, match="48×40"):
        list(read_items(path, ReadOptions(max_pixels=100)))
    with pytest.raises(InputError, match="max_pixels is 0"):
        ReadOptions(max_pixels=0)


def test_a_picture_shown_again_is_no_larger_than_asked(tmp_path: Path) -> None:
    path = str(tmp_path / "plain.png")
    picture(1).save(path)
    assert read_window(path, None, None, 24).size == (24, 20)


def test_a_large_jpeg_tells_its_own_size_and_is_searched_with_as_it_is_indexed(tmp_path: Path) -> None:
    coarse = np.random.default_rng(0).integers(0, 256, (30, 40, 3), dtype=np.uint8)
    exif = Image.Exif()
    exif[274] = 6
    wide = Image.fromarray(coarse).resize((1800, 1350), Image.Resampling.BICUBIC)
    wide.save(tmp_path / "scene.jpg", exif=exif)
    [item] = read_items(str(tmp_path / "scene.jpg"), ReadOptions())
    assert item.picture is not None
    assert (item.width, item.height) == (1350, 1800)
    assert item.picture.size == (675, 900)
    assert np.array_equal(np.asarray(item.picture), np.asarray(read_whole(str(tmp_path / "scene.jpg"))))
