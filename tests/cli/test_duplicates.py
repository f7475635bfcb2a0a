"""evidex duplicates, and copies in the answers of evidex search."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evidex.retrieval.gallery import Gallery
from evidex.retrieval.indexing import IndexOptions
from tests.cli.running import Runner
from tests.retrieval.archive import picture, tiny_model


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("doubled")
    for name in ("a.png", "b.png"):
        picture(1).save(folder / name)
    picture(1).resize((96, 80)).save(folder / "large.png")
    picture(2).save(folder / "other.png")
    made = Gallery.create(folder / "gallery", tiny_model())
    made.add(folder, options=IndexOptions(workers=1))
    return made.path


def test_copies_are_listed_with_how_they_are(gallery: Path, evidex: Runner) -> None:
    told = evidex("duplicates", "--gallery", gallery)
    assert told.code == 0
    first, *others, last = told.out.splitlines()
    assert Path(first).name == "a.png"
    assert {(line.split()[0], Path(line.split()[1]).name) for line in others} == {
        ("same", "b.png"), ("near", "large.png"),
    }  # fmt: skip
    assert last == "1 picture is there more than once, 2 of 4 rows are copies"
    content = json.loads(evidex("duplicates", "--gallery", gallery, "--json").out)
    assert (content["copies"], content["rows"], content["without_hash"]) == (2, 4, 0)
    assert [len(group["copies"]) for group in content["groups"]] == [2]


def test_a_search_shows_a_picture_once_unless_all_copies_are_wanted(gallery: Path, evidex: Runner) -> None:
    found = json.loads(evidex("search", "a river", "--gallery", gallery, "--json").out)
    assert sorted(len(hit["copies"]) for hit in found["hits"]) == [0, 2]
    every = json.loads(evidex("search", "a river", "--gallery", gallery, "--json", "--copies").out)
    assert [hit["copies"] for hit in every["hits"]] == [[]] * 4
    assert "(2 more places)" in evidex("search", "a river", "--gallery", gallery).out
