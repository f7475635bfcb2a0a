"""evidex search: the answer the server gives, in words and as JSON, and one line for what makes no sense."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from evidex.retrieval.gallery import Gallery
from evidex.server.settings import Settings
from tests.cli.running import Runner
from tests.retrieval.archive import tiny_model, write_raster
from tests.server.places import asking, make_gallery, texts_by_verdict


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Gallery:
    return make_gallery(tmp_path_factory.mktemp("searched"))


def _served(gallery: Gallery, *bodies: dict[str, Any]) -> list[Any]:
    async def ask(client: httpx.AsyncClient) -> list[Any]:
        return [(await client.post("/search", json=body)).json() for body in bodies]

    return asking(Settings(gallery.path), ask)


def test_json_is_what_the_server_answers(gallery: Gallery, evidex: Runner) -> None:
    texts = sorted(texts_by_verdict(gallery).values())
    for text, served in zip(texts, _served(gallery, *({"text": text, "top": 5} for text in texts)), strict=True):
        printed = json.loads(evidex("search", text, "--gallery", gallery.path, "--top", 5, "--json").out)
        assert list(printed) == list(served)
        assert list(printed["timings_ms"]) == list(served["timings_ms"])
        del printed["timings_ms"], served["timings_ms"]
        assert printed == served
        assert printed["hits"][0]["acquired"].endswith("Z")
        assert len(printed["hits"][0]["corners"]) == 4


def test_words_begin_with_the_headline_of_the_page(gallery: Gallery, evidex: Runner) -> None:
    for text in texts_by_verdict(gallery).values():
        (served,) = _served(gallery, {"text": text})
        lines = evidex("search", text, "--gallery", gallery.path).out.splitlines()
        assert lines[0] == served["headline"]
        assert " ".join(" ".join(lines[1:]).split()).startswith(served["explanation"])


def test_words_fit_into_80_columns(gallery: Gallery, evidex: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = evidex("search", "a river", "--gallery", gallery.path, "--top", 12).out.splitlines()
    assert max(map(len, lines)) <= 80
    assert sum(line.split()[:1] == [str(rank)] for rank in range(1, 13) for line in lines) == 12
    assert "warm-up" in " ".join(lines)


def test_nothing_searched_says_why(gallery: Gallery, evidex: Runner, tmp_path: Path) -> None:
    told = " ".join(evidex("search", "a", "--gallery", gallery.path, "--after", "2090-01-01").out.split())
    assert told.startswith("There was nothing to search Nothing was searched: none of the 24 pictures was taken in")
    (served,) = _served(gallery, {"text": "a", "after": "2090-01-01"})
    assert served["explanation"] in told
    empty = Gallery.create(tmp_path / "empty", gallery.model)
    assert "the gallery is empty" in evidex("search", "a", "--gallery", empty.path).out


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["a", "--json", "--geojson"], "--json and --geojson are both given; choose one"),
        (["--image", "FOLDER"], "is a folder; give a file"),
        (["a lake", "--image", "x.png"], "both a text ('a lake') and an image ('x.png') are given"),
        ([], "there is no query"),
        (["  "], "the query is empty"),
        (["river " * 400], "the query has 2400 characters, more than 2000; shorten it"),
        (["--image", "none.png"], "none.png"),
        (["a", "--among", "maps"], "among 'maps' is unknown"),
        (["a", "--stac", "--json"], "--json and --stac are both given; choose one"),
        (["--stac", "a lake"], "there is no query"),
        (["a", "--stac", "a lake"], "--stac 'a lake': name a .json file"),
        (["a", "--max-cloud", "120"], "max_cloud is 120; give percent, 0 to 100"),
        (["a", "--stac", "/no/such/folder/x.json"], "is no folder"),
    ],
)
def test_what_makes_no_sense_is_one_line(
    gallery: Gallery, evidex: Runner, tmp_path: Path, words: list[str], complaint: str
) -> None:
    asked = [str(tmp_path) if word == "FOLDER" else word for word in words]
    assert complaint in evidex("search", *asked, "--gallery", gallery.path).complaint


def test_a_gallery_with_damaged_rows_is_one_line(gallery: Gallery, evidex: Runner, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(gallery.path, damaged)
    for file in (damaged / "rows.lance" / "data").iterdir():
        file.write_bytes(file.read_bytes()[:100])
    ran = evidex("search", "a river", "--gallery", damaged)
    assert ran.code == 2
    assert ran.err.startswith(f"evidex: error: '{damaged}' is damaged: rows.lance/data/")
    assert len(ran.err.splitlines()) == 1


def test_a_scene_of_16_bits_and_four_bands_is_found_by_its_own_file(evidex: Runner, tmp_path: Path) -> None:
    """As it was indexed, so it is searched with, whether its bands are named again or not."""
    tiny_model().save(tmp_path / "model.safetensors")
    (tmp_path / "scenes").mkdir()
    rng = np.random.default_rng(0)
    for number in range(4):
        coarse = rng.integers(200, 3000, (4, 6, 6)).astype(np.uint16)
        write_raster(tmp_path / "scenes" / f"{number}.tif", coarse.repeat(16, axis=1).repeat(16, axis=2))
    place = tmp_path / "gallery"
    made = ("--gallery", place, "--bands", "4,3,2")
    evidex("index", tmp_path / "scenes", *made, "--model", tmp_path / "model.safetensors")
    for number in range(4):
        example = tmp_path / "scenes" / f"{number}.tif"
        answer = json.loads(evidex("search", "--image", example, *made, "--json").out)
        assert answer["hits"][0]["path"].endswith(f"{number}.tif")
        assert answer["hits"][0]["score"] > 0.9999
        assert answer["query"] == str(example)
        again = json.loads(evidex("search", "--image", example, "--gallery", place, "--json").out)
        assert again["hits"] == answer["hits"]
    strange = write_raster(tmp_path / "strange.tif", np.ones((2, 64, 64), np.uint16))
    complaint = evidex("search", "--image", strange, *made).complaint
    assert "strange.tif' has 2 bands, not 4" in complaint


def test_what_a_verdict_stands_on_is_told_when_asked(gallery: Gallery, evidex: Runner) -> None:
    text = texts_by_verdict(gallery)["answered"]
    (served,) = _served(gallery, {"text": text})
    plain, told = (
        " ".join(evidex("search", text, "--gallery", gallery.path, *options).out.split())
        for options in ((), ("--why",))
    )
    assert served["details"]
    for line in served["details"]:
        assert line in told
        assert line not in plain
    assert "percentile" not in plain
    assert "--why" in plain
