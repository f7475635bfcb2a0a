"""Re-indexing: files that take each other's places, galleries of earlier versions, files that change meanwhile."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evidex.data.discover import FoundFile
from evidex.data.items import ReadOptions
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.indexing import IndexOptions, IndexReport, decode_worker
from evidex.retrieval.indexing.decode_worker import DecodeTask, Failed, Fit, Message, WorkerSettings
from tests.retrieval.archive import WORDS, picture, tiny_model, write_images, write_raster
from tests.retrieval.indexing.churning import differences, rows_of

ONE_WORKER = IndexOptions(workers=1)

pytestmark = pytest.mark.usefixtures("pool")


@pytest.fixture
def gallery(tmp_path: Path) -> Gallery:
    return Gallery.create(tmp_path / "gallery", tiny_model())


def _wrong(gallery: Gallery, folder: Path) -> list[str]:
    """What is not as in an index made from nothing."""
    fresh = Gallery.create(gallery.path.with_name("fresh"), tiny_model())
    fresh.add(folder, options=ONE_WORKER)
    found = differences(rows_of(gallery), rows_of(fresh))
    shutil.rmtree(fresh.path)
    return found


def test_a_file_copied_over_another_that_is_itself_overwritten(gallery: Gallery, tmp_path: Path) -> None:
    airport, beach = write_images(tmp_path / "a", 2)
    gallery.add(tmp_path / "a", options=ONE_WORKER)
    shutil.copy(beach, airport)
    picture(7).save(beach)
    report = gallery.add(tmp_path / "a", options=ONE_WORKER)
    assert (report.found, report.updated) == (2, 2)
    assert _wrong(gallery, tmp_path / "a") == []


def test_files_that_move_up_by_one_keep_their_vectors(gallery: Gallery, tmp_path: Path) -> None:
    paths = write_images(tmp_path / "a", 30)
    for path in paths:
        os.utime(path, ns=(10**18, 10**18))  # as unpacked from an archive: sizes may be equal too
    gallery.add(tmp_path / "a", options=ONE_WORKER)
    for path in reversed(paths):
        path.rename(path.with_name(f"scene_{int(path.stem[-4:]) + 1:04d}.png"))
    picture(99).save(paths[0])
    report = gallery.add(tmp_path / "a", options=ONE_WORKER)
    assert report.encoded == 1
    assert _wrong(gallery, tmp_path / "a") == []


def test_a_copy_under_a_name_of_another_kind(gallery: Gallery, tmp_path: Path) -> None:
    values = np.random.default_rng(0).integers(0, 255, (3, 1100, 1100), dtype=np.uint8)
    scene = write_raster(tmp_path / "scene.tif", values)
    (tmp_path / "a").mkdir()
    picture(0).save(tmp_path / "a" / "one.jpg")
    shutil.copy(scene, tmp_path / "a" / "two.jpg")
    gallery.add(tmp_path / "a", options=ONE_WORKER)
    shutil.copy(scene, tmp_path / "a" / "one.jpg")
    assert gallery.add(tmp_path / "a", options=ONE_WORKER).encoded == 0
    assert (tmp_path / "a" / "two.jpg").rename(tmp_path / "a" / "two.tif")
    report = gallery.add(tmp_path / "a", options=ONE_WORKER)
    assert (report.encoded, report.updated + report.added + report.moved) == (0, 1)
    assert (report.scenes, report.tiles) == (2, 18)
    assert _wrong(gallery, tmp_path / "a") == []


def test_captions_that_are_taken_back_are_dropped(gallery: Gallery, tmp_path: Path) -> None:
    paths = write_images(tmp_path / "a", 2)
    file = tmp_path / "a" / "captions.json"
    entries = [{"filename": path.name, "split": "x", "captions": [WORDS[0]]} for path in paths]
    file.write_text(json.dumps({"dataset": "a", "images": entries}))
    gallery.add(tmp_path / "a", options=ONE_WORKER)
    file.write_text(json.dumps({"dataset": "a", "images": entries[:1]}))
    os.utime(paths[1])
    gallery.add(tmp_path / "a", options=ONE_WORKER)
    assert _wrong(gallery, tmp_path / "a") == []
    file.unlink()
    gallery.add(tmp_path / "a", options=ONE_WORKER)
    assert _wrong(gallery, tmp_path / "a") == []


def test_a_caption_file_that_cannot_be_read_takes_nothing_away(gallery: Gallery, tmp_path: Path) -> None:
    paths = write_images(tmp_path / "a" / "images", 2)
    file = tmp_path / "a" / "captions.json"
    entries = [{"filename": path.name, "split": "x", "captions": [WORDS[0]]} for path in paths]
    file.write_text(json.dumps({"dataset": "a", "images": entries}))
    gallery.add(tmp_path / "a", options=ONE_WORKER)
    file.write_text("{bad")
    os.utime(paths[1])
    write_images(tmp_path / "a" / "images", 1, first=7)
    report = gallery.add(tmp_path / "a", options=ONE_WORKER)
    assert [Path(remark.name).name for remark in report.remarks] == ["captions.json"]
    gallery.refresh()
    held = {Path(row["path"]).name: tuple(row["captions"] or ()) for row in gallery.records(["path", "captions"])}
    assert sorted(held.values()) == [(), (WORDS[0],), (WORDS[0],)]
    file.unlink()
    gallery.add(tmp_path / "a", options=ONE_WORKER)
    assert _wrong(gallery, tmp_path / "a") == []


def test_a_gallery_that_an_earlier_version_spoiled_is_healed(gallery: Gallery, tmp_path: Path) -> None:
    first, second, third = write_images(tmp_path / "a", 3)
    gallery.add(tmp_path / "a", options=ONE_WORKER)
    rows = {Path(row.path): (row, vector) for row, vector in rows_of(gallery).values()}
    # One row with the hash and vector of another's, under its own size and time; one that is there twice.
    spoiled = replace(rows[first][0], sha256=rows[second][0].sha256)
    gallery.replace([spoiled], rows[second][1][None])
    gallery.append([rows[third][0]], rows[third][1][None])
    gallery._dataset.drop_columns(["ctime_ns"])
    again = Gallery.open(gallery.path, tiny_model())
    assert len(again.rows(range(4))) == 4
    report = again.add(tmp_path / "a", options=ONE_WORKER)
    assert (report.found, report.encoded, report.rows) == (3, 2, 3)
    assert _wrong(again, tmp_path / "a") == []
    assert again.add(tmp_path / "a", options=ONE_WORKER).unchanged == 3


def _read(path: Path, between: int) -> list[Message]:
    """What the decoder says of ``path``, which is rewritten after so many messages."""
    settings = WorkerSettings(ReadOptions(), Fit("square", 32))
    task = DecodeTask(FoundFile.at(str(path)), ask=True)
    said: list[Message] = []

    class Asked:
        def send(self, message: Message) -> None:
            self._meet(message)

        def recv(self) -> bool:
            return True

        def _meet(self, message: Message) -> None:
            said.append(message)
            if len(said) == between:
                status = path.stat()
                data = path.read_bytes()
                path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
                os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    asked = Asked()
    for message in decode_worker._messages(task, settings, asked):  # type: ignore[arg-type]
        asked._meet(message)
    return said


@pytest.mark.parametrize("between", [1, 3])
def test_what_changes_while_it_is_read_is_told_even_with_its_size_and_time_kept(tmp_path: Path, between: int) -> None:
    values = np.random.default_rng(0).integers(0, 255, (3, 1100, 1100), dtype=np.uint8)
    path = write_raster(tmp_path / "scene.tif", values)
    assert len(_read(path, 99)) == 1 + 9 + 1
    said = _read(path, between)
    assert isinstance(said[-1], Failed)
    assert said[-1].reason.startswith("changed while it was read")
    assert len(said) <= between + 2  # what was read before the change, and the word of it


def _adds_up(report: IndexReport) -> bool:
    done = report.added + report.updated + report.unchanged + report.moved + len(report.skipped)
    return report.found == done and report.rows == report.images + report.tiles + report.texts


def test_every_file_is_counted_once(gallery: Gallery, tmp_path: Path) -> None:
    write_images(tmp_path / "a", 4)
    picture(0).save(tmp_path / "a" / "copy.png")
    (tmp_path / "a" / "empty.png").touch()
    (tmp_path / "a" / "broken.jpg").write_bytes(b"\xff\xd8\xff\xe0 no more")
    (tmp_path / "a" / "captions.json").write_text("{")
    values = np.random.default_rng(0).integers(1, 255, (3, 1100, 1100), dtype=np.uint8)
    values[:, :, :500] = 0
    write_raster(tmp_path / "a" / "scene.tif", values, nodata=0)
    write_raster(tmp_path / "a" / "void.tif", np.zeros((3, 1100, 1100), np.uint8), nodata=0)
    cut = write_raster(tmp_path / "a" / "cut.tif", values, compress="deflate")
    cut.write_bytes(cut.read_bytes()[:-200_000])
    gallery.add_texts(["a lake"])
    report = gallery.add(tmp_path / "a", options=ONE_WORKER)
    assert _adds_up(report)
    assert (report.found, len(report.duplicates)) == (10, 1)
    assert sorted(Path(skip.name).name for skip in report.skipped if "cut" not in skip.name) == [
        "broken.jpg", "empty.png", "void.tif",
    ]  # fmt: skip
    assert "captions.json" in {Path(remark.name).name for remark in report.remarks}
    assert (report.images, report.texts) == (5, 1)
    assert _adds_up(gallery.add(tmp_path / "a", options=ONE_WORKER))
