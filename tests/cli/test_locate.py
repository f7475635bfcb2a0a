"""evidex locate: one scene, a folder, a hit of a gallery; and one line for what cannot be done."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import rasterio
from PIL import Image

from evidex.retrieval.gallery import Gallery
from evidex.retrieval.indexing import IndexOptions
from tests.cli.running import Runner
from tests.locating.places import NO_TANKS, in_tanks, write_scene
from tests.retrieval.archive import picture, tiny_model, write_images


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scenes")
    write_scene(folder / "tanks.tif")
    write_scene(folder / "none.tif", NO_TANKS)
    return folder


def test_a_scene_gets_a_map_and_the_place_is_told(evidex: Runner, scenes: Path, tmp_path: Path) -> None:
    heat, peaks = tmp_path / "heat.tif", tmp_path / "peaks.geojson"
    done = evidex("locate", "storage tanks", scenes / "tanks.tif", "--out", heat, "--out", peaks, "--json")
    assert done.code == 0
    found = json.loads(done.out)
    assert found["finding"] in ("found", "perhaps")
    assert in_tanks(found["peaks"][0]["x"], found["peaks"][0]["y"])
    assert found["peaks"][0]["place"]["latitude"] == pytest.approx(52.5, abs=0.1)
    with rasterio.open(heat) as written, rasterio.open(scenes / "tanks.tif") as scene:
        assert (written.crs, written.transform, written.shape) == (scene.crs, scene.transform, scene.shape)
        values = written.read(1)
    row, column = np.unravel_index(values.argmax(), values.shape)
    assert in_tanks(float(column), float(row))
    assert len(json.loads(peaks.read_text())["features"]) == len(found["peaks"])


def test_a_scene_without_it_says_so_and_its_map_is_flat(evidex: Runner, scenes: Path, tmp_path: Path) -> None:
    done = evidex("locate", "storage tanks", scenes / "none.tif", "--out", tmp_path / "heat.tif")
    assert done.code == 0
    assert done.out.splitlines()[0] == "Nothing here looks like storage tanks"
    with rasterio.open(tmp_path / "heat.tif") as written:
        assert not written.read(1).any()


@pytest.mark.parametrize("ending", ["png", "tif"])
def test_a_scene_of_one_colour_is_called_that(evidex: Runner, tmp_path: Path, ending: str) -> None:
    Image.new("RGB", (300, 200), (0, 0, 0)).save(tmp_path / f"black.{ending}")
    done = evidex("locate", "storage tanks", tmp_path / f"black.{ending}", "--json")
    found = json.loads(done.out)
    assert (done.code, found["finding"], found["windows"]) == (0, "empty", 0)
    assert found["headline"] == "There is nothing to see in this scene"
    assert found["explanation"] == "All its pixels are empty or of one colour."


def test_a_folder_is_looked_through_the_likest_first_and_bad_files_are_told(
    evidex: Runner, scenes: Path, tmp_path: Path
) -> None:
    for name in ("tanks.tif", "none.tif"):
        (tmp_path / "archive").mkdir(exist_ok=True)
        (tmp_path / "archive" / name).symlink_to(scenes / name)
    (tmp_path / "archive" / "broken.tif").write_bytes(b"II*\0 and no more")
    peaks = tmp_path / "peaks.geojson"
    told = evidex("locate", "storage tanks", tmp_path / "archive", "--out", tmp_path / "maps", "--out", peaks)
    assert told.code == 0
    assert told.out.splitlines()[0] == "Storage tanks: places in 1 of 2 scenes"
    assert "tanks.tif" in told.out.splitlines()[1]
    assert "skipped" in told.err
    assert "broken.tif" in told.err
    assert sorted(path.name for path in (tmp_path / "maps").iterdir()) == ["none.tif.tif", "tanks.tif.tif"]
    about = json.loads(peaks.read_text())["evidex"]
    assert [Path(one["scene"]).name for one in about] == ["tanks.tif", "none.tif"]


def test_a_hit_of_a_gallery_is_looked_into_by_its_id_or_path(evidex: Runner, scenes: Path, tmp_path: Path) -> None:
    gallery = Gallery.create(tmp_path / "gallery", tiny_model())
    gallery.add(scenes / "tanks.tif", options=IndexOptions(workers=1))
    row = gallery.rows([0])[0]
    for name in (row.id, row.path):
        done = evidex("locate", "storage tanks", name, "--gallery", tmp_path / "gallery", "--json")
        assert json.loads(done.out)["peaks"][0]["place"] is not None
    assert "is not in the gallery" in evidex("locate", "tanks", "else.tif", "--gallery", tmp_path / "gallery").complaint
    over = evidex("locate", "tanks", row.id, "--gallery", tmp_path / "gallery", "--out", scenes / "tanks.tif")
    assert "is a picture that would be lost" in over.complaint


def test_an_example_image_may_be_looked_for(evidex: Runner, tmp_path: Path) -> None:
    picture(1, (96, 96)).save(tmp_path / "scene.png")
    picture(2, (48, 48)).save(tmp_path / "example.png")
    done = evidex("locate", "--image", tmp_path / "example.png", tmp_path / "scene.png", "--out", tmp_path / "heat.png")
    assert done.out.splitlines()[0] == "The places most like example.png"
    assert (tmp_path / "heat.png").is_file()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("scene.png",), "alone does not say what to look for"),
        (("tanks", "scene.png", "more.png"), "one word too many"),
        (("--image", "scene.png", "tanks", "scene.png"), "one word too many"),
        (("  ", "scene.png"), "the query is empty"),
        (("tanks", "nowhere.tif"), "'nowhere.tif' does not exist"),
        (("tanks", "notes.txt"), "is no image"),
        (("tanks", "scene.png", "--out", "heat.jpg"), "neither .tif, .png nor .geojson"),
        (("tanks", "scene.png", "--out", "no/heat.tif"), "is no folder"),
        (("tanks", "scene.png", "--window", "large"), "give sides in pixels"),
        (("tanks", "scene.png", "--window", "4"), "at least 16 pixels"),
        (("tanks", "scene.png", "--max-pixels", "10"), "over 10"),
        (("tanks", "scene.png", "--gallery", "none"), "is no gallery"),
        (("tanks", "scene.png", "--gallery", "none", "--bands", "3,2,1"), "as the gallery has it"),
        (("tanks", "scene.png", "--out", "scene.png"), "is the scene itself"),
        (("--image", "example.png", "scene.png", "--out", "example.png"), "is the example itself"),
        (("--image", "example.png", "--image", "scene.png", "scene.png"), "2 examples are given"),
        (("-forest", "scene.png"), "see 'evidex locate --help'"),
        (("--image", "nowhere.png", "scene.png"), "'nowhere.png'"),
        (("--image", "notes.txt", "scene.png"), "is no image"),
        (("tanks", "folder", "--out", "heat.tif"), "name a folder"),
        (("tanks", "folder", "--out", "folder"), "among the scenes"),
        (("tanks", "folder", "--out", "folder/maps"), "among the scenes"),
        (("tanks", "bare"), "holds no scene"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_leaves_nothing(
    evidex: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], complaint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    picture(1, (96, 96)).save("scene.png")
    picture(2, (48, 48)).save("example.png")
    Path("notes.txt").write_text("no picture")
    write_images(Path("folder"), 2)
    Path("bare").mkdir()
    before = sorted(tmp_path.rglob("*"))
    assert complaint in evidex("locate", *words).complaint
    assert sorted(tmp_path.rglob("*")) == before


def test_a_folder_of_scenes_is_told_what_was_not_understood(evidex: Runner, scenes: Path) -> None:
    lines = evidex("locate", "no storage tanks", scenes).out.splitlines()
    assert lines[0] == "No storage tanks: places in 1 of 2 scenes"
    assert lines[1] == "The model does not understand 'no' and looks for what follows it all the same."
    assert "tanks.tif: 1 place looks like no storage tanks" in lines[2]
    assert "does not understand" not in evidex("locate", "storage tanks", scenes).out
