"""The commands index, search and calibrate as a user runs them, and what kill -9 leaves of an index."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evidex.retrieval.gallery import Gallery
from tests.cli.running import runner
from tests.retrieval.archive import WORDS, tiny_model, write_images, write_raster

ROOT = Path(__file__).resolve().parents[2]

# Indexes argv[1] into argv[2] and notes every acknowledged id at once in argv[3].
INDEXER = """
import os, sys
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.indexing import IndexOptions
notes = os.open(sys.argv[3], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
note = lambda ids: os.write(notes, ("".join(i + "\\n" for i in ids)).encode())
gallery = Gallery.open(sys.argv[2])
gallery.add(sys.argv[1], options=IndexOptions(workers=1, batch_size=8, rows_a_commit=8, committed=note))
print("done")
"""


def _evidex(*arguments: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "evidex.cli.app", *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert result.returncode == code, result.stderr
    return result


def _json(*arguments: str | Path) -> Any:
    return json.loads(_evidex(*arguments, "--json").stdout)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("archive")
    tiny_model().save(folder / "model.safetensors")
    paths = write_images(folder / "a" / "images", 24)
    values = np.random.default_rng(0).integers(1, 3000, (4, 1100, 1100)).astype(np.uint16)
    write_raster(folder / "a" / "scene.tif", values)
    (folder / "a" / "broken.jpg").write_bytes(b"\xff\xd8\xff\xe0 no more")
    entries = [
        {"filename": path.name, "split": "val", "captions": [f"{WORDS[n % 4]} {n}"]} for n, path in enumerate(paths)
    ]
    (folder / "a" / "captions.json").write_text(json.dumps({"dataset": "a", "images": entries}))
    return folder


@pytest.mark.slow
def test_index_search_and_calibrate(place: Path) -> None:
    gallery = place / "gallery"
    made = _json("index", place / "a", "--gallery", gallery, "--model", place / "model.safetensors",
                 "--bands", "3,2,1", "--report", place / "report.json")  # fmt: skip
    assert (made["found"], made["added"], made["rows"]) == (26, 25, 24 + 9)
    assert [Path(skip["name"]).name for skip in made["skipped"]] == ["broken.jpg"]
    assert json.loads((place / "report.json").read_text()) == made
    assert any("captions of the gallery" in source for source in made["calibrated_by"])
    again = _json("index", place / "a", "--gallery", gallery, "--bands", "3,2,1")
    assert (again["unchanged"], again["encoded"]) == (25, 0)

    answer = _json("search", WORDS[1], "--gallery", gallery, "--top", "5", "--sheet", place / "sheet.html")
    assert len(answer["hits"]) == 5
    assert answer["calibrated"]
    assert answer["verdict"] in ("answered", "refined", "abstained")
    assert "<html" in (place / "sheet.html").read_text()
    found = json.loads(
        _evidex("search", "--image", place / "a/images/scene_0003.png", "--gallery", gallery, "--glob", "*.tif",
                "--bbox", "13.2,52.4,13.5,52.6", "--geojson").stdout
    )  # fmt: skip
    assert {feature["geometry"]["type"] for feature in found["features"]} == {"Polygon"}
    assert {feature["properties"]["kind"] for feature in found["features"]} == {"tile"}
    itself = _json("search", "--image", place / "a/images/scene_0003.png", "--gallery", gallery, "--top", "1")
    assert itself["hits"][0]["path"].endswith("scene_0003.png")
    assert itself["hits"][0]["score"] == pytest.approx(1.0, abs=1e-5)
    shown = _evidex("search", WORDS[0], "--gallery", gallery, "--why").stdout
    assert "uncertainty" in shown

    (calibrated,) = _json("calibrate", "--gallery", gallery, "--dataset", place / "a", "--alpha", "0.5")
    assert (calibrated["count"], calibrated["labelled"]) == (24, 24)
    assert calibrated["guarantee"]["sentence"]


def test_user_errors_are_one_line(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_images(tmp_path / "few", 2)
    other = tmp_path / "other.safetensors"
    tiny_model(1).save(other)
    gallery = tmp_path / "gallery"
    Gallery.create(gallery, tiny_model())
    alone = _evidex("search", "a river", "--gallery", tmp_path / "none", code=2)
    assert alone.stderr.startswith("evidex: error: ")
    assert alone.stderr.count("\n") == 1
    evidex = runner(monkeypatch, capsys)
    for arguments, words in (
        (["search", "a river", "--gallery", tmp_path / "none"], "is no gallery"),
        (["index", tmp_path / "few", "--gallery", gallery, "--model", other], "another model"),
        (["index", tmp_path / "nothing", "--gallery", gallery], "does not exist"),
        (["index", tmp_path / "few", "--gallery", gallery, "--bands", "x"], "bands 'x'"),
        (["search", "a", "--gallery", gallery, "--bbox", "1,2,3"], "west,south,east,north"),
        (["search", "a", "--gallery", gallery, "--after", "soon"], "no time"),
    ):
        assert words in evidex(*arguments).complaint
    assert place.exists()


@pytest.mark.slow
def test_kill_9_at_random_moments_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    files = {str(path) for path in write_images(tmp_path / "a", 200)}
    values = np.random.default_rng(1).integers(0, 255, (3, 1100, 1100), dtype=np.uint8)
    files.add(str(write_raster(tmp_path / "a" / "scene.tif", values)))
    gallery, notes = tmp_path / "gallery", tmp_path / "notes"
    Gallery.create(gallery, tiny_model())
    rng = np.random.default_rng(7)
    kills = 0
    for _ in range(8):
        process = _start(tmp_path / "a", gallery, notes)
        _wait_for_progress(process, notes, int(rng.integers(0, 4)), float(rng.uniform(0, 0.12)))
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.wait()
        _check(gallery, notes)
    assert kills >= 5
    process = _start(tmp_path / "a", gallery, notes)
    assert process.communicate(timeout=120)[0] == b"done\n"
    _check(gallery, notes)
    opened = Gallery.open(gallery)
    rows = opened.rows(range(len(opened)))
    assert {row.path for row in rows} == files
    assert len(rows) == 200 + 9
    by_path = {row.path: position for position, row in enumerate(rows) if row.window is None}
    sample = sorted(by_path)[::20]
    expected = tiny_model().encode_images(sample)
    assert np.abs(opened.vectors[[by_path[path] for path in sample]] - expected).max() < 1e-5


@pytest.mark.slow
def test_sigterm_ends_an_index_as_ctrl_c_does(tmp_path: Path) -> None:
    write_images(tmp_path / "a", 400)
    tiny_model().save(tmp_path / "model.safetensors")
    gallery = tmp_path / "gallery"
    command = [sys.executable, "-m", "evidex", "index", str(tmp_path / "a"), "--gallery", str(gallery)]
    command += ["--model", str(tmp_path / "model.safetensors"), "--workers", "1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while len(list(gallery.glob("rows.lance/data/*"))) < 1 and time.monotonic() < deadline:
        time.sleep(0.01)
    process.terminate()
    out, err = process.communicate(timeout=60)
    assert process.returncode == 143, err
    rows = len(Gallery.open(gallery))
    assert rows > 0
    assert (out, err) == ("", f"stopped; {rows} rows are in {gallery} and stay; run it again to go on\n")


@pytest.mark.slow
def test_of_two_first_indexers_one_wins_and_the_other_says_what_to_do(tmp_path: Path) -> None:
    write_images(tmp_path / "a", 300)
    tiny_model().save(tmp_path / "model.safetensors")
    command = [sys.executable, "-m", "evidex", "index", str(tmp_path / "a"), "--gallery", str(tmp_path / "gallery")]
    command += ["--model", str(tmp_path / "model.safetensors"), "--workers", "1", "--no-calibrate"]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=120) for process in both]
    # One may be so much slower than the other that it comes when all is done.
    codes = sorted(process.returncode for process in both)
    assert codes in ([0, 0], [0, 2])
    for process, (_, err) in zip(both, said, strict=True):
        if process.returncode:
            assert "is being indexed by another process; wait for it to end, then run this again" in err
    assert len(Gallery.open(tmp_path / "gallery")) == 300


def _start(folder: Path, gallery: Path, notes: Path) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", INDEXER, str(folder), str(gallery), str(notes)],
        stdout=subprocess.PIPE, env=environment, cwd=ROOT,
    )  # fmt: skip


def _wait_for_progress(process: subprocess.Popen[bytes], notes: Path, commits: int, then: float) -> None:
    """Wait until this run has acknowledged so many commits, and a moment more."""
    before = notes.stat().st_size if notes.exists() else 0
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        if notes.exists() and notes.stat().st_size - before >= commits * 8 * 25:
            break
        time.sleep(0.005)
    time.sleep(then)


def _check(gallery: Path, notes: Path) -> None:
    """Every acknowledged row is there once, and the vectors can be read."""
    opened = Gallery.open(gallery)
    ids = [row.id for row in opened.rows(range(len(opened)))]
    assert len(set(ids)) == len(ids)
    acknowledged = set(notes.read_text().split()) if notes.exists() else set()
    assert acknowledged <= set(ids)
    assert opened.vectors.shape == (len(ids), 32)
    assert np.allclose(np.linalg.norm(opened.vectors, axis=1), 1.0, atol=1e-5)
