"""evidex search with several parts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from evidex.retrieval.gallery import Gallery
from evidex.retrieval.indexing import IndexOptions
from tests.cli.running import Runner
from tests.retrieval.archive import tiny_model, write_images, write_raster


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("asked")
    write_images(folder, 4)
    made = Gallery.create(folder / "gallery", tiny_model())
    made.add(folder, options=IndexOptions(workers=1))
    return made.path


def test_images_words_and_what_is_not_wanted_go_together(gallery: Path, evidex: Runner, tmp_path: Path) -> None:
    one, two = sorted(gallery.parent.glob("*.png"))[:2]
    asked = ("a river -snow", "--image", one, "--image", two, "--without", "dense houses")
    found = json.loads(evidex("search", *asked, "--gallery", gallery, "--json").out)
    assert found["query"] == f"{one} + {two} + a river -dense houses -snow"
    assert found["reasons"][0] == "several_parts"
    assert len(found["hits"]) == 4
    scene = write_raster(tmp_path / "scene.tif", np.arange(4 * 64 * 64, dtype=np.uint16).reshape(4, 64, 64))
    shown = ("a river -snow", "--image", scene, "--without", "dense houses", "--bands", "3,2,1")
    rendered = json.loads(evidex("search", *shown, "--gallery", gallery, "--json").out)
    assert rendered["query"] == f"{scene} + a river -snow -dense houses"
    assert "not known" in evidex("search", "a river", "--without", "snow", "--gallery", gallery).out


def test_only_what_is_not_wanted_is_no_question(gallery: Path, evidex: Runner) -> None:
    assert "only what is not wanted" in evidex("search", "--gallery", gallery, "--", "-snow").complaint
    assert "after --" in evidex("search", "-snow fields", "--gallery", gallery).complaint
    assert "there is no query" in evidex("search", "--gallery", gallery, "--without", "snow").complaint
