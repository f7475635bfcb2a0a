"""What lies beside a raster counts as part of it if it is read with it, and only then."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from evidex.retrieval.gallery import Gallery
from tests.retrieval.archive import tiny_model, write_raster

WORLD = "10.0\n0.0\n0.0\n-10.0\n380005.0\n5819995.0\n"

pytestmark = pytest.mark.usefixtures("pool")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    (tmp_path / "a").mkdir()
    for name in ("s", "scene_1"):
        write_raster(tmp_path / "a" / f"{name}.tif", rng.integers(0, 255, (3, 64, 64), dtype=np.uint8), tiled=False)
        (tmp_path / "a" / f"{name}.tfw").write_text(WORLD)
    (tmp_path / "a" / "s.tif.ovr").write_bytes(bytes(2**20 + 1))
    return tmp_path / "a"


@pytest.fixture
def gallery(folder: Path, tmp_path: Path) -> Gallery:
    made = Gallery.create(tmp_path / "gallery", tiny_model())
    assert made.add(folder).encoded == 2
    return made


@pytest.mark.parametrize("name", ["scene_10.txt", "scene_1_notes.txt", "scene_10.tfw", "survey.log", "s_old.tfw", "s"])
def test_files_that_are_not_read_with_a_raster_do_not_bear_on_it(gallery: Gallery, folder: Path, name: str) -> None:
    (folder / name).write_text("more every day")
    assert gallery.add(folder).unchanged == 2


@pytest.mark.parametrize("name", ["s.tfw", "s.IMD", "s_RPC.TXT", "s_rpc.txt", "s_MTL.txt", "s.tif.aux.xml"])
def test_files_that_are_read_with_a_raster_make_it_another(gallery: Gallery, folder: Path, name: str) -> None:
    (folder / name).write_text(WORLD.replace("10.0", "20.0"))
    report = gallery.add(folder)
    assert (report.encoded, report.updated, report.unchanged) == (1, 1, 1)


def test_a_content_that_changes_under_its_time_is_noticed_and_a_touch_is_none(gallery: Gallery, folder: Path) -> None:
    world = folder / "s.tfw"
    before = world.stat()
    world.chmod(0o600)
    os.utime(world)
    assert gallery.add(folder).unchanged == 2
    world.write_text(WORLD.replace("38", "39"))
    os.utime(world, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert gallery.add(folder).updated == 1


def test_scenes_that_are_moved_or_renamed_with_what_lies_beside_them_keep_their_vectors(
    gallery: Gallery, folder: Path
) -> None:
    restored = folder.with_name("restored")
    shutil.copytree(folder, restored)
    shutil.rmtree(folder)
    for path in restored.glob("s.*"):
        path.rename(path.with_name("renamed" + path.name[1:]))
    report = gallery.add(folder.parent / "restored")
    assert report.encoded == 0
    assert report.moved + report.added == 2
