"""Bands, a sensor or tiles, chosen for what has none: told in a line, never passed over in silence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evidex.retrieval.gallery import Gallery
from tests.cli.running import Runner
from tests.retrieval.archive import picture, tiny_model, write_raster

CHOICES = (("--bands", "4,3,2"), ("--sensor", "sentinel-2"))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bands")
    for number in range(2):
        picture(number).save(folder / f"{number}.jpg")
    write_raster(folder / "scene.tif", np.arange(4 * 64 * 64, dtype=np.uint16).reshape(4, 64, 64))
    Gallery.create(folder / "gallery", tiny_model()).add(folder / "0.jpg")
    tiny_model().save(folder / "model.safetensors")
    return folder


@pytest.mark.parametrize("choice", CHOICES)
def test_words_and_pictures_have_no_bands(place: Path, evidex: Runner, choice: tuple[str, str]) -> None:
    asked = ("--gallery", place / "gallery", *choice)
    assert f"{choice[0]} is of an example image, and none is given" in evidex("search", "a river", *asked).complaint
    told = evidex("search", "--image", place / "1.jpg", *asked).complaint
    assert "1.jpg' has no bands to choose" in told
    assert f"leave out {choice[0]}" in told
    of_both = evidex("search", "--image", place / "scene.tif", "--image", place / "1.jpg", *asked)
    assert "1.jpg' has no bands" in of_both.complaint
    assert "0.jpg' has no bands" in evidex("locate", "a river", place / "0.jpg", *choice).complaint


def test_a_scene_with_bands_is_shown_in_them(place: Path, evidex: Runner) -> None:
    assert (
        evidex("search", "--image", place / "scene.tif", "--bands", "4,3,2", "--gallery", place / "gallery").code == 0
    )


def test_an_index_says_how_many_pictures_have_none(place: Path, evidex: Runner, tmp_path: Path) -> None:
    made = ("--gallery", tmp_path / "g", "--model", place / "model.safetensors", "--no-calibrate", "--bands", "4,3,2")
    told = evidex("index", place / "0.jpg", place / "1.jpg", *made).complaint
    assert "none of the 2 files has bands to choose" in told
    assert not (tmp_path / "g").exists()
    mixed = evidex("index", place / "*.*", *made)
    assert mixed.code == 0
    assert "note: --bands changes nothing for 2 pictures" in mixed.err
    alone = evidex("index", place / "scene.tif", "--gallery", tmp_path / "h", *made[2:])
    assert (alone.code, "note" in alone.err) == (0, False)


@pytest.mark.parametrize(("tile", "told"), [("64", True), ("0", False), (None, False)])
def test_an_index_says_how_many_pictures_are_not_cut(
    place: Path, evidex: Runner, tmp_path: Path, tile: str | None, told: bool
) -> None:
    picture(5).resize((200, 200)).save(tmp_path / "large.jpg")
    made = ("--gallery", tmp_path / "g", "--model", place / "model.safetensors", "--no-calibrate", "--overlap", "0")
    chosen = () if tile is None else ("--tile", tile)
    ran = evidex("index", tmp_path / "large.jpg", place / "scene.tif", *made, *chosen, "--bands", "1")
    assert ran.code == 0
    assert ("note: --tile changes nothing for 1 picture: only TIFF and JPEG 2000 are cut" in ran.err) == told


def test_an_index_without_the_bands_of_before_says_so(place: Path, evidex: Runner, tmp_path: Path) -> None:
    made = ("index", place / "scene.tif", "--gallery", tmp_path / "g", "--model", place / "model.safetensors")
    assert "otherwise" not in evidex(*made, "--no-calibrate", "--bands", "4,3,2").out
    again = evidex(*made, "--no-calibrate", "--bands", "1", "--stretch", "1,99").out
    assert "1 updated" in again
    assert (
        "1 of them has not changed, but is read otherwise than before (--bands 4,3,2 then and 1 now, --stretch 2,98 "
        "then and 1,99 now); index again with what was given then to have it as before\n"
    ) in again
    assert "--sensor not given then and sentinel-2 now" in evidex(*made, "--bands", "1", "--sensor", "sentinel-2").out
    (place / "scene.tfw").write_text("1\n0\n0\n-1\n0\n0\n")
    beside = evidex(*made, "--bands", "1", "--sensor", "sentinel-2").out
    (place / "scene.tfw").unlink()
    assert "read otherwise than before, since what a catalog tells or what lies beside is not the same\n" in beside
