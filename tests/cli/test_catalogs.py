"""Catalogs and sensors on the command line."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest

from evidex.cli.options import completed
from evidex.data.sensors import SENSORS
from tests.cli.running import Runner
from tests.data.stac.catalogs import item, items, write, write_catalog
from tests.retrieval.archive import tiny_model, write_raster
from tests.retrieval.indexing.conftest import pool  # noqa: F401 (a fixture)

DOCS = (Path(__file__).resolve().parents[2] / "docs" / "maps.md").read_text(encoding="utf-8")


@pytest.fixture
def made(tmp_path: Path) -> tuple[object, ...]:
    tiny_model().save(tmp_path / "model.safetensors")
    return "--gallery", tmp_path / "g", "--model", tmp_path / "model.safetensors", "--no-calibrate"


def test_a_catalog_is_indexed_asked_and_written_again(evidex: Runner, tmp_path: Path, made: tuple[object, ...]) -> None:
    told = json.loads(evidex("index", write_catalog(tmp_path, 3), *made, "--workers", 1, "--json").out)
    assert (told["added"], told["skipped"]) == (3, [])
    asked = ("search", "a lake", "--gallery", tmp_path / "g")
    clear = json.loads(evidex(*asked, "--max-cloud", 15, "--collection", "summer", "--json").out)
    assert {hit["item"] for hit in clear["hits"]} == {"scene-0", "scene-1"}
    printed = json.loads(evidex(*asked, "--stac").out)
    assert [feature["type"] for feature in printed["features"]] == ["Feature"] * 3
    ran = evidex(*asked, "--stac", tmp_path / "hits.json", "--top", 2)
    assert "score" in ran.out  # the answer is told as ever
    assert json.loads((tmp_path / "hits.json").read_text())["features"] == printed["features"][:2]
    again = json.loads(
        evidex("index", tmp_path / "hits.json", "--gallery", tmp_path / "g", "--no-calibrate", "--json").out
    )
    assert (again["unchanged"], again["encoded"], again["rows"]) == (2, 0, 3)


@pytest.mark.usefixtures("pool")
def test_bad_items_are_told_like_bad_files(evidex: Runner, tmp_path: Path, made: tuple[object, ...]) -> None:
    bad = write(tmp_path / "bad.json", items(item("a", {"x": "gone.png"}), item("b", {})))
    assert "nothing was indexed; all 2 files were skipped" in evidex("index", bad, *made).complaint
    good = write_catalog(tmp_path, 1)
    ran = evidex("index", bad, good, *made)
    assert ran.code == 0
    assert f"skipped {bad}#b: has no asset" in ran.err
    assert "3 files found: 1 added, 2 skipped" in ran.out
    assert (
        "has no asset 'visual'; it has image"
        in evidex("index", good, *made[:1], tmp_path / "h", "--asset", "visual").complaint
    )
    (tmp_path / "no.json").write_text("{}")
    assert "is no STAC document" in evidex("index", tmp_path / "no.json", *made[:1], tmp_path / "h").complaint
    assert "'none.json' does not exist" in evidex("index", "none.json", *made).complaint


@pytest.mark.usefixtures("pool")
def test_a_sensor_chooses_bands_when_indexing_and_searching(
    evidex: Runner, tmp_path: Path, made: tuple[object, ...]
) -> None:
    rng = np.random.default_rng(0)
    (tmp_path / "scenes").mkdir()
    for number in range(3):
        coarse = rng.integers(7500, 16000, (7, 6, 6)).astype(np.uint16)
        write_raster(tmp_path / "scenes" / f"{number}.tif", coarse.repeat(16, axis=1).repeat(16, axis=2))
    assert evidex("index", tmp_path / "scenes", *made, "--sensor", "landsat-9").code == 0
    for more in ((), ("--sensor", "landsat-9")):
        said = evidex("search", "--image", tmp_path / "scenes" / "1.tif", "--gallery", tmp_path / "g", "--json", *more)
        best = json.loads(said.out)["hits"][0]
        assert best["path"].endswith("1.tif")
    complaint = evidex("index", tmp_path / "scenes", *made, "--sensor", "planetscope").complaint
    assert "7 bands, and scenes of planetscope have 3, 4, 5 or 8" in complaint
    assert "sensor 'spot' is unknown" in evidex("index", tmp_path / "scenes", *made, "--sensor", "spot").complaint


@pytest.mark.usefixtures("pool")
def test_the_commands_of_the_docs_work(evidex: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny_model().save(tmp_path / "model.safetensors")
    write_catalog(tmp_path, 2).parent.rename(tmp_path / "catalog")
    (tmp_path / "scenes").mkdir()
    values = np.arange(12 * 64 * 64).reshape(12, 64, 64).astype(np.uint16) % 3000
    for path in (tmp_path / "scenes" / "a.tif", tmp_path / "example.tif"):
        write_raster(path, values)
    monkeypatch.chdir(tmp_path)
    commands = [line for line in DOCS.splitlines() if line.startswith("evidex ") and "https:" not in line]
    assert len(commands) == 6
    for command in commands:
        _, *words = shlex.split(command)
        own = ["--model", "model.safetensors", "--no-calibrate"] if words[0] == "index" else []
        ran = evidex(*words, *own)
        assert ran.code == 0, ran.err
        assert "skipped" not in ran.err


def test_the_docs_tell_the_presets_as_they_are() -> None:
    for sensor in SENSORS.values():
        (line,) = (line for line in DOCS.splitlines() if line.startswith("| `") and f"`{sensor.name}`" in line)
        bands = "; ".join(f"{count} → {','.join(map(str, rgb))}" for count, rgb in sensor.bands.items())
        assert f"| {bands} |" in line
        assert f"{sensor.scale:.7f}".rstrip("0") in line


def test_stac_without_a_file_prints() -> None:
    assert completed(["search", "x", "--stac"]) == ["search", "x", "--stac", "-"]
    assert completed(["search", "--stac", "--top", "3", "x"]) == ["search", "--stac", "-", "--top", "3", "x"]
    assert completed(["search", "--stac", "a.json", "x"]) == ["search", "--stac", "a.json", "x"]
    assert completed(["--stac", "-"]) == ["--stac", "-"]
    assert completed([]) == []
