"""Another model over the files that a gallery holds: what a fresh index with that model would leave."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from evidex.cli.app import main
from evidex.data.items import ReadOptions
from evidex.data.rendering import TileOptions
from evidex.errors import InputError
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.indexing import IndexOptions
from evidex.retrieval.reindexing import reindex
from tests.data.serving import serving
from tests.data.stac.catalogs import item, items, write, write_catalog
from tests.retrieval.archive import picture, tiny_model, write_images, write_raster
from tests.retrieval.indexing.conftest import pool  # noqa: F401 (a fixture)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Pictures, a scene that is cut into tiles, and a caption."""
    import rasterio
    from rasterio.transform import from_origin

    folder = tmp_path / "scenes"
    paths = write_images(folder, 4)
    entry = {"filename": paths[1].name, "split": "x", "captions": ["many planes near a terminal"]}
    (folder / "captions.json").write_text(json.dumps({"dataset": "a", "images": [entry]}))
    bands = np.random.default_rng(0).integers(1, 255, (3, 96, 160), dtype=np.uint8)
    profile = {"driver": "GTiff", "width": 160, "height": 96, "count": 3, "dtype": "uint8", "crs": "EPSG:32631"}
    with rasterio.open(folder / "scene.tif", "w", transform=from_origin(5e5, 5e6, 10, 10), **profile) as scene:
        scene.write(bands)
    return folder


def rows(gallery: Gallery) -> list[object]:
    return list(gallery.dataset.to_table().sort_by("id").to_pylist())


def test_it_leaves_what_a_fresh_index_would_and_goes_on_where_it_was(archive: Path, tmp_path: Path) -> None:
    options = IndexOptions(ReadOptions(TileOptions(32, 8)), workers=1)
    old = Gallery.create(tmp_path / "old", tiny_model())
    old.add([archive], options=options)
    old.add_texts(["a lake in a forest", "dense houses and roads"], source="notes")
    new = Gallery.create(tmp_path / "new", tiny_model(seed=1))
    report = reindex(old, new, IndexOptions(workers=1))  # tiles as they were, not as they would be now
    assert (report.added, report.texts, report.tiles) == (5, 2, len(old) - 6)
    fresh = Gallery.create(tmp_path / "fresh", tiny_model(seed=1))
    fresh.add([archive], options=options)
    fresh.add_texts(["a lake in a forest", "dense houses and roads"], source="notes")
    new.refresh()
    assert rows(new) == rows(fresh)
    (archive / "scene_0002.png").unlink()
    again = reindex(old, new, IndexOptions(workers=1))
    assert (again.unchanged, again.encoded) == (4, 0)
    assert [(Path(skip.name).name, skip.reason) for skip in again.skipped] == [
        ("scene_0002.png", "cannot be read again (no such file or directory)")
    ]


def test_a_gallery_is_not_made_from_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = Gallery.create(tmp_path / "old", tiny_model())
    with pytest.raises(InputError, match="name another"):
        reindex(old, Gallery.open(tmp_path / "old"), IndexOptions())
    place = str(tmp_path / "old")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["evidex", "reindex", "--gallery", place, "--to", place, "--model", "compact"])
        with pytest.raises(SystemExit) as stop:
            main()
    assert stop.value.code == 2
    assert "is the gallery that is read; name another with --to" in capsys.readouterr().err


def test_an_archive_is_not_poured_into_another_ones_gallery(tmp_path: Path) -> None:
    galleries: list[Gallery] = []
    for name in ("one", "other"):
        write_images(tmp_path / name, 3)
        galleries.append(Gallery.create(tmp_path / f"gallery-{name}", tiny_model(seed=len(galleries))))
        galleries[-1].add(tmp_path / name, options=IndexOptions(workers=1))
    one, other = galleries
    before = rows(other)
    with pytest.raises(InputError, match="holds 3 files that are not in"):
        reindex(one, other, IndexOptions(workers=1))
    other.refresh()
    assert rows(other) == before


@pytest.mark.usefixtures("pool")
def test_what_catalogs_tell_is_asked_again_of_the_files_that_are_there(tmp_path: Path) -> None:
    """Assets of two names, one on another machine, and a scene whose bands only its item explains."""
    values = np.random.default_rng(0).integers(1, 3000, (12, 64, 64)).astype("uint16")
    write_raster(tmp_path / "bands.tif", values, tiled=False)
    told = {"platform": "sentinel-2a", "s2:processing_baseline": "05.09"}
    both = write(tmp_path / "both.json", items(item("bands", {"x": "bands.tif"}, told)))
    local = write_catalog(tmp_path, 3)
    (tmp_path / "site").mkdir()
    picture(7).save(tmp_path / "site" / "far.png")
    picture(8).save(tmp_path / "site" / "other.png")
    assets = {"shown": "far.png", "data": {"href": "other.png", "roles": ["visual"]}}
    write(tmp_path / "site" / "item.json", item("far", assets, {"eo:cloud_cover": 3}))
    with serving(tmp_path / "site") as server:
        far = f"{server.address}/item.json"

        def made(name: str, seed: int) -> Gallery:
            gallery = Gallery.create(tmp_path / name, tiny_model(seed=seed))
            gallery.add([local, both], options=IndexOptions())
            gallery.add([far], options=IndexOptions(asset="shown"))
            return gallery

        old = made("old", 0)
        new = Gallery.create(tmp_path / "new", tiny_model(seed=1))
        report = reindex(old, new, IndexOptions())
        assert (report.added, report.skipped) == (5, ())
        fresh = made("fresh", 1)
        new.refresh()
        assert rows(new) == rows(fresh)
        assert new.notes == fresh.notes
        assert reindex(old, new, IndexOptions()).unchanged == 5
    write(both, items())
    again = reindex(old, new, IndexOptions())
    assert again.unchanged == 3
    assert {Path(skip.name).name for skip in again.skipped} == {"bands.tif", "far.png", "item.json"}
    assert any("is not told of any more by" in skip.reason for skip in again.skipped)


@pytest.mark.usefixtures("pool")
def test_presets_and_what_was_noted_of_them_are_kept(tmp_path: Path) -> None:
    values = np.random.default_rng(0).integers(1, 3000, (12, 64, 64)).astype("uint16")
    (tmp_path / "scenes").mkdir()
    scene = write_raster(tmp_path / "scenes" / "a.tif", values, tiled=False)
    other = write_raster(tmp_path / "b.tif", values[::-1], tiled=False)

    def made(name: str, seed: int) -> Gallery:
        gallery = Gallery.create(tmp_path / name, tiny_model(seed=seed))
        gallery.add([scene], options=IndexOptions(ReadOptions(TileOptions(sensor="landsat-8", bands=(5, 4, 3)))))
        gallery.add([other], options=IndexOptions(ReadOptions(TileOptions(sensor="sentinel-2"))))
        return gallery

    old = made("old", 0)
    old.add([write_raster(tmp_path / "c.tif", values[:3])], options=IndexOptions(ReadOptions(TileOptions(bands=(2,)))))
    (tmp_path / "c.tif").unlink()
    old.add([tmp_path / "scenes"], options=IndexOptions(ReadOptions(TileOptions(sensor="landsat-8", bands=(5, 4, 3)))))
    new, fresh = Gallery.create(tmp_path / "new", tiny_model(seed=1)), made("fresh", 1)
    assert reindex(old, new, IndexOptions()).added == 2
    new.refresh()
    assert rows(new) == rows(fresh)
    assert new.notes == old.notes
