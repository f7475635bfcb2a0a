"""Pruning believes that files are gone, but not that nearly all are."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from evidex.errors import InputError
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.indexing import IndexOptions
from tests.retrieval.archive import tiny_model, write_images

PRUNE = IndexOptions(prune=True)
pytestmark = pytest.mark.usefixtures("pool")


@pytest.fixture
def gallery(tmp_path: Path) -> Gallery:
    return Gallery.create(tmp_path / "gallery", tiny_model())


def test_nine_in_ten_files_may_go_and_no_more(gallery: Gallery, tmp_path: Path) -> None:
    paths = write_images(tmp_path / "a", 20)
    gallery.add(tmp_path / "a")
    for path in paths[:19]:
        path.rename(tmp_path / path.name)
    version = gallery.version
    with pytest.raises(InputError, match=r"a': 19 of the 20 files .* nothing was changed; add --force"):
        gallery.add(tmp_path / "a", options=PRUNE)
    assert (gallery.version, len(gallery)) == (version, 20)
    (tmp_path / paths[0].name).rename(paths[0])
    assert gallery.add(tmp_path / "a", options=PRUNE).pruned == 18
    paths[0].unlink()
    paths[19].unlink()
    assert gallery.add(tmp_path / "a", options=IndexOptions(prune=True, force=True)).pruned == 2


def test_one_of_two_places_that_is_empty_is_enough(gallery: Gallery, tmp_path: Path) -> None:
    write_images(tmp_path / "a", 12)
    for path in write_images(tmp_path / "b", 3, 20):
        gallery.add([tmp_path / "a", tmp_path / "b"])
        path.unlink()
    with pytest.raises(InputError, match="b': 3 of the 3 files"):
        gallery.add([tmp_path / "a", tmp_path / "b"], options=PRUNE)


def test_a_folder_that_is_gone_itself_is_pruned_by_its_name(gallery: Gallery, tmp_path: Path) -> None:
    write_images(tmp_path / "a", 3)
    write_images(tmp_path / "a" / "deep", 2, 10)
    write_images(tmp_path / "b", 2, 20)
    gallery.add([tmp_path / "a", tmp_path / "b"])
    shutil.rmtree(tmp_path / "a")
    with pytest.raises(InputError, match="a' does not exist; give a folder"):
        gallery.add(tmp_path / "a")
    with pytest.raises(InputError, match=r"a': 5 of the 5 files .* add --force"):
        gallery.add(tmp_path / "a", options=PRUNE)
    with pytest.raises(InputError, match="A' does not exist, and the gallery holds nothing from there"):
        gallery.add([tmp_path / "b", tmp_path / "A"], options=IndexOptions(prune=True, force=True))
    assert len(gallery) == 7
    report = gallery.add(tmp_path / "a", options=IndexOptions(prune=True, force=True))
    assert (report.pruned, report.rows, report.skipped) == (5, 2, ())


def test_a_folder_whose_files_were_all_renamed_is_pruned(gallery: Gallery, tmp_path: Path) -> None:
    write_images(tmp_path / "a" / "old", 12)
    gallery.add(tmp_path / "a")
    (tmp_path / "a" / "old").rename(tmp_path / "a" / "new")
    report = gallery.add(tmp_path / "a", options=PRUNE)
    assert (report.moved, report.pruned, report.rows) == (12, 0, 12)


@pytest.mark.parametrize("left", ["nothing", "the empty place", "another file"])
def test_a_mirror_does_not_take_the_rows_of_a_disk_that_is_away(gallery: Gallery, tmp_path: Path, left: str) -> None:
    write_images(tmp_path / "disk", 3)
    gallery.add(tmp_path / "disk")
    shutil.copytree(tmp_path / "disk", tmp_path / "mirror")
    (tmp_path / "disk").rename(tmp_path / "away")
    if left != "nothing":
        (tmp_path / "disk").mkdir()
    if left == "another file":  # then the place is there, and its pictures were taken away
        (tmp_path / "disk" / "notes.txt").touch()
    report = gallery.add(tmp_path / "mirror")
    assert (report.encoded, report.duplicates) == (0, ())
    assert (report.added, report.moved, report.rows) == ((0, 3, 3) if left == "another file" else (3, 0, 6))


def test_another_disk_in_the_same_place_drops_nothing(gallery: Gallery, tmp_path: Path) -> None:
    for path in write_images(tmp_path / "a", 12):
        gallery.add(path)
        path.unlink()
    write_images(tmp_path / "a", 12, 100)
    with pytest.raises(InputError, match=r"12 of the 12 files .* nothing was pruned"):
        gallery.add(tmp_path / "a", options=PRUNE)
    assert len(gallery) == 24


def test_what_cannot_be_read_any_more_counts_as_gone(gallery: Gallery, tmp_path: Path) -> None:
    paths = write_images(tmp_path / "a", 12)
    gallery.add(tmp_path / "a")
    paths[0].write_bytes(b"")
    paths[1].write_bytes(b"no picture")
    report = gallery.add(tmp_path / "a", options=PRUNE)
    assert (report.pruned, len(report.skipped), report.rows) == (2, 2, 10)
    for path in paths:
        path.write_bytes(b"no picture")
    with pytest.raises(InputError, match="10 of the 10 files"):
        gallery.add(tmp_path / "a", options=PRUNE)
