"""Catalogs in a gallery: what items tell is kept, looked for and taken up again; remote scenes are read by parts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio

from evidex.data.items import ReadOptions
from evidex.data.reading_notes import readings_of
from evidex.data.rendering import TileOptions
from evidex.errors import InputError, NotFoundError
from evidex.retrieval.filters import Filters
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.indexing import IndexOptions, IndexReport
from evidex.retrieval.indexing.commits import Commits
from evidex.retrieval.indexing.files_under_way import FileUnderWay
from evidex.retrieval.indexing.known_files import KnownFile
from evidex.retrieval.retriever import Retriever
from evidex.retrieval.rows import Row
from tests.data.serving import serving
from tests.data.stac.catalogs import item, items, write, write_catalog
from tests.retrieval.archive import picture, tiny_model, write_images, write_raster
from tests.retrieval.indexing.in_process import Pool

pytestmark = pytest.mark.usefixtures("pool")
PRUNE = IndexOptions(prune=True)


def _rows(gallery: Gallery) -> dict[str, Row]:
    return {Path(row.path).name: row for row in gallery.rows(range(len(gallery)))}


def _edit(path: Path, **properties: Any) -> None:
    content = json.loads(path.read_text())
    content["properties"].update(properties)
    path.write_text(json.dumps(content))


def _of(report: IndexReport) -> tuple[int, int, int, int]:
    return report.added, report.updated, report.unchanged, report.encoded


def _write_cog(path: Path, side: int, bands: int = 3, dtype: str = "uint8", top: int = 255) -> Path:
    coarse = np.random.default_rng(0).integers(1, top, (bands, side // 64, side // 64))
    values = coarse.repeat(64, axis=1).repeat(64, axis=2).astype(dtype)
    return write_raster(path, values, driver="COG", tiled=None, blockxsize=None, blockysize=None, BLOCKSIZE=256)


def test_what_items_tell_is_kept_and_filtered_by(tmp_path: Path) -> None:
    gallery = Gallery.create(tmp_path / "g", tiny_model())
    report = gallery.add([write_catalog(tmp_path, 4)])
    assert (_of(report), report.skipped, report.remarks) == ((4, 0, 0, 4), (), ())
    rows = _rows(gallery)
    told = rows["3.tif"].item
    assert told is not None
    assert (told.id, told.collection, told.cloud_cover, told.asset) == ("scene-3", "summer", 30.0, "image")
    assert {link.rel for link in told.links} >= {"self", "collection", "root"}
    assert rows["3.tif"].footprint != rows["1.tif"].footprint or rows["1.tif"].crs == "EPSG:32633"
    assert rows["2.png"].footprint is not None  # the picture itself knows no place
    assert rows["2.png"].footprint.bounds.west == pytest.approx(13.2)
    assert str(rows["2.png"].acquired)[:10] == "2021-06-03"
    search = Retriever(gallery).search
    assert search(text="a", filters=Filters(max_cloud=15)).searched == 2
    assert search(text="a", filters=Filters(collection="summer", max_cloud=0)).searched == 1
    assert search(text="a", filters=Filters(collection="winter")).searched == 0
    assert gallery.find(rows["0.png"].id).item == rows["0.png"].item


def test_indexed_again_only_what_changed_is_read_or_told_anew(tmp_path: Path) -> None:
    catalog = write_catalog(tmp_path, 3)
    gallery = Gallery.create(tmp_path / "g", tiny_model())
    gallery.add([catalog])
    version = gallery.version
    assert _of(gallery.add([catalog])) == (0, 0, 3, 0)
    assert gallery.version == version
    _edit(
        catalog.parent / "summer" / "scene-2" / "scene-2.json",
        **{"eo:cloud_cover": 77, "datetime": "2023-01-01T00:00:00Z"},
    )
    assert _of(gallery.add([catalog])) == (0, 0, 3, 0)  # other words about the same picture: nothing is encoded
    row = _rows(gallery)["2.png"]
    assert row.item is not None
    assert (row.item.cloud_cover, str(row.acquired)[:10]) == (77, "2023-01-01")
    picture(9).save(tmp_path / "pictures" / "0.png")
    assert _of(gallery.add([catalog])) == (0, 1, 2, 1)
    assert _rows(gallery)["0.png"].item is not None


def test_files_and_catalogs_may_name_the_same_pictures(tmp_path: Path) -> None:
    catalog = write_catalog(tmp_path, 2)
    gallery = Gallery.create(tmp_path / "g", tiny_model())
    assert _of(gallery.add([tmp_path / "pictures"])) == (2, 0, 0, 2)
    assert all(row.item is None for row in _rows(gallery).values())
    assert _of(gallery.add([catalog])) == (0, 0, 2, 0)
    before = _rows(gallery)
    assert all(row.item is not None for row in before.values())
    assert _of(gallery.add([tmp_path / "pictures"])) == (0, 0, 2, 0)
    assert _rows(gallery) == before  # what the catalog told stays


def test_what_a_catalog_tells_of_a_picture_holds_for_no_copy_of_it(tmp_path: Path) -> None:
    catalog = write_catalog(tmp_path, 1)
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "other.png").write_bytes((tmp_path / "pictures" / "0.png").read_bytes())
    gallery = Gallery.create(tmp_path / "g", tiny_model())
    gallery.add([catalog])
    gallery.add([copy])
    row = _rows(gallery)["other.png"]
    assert (row.item, row.footprint, row.acquired) == (None, None, None)


def test_what_a_catalog_names_no_more_is_pruned(tmp_path: Path) -> None:
    catalog = write_catalog(tmp_path, 4)
    gallery = Gallery.create(tmp_path / "g", tiny_model())
    gallery.add([catalog, *write_images(tmp_path / "plain", 1)])
    collection = catalog.parent / "summer" / "collection.json"
    content = json.loads(collection.read_text())
    content["links"] = [link for link in content["links"] if "scene-1" not in link["href"]]
    collection.write_text(json.dumps(content))
    assert len(gallery) == 5
    assert gallery.add([catalog]).pruned == 0
    assert gallery.add([catalog], options=PRUNE).pruned == 1
    assert sorted(_rows(gallery)) == ["0.png", "2.png", "3.tif", "scene_0000.png"]
    collection.write_text("{")  # out of reach, not gone
    assert gallery.add([catalog], options=PRUNE).pruned == 0
    content["links"] = []
    collection.write_text(json.dumps(content))
    with pytest.raises(InputError, match="3 of the 3 files"):
        gallery.add([catalog], options=PRUNE)


def test_galleries_of_earlier_versions_are_searched_and_grow(tmp_path: Path) -> None:
    gallery = Gallery.create(tmp_path / "g", tiny_model())
    gallery.add(write_images(tmp_path / "plain", 2))
    gallery._dataset.drop_columns(["item", "collection", "cloud_cover", "asset", "links", "catalog", "thumbnail"])
    gallery._committed()
    old = Gallery.open(gallery.path)
    assert Retriever(old).search(text="a").hits[0].item is None
    assert Retriever(old).search(text="a", filters=Filters(collection="summer")).searched == 0
    assert Retriever(old).search(text="a", filters=Filters(max_cloud=5)).searched == 0
    assert _of(old.add([write_catalog(tmp_path, 2)])) == (2, 0, 0, 2)
    assert Retriever(old).search(text="a", filters=Filters(collection="summer")).searched == 2


def test_a_run_that_was_cut_short_goes_on(tmp_path: Path, pool: type[Pool]) -> None:
    catalog = write_catalog(tmp_path, 6)
    whole = Gallery.create(tmp_path / "whole", tiny_model())
    whole.add([catalog])
    gallery, left = Gallery.create(tmp_path / "g", tiny_model()), [8]

    def stop() -> None:
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt

    pool.between = staticmethod(stop)
    with pytest.raises(KeyboardInterrupt):
        gallery.add([catalog], options=IndexOptions(batch_size=1, rows_a_commit=1))
    rows = len(gallery)
    assert 0 < rows < 6
    assert _of(gallery.add([catalog])) == (6 - rows, 0, rows, 6 - rows)
    assert _rows(gallery) == _rows(whole)


def test_a_remote_scene_is_read_from_the_overview_that_suits(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    cog = _write_cog(tmp_path / "site" / "cog.tif", 2048)
    write(tmp_path / "site" / "item.json", item("far", {"visual": {"href": "cog.tif", "roles": ["visual"]}}))
    gallery = Gallery.create(tmp_path / "g", tiny_model())
    with rasterio.open(cog) as opened:
        assert opened.overviews(1)
    with serving(tmp_path / "site") as server:
        place = f"{server.address}/item.json"
        report = gallery.add([place])
        assert (_of(report), report.skipped) == ((1, 0, 0, 1), ())
        assert server.sent["cog.tif"] < cog.stat().st_size / 2
        (row,) = gallery.rows([0])
        assert (row.path, row.kind, row.width, row.height) == (f"{server.address}/cog.tif", "image", 2048, 2048)
        assert row.footprint is not None
        assert row.crs == "EPSG:32633"
        asked = len(server.asked)
        assert _of(gallery.add([place])) == (0, 0, 1, 0)
        assert ("GET", "cog.tif") not in server.asked[asked:]  # its state says that it is the same
        cog.write_bytes(cog.read_bytes())
        assert _of(gallery.add([place])) == (0, 1, 0, 1)
    # Nobody answers any more: it is found and shown all the same, from what the gallery keeps.
    hit = Retriever(gallery).search(text="a").hits[0]
    assert hit.path == row.path
    shown = gallery.open_image(row, longest=32)
    assert max(shown.size) == 32
    assert np.asarray(shown).std() > 5
    report = gallery.add([place], options=PRUNE)
    assert (len(gallery), report.pruned) == (1, 0)
    assert "cannot be fetched" in report.skipped[0].reason


def test_an_item_that_says_when_it_was_updated_is_believed(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    picture(1).save(tmp_path / "site" / "a.png")
    place = tmp_path / "site" / "item.json"
    write(place, item("far", {"x": "a.png"}, {"updated": "2024-01-01T00:00:00Z"}))
    gallery = Gallery.create(tmp_path / "g", tiny_model())
    with serving(tmp_path / "site") as server:
        address = f"{server.address}/item.json"
        assert _of(gallery.add([address])) == (1, 0, 0, 1)
        asked = len(server.asked)
        assert _of(gallery.add([address])) == (0, 0, 1, 0)
        assert server.asked[asked:] == [("GET", "item.json")]
        _edit(place, updated="2024-02-02T00:00:00Z")
        assert _of(gallery.add([address])) == (0, 1, 0, 1)


def test_a_remote_scene_without_overviews_is_not_sent_whole(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    values = np.random.default_rng(0).integers(0, 255, (3, 600, 600), dtype=np.uint8)
    flat = write_raster(tmp_path / "site" / "flat.tif", values)
    write(tmp_path / "site" / "item.json", item("far", {"x": "flat.tif"}))
    gallery = Gallery.create(tmp_path / "g", tiny_model())
    with serving(tmp_path / "site") as server:
        report = gallery.add([f"{server.address}/item.json"])
        assert "has no overviews, so all of it would have to be sent" in report.skipped[0].reason
        assert server.sent["flat.tif"] < flat.stat().st_size / 2


def test_a_kept_picture_that_is_missing_is_told_in_one_line(tmp_path: Path) -> None:
    gallery = Gallery.create(tmp_path / "g", tiny_model())
    gallery.add(write_images(tmp_path / "plain", 1))
    (row,), vectors = gallery.rows([0]), gallery.vectors
    far = replace(row, path="https://example.org/a.png")
    gallery.replace([far], np.array(vectors))
    with pytest.raises(NotFoundError, match="is on another machine and no picture of it is kept here"):
        gallery.open_image(far)


def test_items_choose_bands_and_scale_by_themselves(tmp_path: Path) -> None:
    values = (np.arange(12)[:, None, None] * 100 + np.arange(64)[None, :, None] * 20 + np.zeros((12, 64, 64))).astype(
        "uint16"
    )
    write_raster(tmp_path / "s2.tif", values, tiled=False)
    names = ("nir", "red", "blue", "green")
    mixed = write_raster(tmp_path / "mixed.tif", values[:4], tiled=False)
    bands = {"href": "mixed.tif", "bands": [{"eo:common_name": name} for name in names]}
    stated = {"platform": "sentinel-2a", "s2:processing_baseline": "05.09"}
    content = items(item("a", {"x": "s2.tif"}, stated), item("b", {"x": bands}))
    gallery = Gallery.create(tmp_path / "g", tiny_model())
    report = gallery.add([write(tmp_path / "all.json", content)])
    assert report.skipped == ()
    shown = {name: row.rendering for name, row in _rows(gallery).items()}
    assert shown["s2.tif"] is not None
    assert shown["mixed.tif"] is not None
    assert shown["s2.tif"].bands == (4, 3, 2)
    assert (shown["s2.tif"].low[0], shown["s2.tif"].high[0]) == pytest.approx((1000, 4000))
    assert shown["mixed.tif"].bands == (2, 4, 3)
    assert readings_of(gallery.notes) == (TileOptions(sensor="sentinel-2"),)
    assert _of(gallery.add([tmp_path / "s2.tif", mixed])) == (0, 0, 2, 0)  # what the items told still holds
    assert _rows(gallery)["mixed.tif"].item is not None


def test_an_example_is_read_by_the_gallerys_own_preset(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for number in range(4):
        coarse = rng.integers(200, 3000, (12, 6, 6)).astype(np.uint16)
        write_raster(tmp_path / f"{number}.tif", coarse.repeat(16, axis=1).repeat(16, axis=2))
    gallery = Gallery.create(tmp_path / "g", tiny_model())
    options = IndexOptions(ReadOptions(TileOptions(sensor="sentinel-2")))
    assert _of(gallery.add([tmp_path], options=options)) == (4, 0, 0, 4)
    assert _of(gallery.add([tmp_path], options=options)) == (0, 0, 4, 0)
    opened = Gallery.open(gallery.path, tiny_model())
    for number in range(4):
        hit = Retriever(opened).search(image=tmp_path / f"{number}.tif").hits[0]
        assert hit.path.endswith(f"{number}.tif")
    six = write_raster(tmp_path / "six.tif", rng.integers(1, 9, (6, 64, 64)).astype(np.uint16))
    report = opened.add([six], options=options)
    assert "6 bands, and scenes of sentinel-2 have" in report.skipped[0].reason


def test_a_file_that_is_asked_for_again_is_read_as_its_item_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.random.default_rng(0).integers(1, 3000, (12, 64, 64)).astype("uint16")
    scene = write_raster(tmp_path / "s2.tif", values, tiled=False)
    catalog = write(tmp_path / "all.json", items(item("a", {"x": "s2.tif"}, {"platform": "sentinel-2a"})))
    gallery = Gallery.create(tmp_path / "g", tiny_model())
    gallery.add([catalog])
    before = _rows(gallery)["s2.tif"].rendering
    source, gone = Commits._source, [True]

    def once_gone(self: Commits, state: FileUnderWay) -> KnownFile | None:
        """As where the rows that it was to take over are replaced meanwhile."""
        return None if gone and gone.pop() else source(self, state)

    monkeypatch.setattr(Commits, "_source", once_gone)
    scene.touch()
    report = gallery.add([catalog])
    assert (gone, report.skipped, report.encoded) == ([], (), 1)
    assert _rows(gallery)["s2.tif"].rendering == before
