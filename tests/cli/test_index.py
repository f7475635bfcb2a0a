"""evidex index: a run that indexes nothing is a failure, and leaves nothing."""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import rasterio
from PIL import Image

from evidex.encoders.model import load_model
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.indexing import IndexOptions, run
from tests.cli.running import Runner
from tests.retrieval.archive import tiny_model, write_images, write_raster
from tests.retrieval.indexing.in_process import Pool


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "model.safetensors"
    tiny_model().save(path)
    return path


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are read in this process, to be quick."""
    monkeypatch.setattr(run, "DecodePool", Pool)


def test_a_folder_without_pictures_is_refused_and_nothing_is_made(evidex: Runner, model: Path, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "readme.txt").write_text("no picture")
    target = tmp_path / "new" / "deep" / "gallery"
    done = evidex("index", tmp_path / "notes", "--gallery", target, "--model", model)
    assert "notes': nothing to index was found; give JPEG" in done.complaint
    assert "unpack" not in done.complaint
    (tmp_path / "notes" / "SCENES.tar").write_bytes(b"packed")
    done = evidex("index", tmp_path / "notes", "--gallery", target, "--model", model)
    assert done.complaint.endswith("folders of them; unpack 'SCENES.tar' first, packed files are not read")
    assert not (tmp_path / "new").exists()


def test_where_a_first_index_ended_before_it_calibrated_a_search_says_index_again_and_that_helps(
    evidex: Runner, model: Path, tmp_path: Path
) -> None:
    write_images(tmp_path / "scenes", 40)
    made = Gallery.create(tmp_path / "g", load_model(str(model)), source=str(model))
    made.add(tmp_path / "scenes", options=IndexOptions(workers=1))  # as a kill after the last commit leaves it
    search = ("search", "a river", "--gallery", tmp_path / "g", "--json")
    answer = json.loads(evidex(*search).out)
    assert answer["reasons"] == ["not_calibrated"]
    assert "if its indexing was stopped, index again" in answer["explanation"]
    assert evidex("index", tmp_path / "scenes", "--gallery", tmp_path / "g", "--workers", 1).code == 0
    assert "not_calibrated" not in json.loads(evidex(*search).out)["reasons"]


def test_a_folder_that_is_gone_is_pruned_by_its_name(evidex: Runner, model: Path, tmp_path: Path) -> None:
    write_images(tmp_path / "gone", 2)
    gallery = tmp_path / "gallery"
    evidex("index", tmp_path / "gone", "--gallery", gallery, "--model", model, "--workers", 1)
    shutil.rmtree(tmp_path / "gone")
    words = ("index", tmp_path / "gone", "--gallery")
    assert "gone' does not exist; give a folder" in evidex(*words, gallery).complaint
    assert "gone' does not exist; give a folder" in evidex(*words, tmp_path / "new", "--prune").complaint
    assert not (tmp_path / "new").exists()
    refused = evidex(*words, gallery, "--prune")
    assert (refused.code, "2 of the 2 files that the gallery holds" in refused.err) == (2, True)
    done = evidex(*words, gallery, "--prune", "--force", "--tile", 256)
    assert (done.code, "2 pruned" in done.out, len(Gallery.open(gallery))) == (0, True, 0)


def test_pictures_that_are_passed_over_are_told(evidex: Runner, model: Path, tmp_path: Path) -> None:
    archive = write_images(tmp_path / "mixed", 3)[0].parent
    first, *_, last = sorted(archive.iterdir())
    with Image.open(first) as picture:
        picture.save(archive / "scan.bmp")
        with Image.open(last) as second:
            picture.convert("RGB").save(archive / "loop.gif", save_all=True, append_images=[second.convert("RGB")])
            picture.save(archive / "pages.tif", save_all=True, append_images=[second])
    for name in ("a.heic", "b.HEIC", "c.img", ".d.png", "notes.txt"):
        (archive / name).write_bytes(b"whatever it holds")
    report = tmp_path / "report.json"
    words = ("index", archive, "--gallery", tmp_path / "gallery", "--model", model, "--workers", 1)
    done = evidex(*words, "--report", report)
    assert (done.code, "6 files found: 6 added" in done.out) == (0, True)
    told = " ".join(done.out.split())
    assert "passed over 3 files of kinds that are not indexed: .heic 2, .img 1, and 1 picture whose name begins" in told
    several = {Path(remark["name"]).name for remark in json.loads(report.read_text())["remarks"]}
    assert several == {"loop.gif", "pages.tif"}
    assert json.loads(report.read_text())["passed_over"] == {".heic": 2, ".img": 1, "hidden": 1}
    for file in archive.iterdir():
        if file.suffix.lower() not in (".heic", ".img"):
            file.unlink()
    alone = evidex("index", archive, "--gallery", tmp_path / "other", "--model", model)
    assert "nothing to index was found; passed over 3 files of kinds that are not indexed: .heic 2" in alone.complaint


def test_overviews_and_masks_of_a_scene_are_no_further_pictures(evidex: Runner, model: Path, tmp_path: Path) -> None:
    values = np.random.default_rng(0).integers(0, 255, (3, 1200, 1400), np.uint8)
    (tmp_path / "scenes").mkdir()
    scene = write_raster(tmp_path / "scenes" / "scene.tif", values)
    with rasterio.open(scene, "r+") as source:
        assert not source.subdatasets
        source.build_overviews([2, 4])
        source.write_mask(np.full((1200, 1400), 255, np.uint8))
    report = tmp_path / "report.json"
    evidex("index", scene.parent, "--gallery", tmp_path / "g", "--model", model, "--workers", 1, "--report", report)
    assert json.loads(report.read_text())["remarks"] == []


def test_unreadable_files_alone_are_refused_with_the_commonest_reason(
    evidex: Runner, model: Path, tmp_path: Path
) -> None:
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "a.jpg").write_bytes(b"\xff\xd8\xff\xe0 no more")
    (tmp_path / "bad" / "b.png").write_bytes(b"")
    (tmp_path / "bad" / "c.png").write_bytes(b"")
    (tmp_path / "gallery").mkdir()
    report = tmp_path / "report.json"
    done = evidex(
        "index", tmp_path / "bad", "--gallery", tmp_path / "gallery", "--model", model, "--report", report
    )  # fmt: skip
    assert "all 3 files were skipped, 2 like: b.png: " in done.complaint
    assert not list(tmp_path.glob("gallery/*"))
    assert len(json.loads(report.read_text())["skipped"]) == 3


def test_a_gallery_with_rows_is_left_alone(evidex: Runner, model: Path, tmp_path: Path) -> None:
    write_images(tmp_path / "good", 2)
    (tmp_path / "none").mkdir()
    gallery = tmp_path / "gallery"
    first = evidex("index", tmp_path / "good", "--gallery", gallery, "--model", model, "--workers", 1)
    assert (first.code, "2 added" in first.out) == (0, True)
    assert "nothing to index was found" in evidex("index", tmp_path / "none", "--gallery", gallery).complaint
    assert len(Gallery.open(gallery)) == 2
    words = ("index", tmp_path / "good", "--gallery", gallery, "--workers", 1)
    again = evidex(*words)
    assert (again.code, "2 unchanged" in again.out, "gone" in again.out) == (0, True, False)
    next((tmp_path / "good").iterdir()).unlink()
    told = evidex(*words)
    assert "1 file is gone from there and still found by searches; index again with --prune to drop it" in told.out
    assert "gone" not in evidex(*words, "--prune").out


@pytest.mark.usefixtures("in_process")
def test_an_empty_folder_prunes_nothing_unless_forced(evidex: Runner, model: Path, tmp_path: Path) -> None:
    paths = write_images(tmp_path / "disk", 12)
    gallery = tmp_path / "gallery"
    words = ("index", tmp_path / "disk", "--gallery", gallery, "--workers", 1, "--no-calibrate")
    assert evidex(*words, "--model", model).code == 0
    before = Gallery.open(gallery).version
    for path in paths:
        path.unlink()
    refused = evidex(*words, "--prune").complaint
    assert "disk': 12 of the 12 files that the gallery holds from there are gone" in refused
    assert "nothing was changed; add --force" in refused
    (tmp_path / "disk").rmdir()
    assert "disk' does not exist" in evidex(*words).complaint
    assert "disk': 12 of the 12 files" in evidex(*words, "--prune").complaint
    assert (Gallery.open(gallery).version, len(Gallery.open(gallery))) == (before, 12)
    (tmp_path / "disk").mkdir()
    done = evidex(*words, "--prune", "--force")
    assert (done.code, "0 files found: none; 12 pruned" in done.out) == (0, True)
    assert len(Gallery.open(gallery)) == 0


@pytest.mark.usefixtures("in_process")
def test_what_was_indexed_is_told_and_kept_though_pruning_is_refused(
    evidex: Runner, model: Path, tmp_path: Path
) -> None:
    paths = write_images(tmp_path / "disk", 12)
    gallery = tmp_path / "gallery"
    words = ("index", tmp_path / "disk", "--gallery", gallery, "--workers", 1, "--no-calibrate")
    assert evidex(*words, "--model", model).code == 0
    for path in paths:
        path.unlink()
    write_images(tmp_path / "disk", 12, 100)  # as if another disk were in its place
    refused = evidex(*words, "--prune", "--report", tmp_path / "report.json")
    assert refused.code == 2
    assert "12 files found: 12 added;" in refused.out
    assert "12 of the 12 files" in refused.err
    assert "nothing was pruned; add --force" in refused.err
    assert json.loads((tmp_path / "report.json").read_text())["added"] == 12
    opened = Gallery.open(gallery)
    assert (len(opened), opened.pieces()) == (24, 1)
    assert (json.loads((gallery / "vectors.json").read_text())["rows"]) == 24


@pytest.mark.usefixtures("in_process")
def test_the_numbers_of_the_report_add_up(evidex: Runner, model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "a"
    write_images(folder, 3)
    shutil.copy(folder / "scene_0000.png", folder / "copy.png")
    (folder / "bad.jpg").write_bytes(b"no picture")
    (folder / "captions.json").write_text("{")
    values = np.random.default_rng(0).integers(1, 250, (3, 1100, 1100), dtype=np.uint8)
    write_raster(folder / "large.tif", values)
    done = evidex("index", folder, "--gallery", tmp_path / "g", "--model", model, "--workers", 1, "--no-calibrate")
    assert "6 files found: 5 added (1 of them copies of others), 1 skipped;" in done.out
    assert f"13 rows in {tmp_path / 'g'}: 4 images, 9 tiles of 1 scene" in done.out
    assert "skipped " in done.err
    assert "captions.json: " in done.err


@pytest.mark.usefixtures("in_process")
def test_a_gallery_that_another_run_makes_at_the_same_time_is_used(
    evidex: Runner, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_images(tmp_path / "a", 2)
    create = Gallery.create.__func__  # type: ignore[attr-defined]

    def late(cls: type[Gallery], /, path: Path, *arguments: object, **options: object) -> Gallery:
        create(cls, path, *arguments, **options)  # the other one was quicker
        return create(cls, path, *arguments, **options)  # type: ignore[no-any-return]

    monkeypatch.setattr(Gallery, "create", classmethod(late))
    words = ("index", tmp_path / "a", "--gallery", tmp_path / "g", "--model", model, "--workers", 1, "--no-calibrate")
    assert evidex(*words).code == 0
    with Gallery.open(tmp_path / "g").writing():
        assert "is being indexed by another process; wait for it to end, then run" in evidex(*words).complaint


def test_a_gallery_whose_making_was_cut_short_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cut_short(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("evidex.retrieval.gallery_making.write_info", cut_short)
        with pytest.raises(KeyboardInterrupt):
            Gallery.create(tmp_path / "g", tiny_model())
    assert len(Gallery.create(tmp_path / "g", tiny_model())) == 0


@pytest.mark.usefixtures("in_process")
def test_a_disk_that_fills_up_is_named(
    evidex: Runner, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import lance

    write_images(tmp_path / "a", 2)
    words = ("index", tmp_path / "a", "--gallery", tmp_path / "g", "--model", model, "--no-calibrate")
    assert evidex(*words).code == 0
    write_images(tmp_path / "a", 2, 10)

    def full(*_: object, **__: object) -> None:
        raise OSError("LanceError(IO): No space left on device (os error 28), structural.rs:254:9")

    monkeypatch.setattr(lance, "write_dataset", full)
    assert f"'{tmp_path / 'g'}' cannot be written: its disk is full (No space" in evidex(*words).complaint
    assert len(Gallery.open(tmp_path / "g")) == 2


@pytest.mark.slow
@pytest.mark.parametrize("limit", [0, 40_000])
def test_a_full_disk_is_called_that(model: Path, tmp_path: Path, limit: int) -> None:
    """With the limit on a file's size that the system knows, which fails writes as a full disk does."""
    write_images(tmp_path / "a", 300)
    command = [sys.executable, "-m", "evidex", "index", str(tmp_path / "a"), "--gallery", str(tmp_path / "g")]
    done = subprocess.run(
        [*command, "--model", str(model), "--workers", "1", "--no-calibrate"],
        capture_output=True, text=True, timeout=120,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert "cannot be written: its disk is full (" in done.stderr
    assert str(tmp_path / "g") in done.stderr
    assert done.stderr.count("\n") == 1


def test_queries_that_were_given_stay_in_force_and_that_is_said(evidex: Runner, model: Path, tmp_path: Path) -> None:
    write_images(tmp_path / "images", 25)
    first = evidex("index", tmp_path / "images", "--gallery", tmp_path / "gallery", "--model", model)
    assert "calibrated for text queries: 108 common questions" in first.out
    (tmp_path / "own.txt").write_text("\n".join(f"a river of number {n}" for n in range(30)))
    evidex("calibrate", "--gallery", tmp_path / "gallery", "--queries", tmp_path / "own.txt")
    again = evidex("index", tmp_path / "images", "--gallery", tmp_path / "gallery")
    assert "text queries: those given to evidex calibrate, image queries: 25 images" in again.out


def test_who_interrupts_is_told_what_stays(
    evidex: Runner, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_images(tmp_path / "images", 3)
    assert evidex("index", tmp_path / "images", "--gallery", tmp_path / "gallery", "--model", model).code == 0

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Gallery, "add", interrupted)
    done = evidex("index", tmp_path / "images", "--gallery", tmp_path / "gallery")
    assert done.code == 130
    assert f"stopped; 3 rows are in {tmp_path / 'gallery'} and stay; run it again to go on" in done.err


@pytest.mark.usefixtures("in_process")
def test_pictures_that_show_nothing_are_counted_and_named(evidex: Runner, model: Path, tmp_path: Path) -> None:
    write_images(tmp_path / "files", 2)
    for name, colour in (("white.png", "white"), ("black.jpg", "black")):
        Image.new("RGB", (48, 40), colour).save(tmp_path / "files" / name)
    made = ("index", tmp_path / "files", "--gallery", tmp_path / "gallery", "--model", model, "--no-calibrate")
    done = evidex(*made, "--report", tmp_path / "report.json")
    assert "2 pictures show nothing, as all pixels are alike: they are indexed" in done.out
    assert "white.png: shows nothing" in done.err
    assert "4 rows" in done.out
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["blank"] == 2
    assert {Path(remark["name"]).name for remark in report["remarks"]} == {"white.png", "black.jpg"}
    asked = evidex("search", "--image", tmp_path / "files" / "white.png", "--gallery", tmp_path / "gallery")
    assert "white.png' shows nothing: all its pixels are empty or alike; give a picture of a scene" in asked.complaint
