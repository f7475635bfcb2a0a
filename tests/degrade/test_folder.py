from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from evidex.degrade import Degradation, degrade_image
from evidex.degrade.folder import degrade_folder
from evidex.errors import InputError


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    rng = np.random.default_rng(0)
    for name in ("a.png", "deep/er/b.jpg", "deep/c.TIF", "d.webp", "e.gif", "f.bmp"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (20, 30, 3), dtype=np.uint8)).save(path)
    (folder / "notes.txt").write_text("no image")
    (folder / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n broken")
    (folder / "dangling.png").symlink_to(folder / "nowhere.png")
    return folder


def test_every_image_is_copied_degraded_and_the_rest_named(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "new" / "target"
    report = degrade_folder(source, target, seed=5, severity=0.5)
    written = {file.file: file for file in report.files}
    assert set(written) == {"a.png", "d.webp", "deep/c.TIF", "deep/er/b.jpg", "e.gif.png", "f.bmp"}
    assert {skip.name for skip in report.skipped} == {"notes.txt", "broken.png", "dangling.png"}
    assert all(skip.reason for skip in report.skipped)
    manifest = json.loads((target / "manifest.json").read_text())
    assert manifest["seed"] == 5
    assert manifest["severity"] == 0.5
    assert manifest["parameters"]["transmission"] == list(Degradation().scaled(0.5).transmission)
    assert {entry["file"] for entry in manifest["files"]} == set(written)
    assert {skip["name"] for skip in manifest["skipped"]} == {"notes.txt", "broken.png", "dangling.png"}
    on_disk = {path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file()}
    assert on_disk == {*written, "manifest.json"}
    assert [path.name for path in target.parent.iterdir()] == ["target"]


def test_the_manifest_is_enough_to_make_a_picture_again(source: Path, tmp_path: Path) -> None:
    degrade_folder(source, tmp_path / "target", seed=9)
    manifest = json.loads((tmp_path / "target" / "manifest.json").read_text())
    for name in ("a.png", "d.webp"):
        entry = next(item for item in manifest["files"] if item["file"] == name)
        with Image.open(source / entry["source"]) as opened:
            clean = np.asarray(opened.convert("RGB"), dtype=np.float64) / 255
        with Image.open(tmp_path / "target" / name) as opened:
            levels = np.asarray(opened.convert("RGB"))
        again = degrade_image(clean, np.random.default_rng(entry["seed"]), severity=manifest["severity"])
        assert np.abs(levels - again * 255).max() <= 0.5 + 1e-4


def test_a_picture_depends_on_seed_and_name_alone(source: Path, tmp_path: Path) -> None:
    degrade_folder(source, tmp_path / "one", seed=1)
    (source / "a.png").rename(source / "z.png")
    degrade_folder(source, tmp_path / "two", seed=1)
    degrade_folder(source, tmp_path / "three", seed=2)
    assert (tmp_path / "one/d.webp").read_bytes() == (tmp_path / "two/d.webp").read_bytes()
    assert (tmp_path / "one/d.webp").read_bytes() != (tmp_path / "three/d.webp").read_bytes()
    assert (tmp_path / "one/a.png").read_bytes() != (tmp_path / "two/z.png").read_bytes()


def test_existing_and_impossible_folders_are_refused(source: Path, tmp_path: Path) -> None:
    existing = tmp_path / "existing"
    existing.mkdir()
    with pytest.raises(InputError, match="exists already"):
        degrade_folder(source, existing)
    with pytest.raises(InputError, match="lies inside"):
        degrade_folder(source, source / "inside")
    with pytest.raises(InputError, match="no folder"):
        degrade_folder(source / "a.png", tmp_path / "target")
    with pytest.raises(InputError, match="severity"):
        degrade_folder(source, tmp_path / "target", severity=-1)
    with pytest.raises(InputError, match="seed"):
        degrade_folder(source, tmp_path / "target", seed=-1)
    assert not (tmp_path / "target").exists()


def test_an_interrupted_run_leaves_nothing(source: Path, tmp_path: Path) -> None:
    def interrupt(done: int, total: int) -> None:
        if done == total - 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        degrade_folder(source, tmp_path / "target", progress=interrupt)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source"]


def test_a_name_that_is_no_utf8_is_degraded_and_listed(tmp_path: Path) -> None:

    (tmp_path / "in").mkdir()
    with (tmp_path / "in" / os.fsdecode(b"sc\xffne.png")).open("wb") as stream:
        Image.new("RGB", (16, 16), "green").save(stream, "PNG")
    degrade_folder(tmp_path / "in", tmp_path / "out", seed=0)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert "sc\udcffne.png" in json.dumps(manifest, ensure_ascii=False)
