"""What is looked at is what a gallery would show: tiles, 16-bit scenes, rows by id or by path."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

from evidex.data.footprints import Footprint, Window
from evidex.errors import NotFoundError
from evidex.locating.gallery_view import view_in_gallery
from evidex.locating.view import view_of_file, view_of_row
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.indexing import IndexOptions
from evidex.retrieval.rows import Row
from tests.retrieval.archive import picture, tiny_model, write_images, write_raster


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Gallery:
    folder = tmp_path_factory.mktemp("views")
    write_images(folder / "scenes", 1)
    values = np.random.default_rng(0).integers(100, 4000, (3, 700, 1200)).astype(np.uint16)
    write_raster(folder / "scenes" / "deep.tif", values)
    made = Gallery.create(folder / "gallery", tiny_model())
    made.add(folder / "scenes", options=IndexOptions(workers=1))
    made.add_texts(["a lake"])
    return made


def test_a_tile_is_shown_as_it_was_encoded_and_lies_where_it_lay(gallery: Gallery) -> None:
    tile = next(row for row in gallery.rows(range(len(gallery))) if row.window is not None and row.window.x > 0)
    assert tile.window is not None
    with view_in_gallery(gallery, tile.id) as view:
        shown = view.picture(view.whole)
        assert view.transform.c == 380_000.0 + 10 * tile.window.x
        assert view.transform.f == 5_820_000.0 - 10 * tile.window.y
        assert tile.footprint is not None
        assert view.place(view.width / 2, view.height / 2) == pytest.approx(tile.footprint.center, abs=1e-3)
    assert np.array_equal(np.asarray(shown), np.asarray(gallery.open_image(tile, longest=2048)))


def test_a_path_of_a_gallery_is_all_of_the_file_in_the_gallerys_colours(gallery: Gallery) -> None:
    path = next(row.path for row in gallery.rows(range(len(gallery))) if row.window is not None)
    with view_in_gallery(gallery, path) as whole, view_of_file(path) as fresh:
        assert (whole.width, whole.height) == (1200, 700)
        part = Window(300, 200, 128, 128)
        assert np.array_equal(np.asarray(whole.picture(part)), np.asarray(fresh.picture(part)))


def test_of_a_row_on_another_machine_the_small_picture_is_looked_at(tmp_path: Path) -> None:
    """Nothing is fetched for it."""
    stream = io.BytesIO()
    picture(1, (64, 48)).save(stream, "PNG")
    ring = ((10.0, 51.0), (10.0, 50.0), (12.0, 50.0), (12.0, 51.0))
    address = "https://archive.invalid/scene.tif"
    row = Row("1", address, "image", "0" * 64, footprint=Footprint(ring), thumbnail=stream.getvalue())
    made = Gallery.create(tmp_path / "gallery", tiny_model())
    made.append([row], np.eye(1, tiny_model().dim, dtype=np.float32))
    with view_in_gallery(made, address) as view:
        assert (view.width, view.height) == (64, 48)
        assert view.place(16.0, 24.0) == pytest.approx((10.5, 50.5))


def test_what_is_not_there_or_has_no_picture_is_said(gallery: Gallery) -> None:
    with pytest.raises(NotFoundError, match="is not in the gallery"):
        view_in_gallery(gallery, "nowhere.tif")
    text = next(row for row in gallery.rows(range(len(gallery))) if row.kind == "text")
    with pytest.raises(NotFoundError, match="is a text"), view_of_row(text):
        pass
