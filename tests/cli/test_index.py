"""evidex index: a run that indexes nothing is a failure, and leaves nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evidex.retrieval.gallery import Gallery
from tests.cli.running import Runner
from tests.retrieval.archive import tiny_model, write_images


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "model.safetensors"
    tiny_model().save(path)
    return path


def test_a_folder_without_pictures_is_refused_and_nothing_is_made(evidex: Runner, model: Path, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "readme.txt").write_text("no picture")
    target = tmp_path / "new" / "deep" / "gallery"
    done = evidex("index", tmp_path / "notes", "--gallery", target, "--model", model)
    assert "notes': nothing to index was found; give JPEG" in done.complaint
    assert not (tmp_path / "new").exists()


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
    again = evidex("index", tmp_path / "good", "--gallery", gallery, "--workers", 1)
    assert (again.code, "2 unchanged" in again.out) == (0, True)


def test_pruning_all_that_was_there_is_work_done(evidex: Runner, model: Path, tmp_path: Path) -> None:
    paths = write_images(tmp_path / "good", 2)
    gallery = tmp_path / "gallery"
    evidex("index", tmp_path / "good", "--gallery", gallery, "--model", model, "--workers", 1)
    for path in paths:
        path.unlink()
    done = evidex("index", tmp_path / "good", "--gallery", gallery, "--prune", "--workers", 1)
    assert (done.code, "2 pruned" in done.out) == (0, True)


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
