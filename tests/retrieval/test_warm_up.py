"""Warm-up is done before a query is timed, and changes no answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from evidex.retrieval.gallery import Gallery
from evidex.retrieval.indexing import IndexOptions
from evidex.retrieval.retriever import Retriever
from evidex.retrieval.warm_up import warm_up
from tests.retrieval.archive import tiny_model, write_images


@pytest.mark.parametrize("direction", ["text", "image"])
def test_everything_a_query_needs_is_there_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, direction: str
) -> None:
    write_images(tmp_path / "a", 3)
    Gallery.create(tmp_path / "g", tiny_model()).add(tmp_path / "a", options=IndexOptions(workers=1))
    gallery = Gallery.open(tmp_path / "g")
    assert warm_up(gallery, direction) > 0  # type: ignore[arg-type]

    def reload(*_: object, **__: object) -> None:
        raise AssertionError("warm-up came too late")

    monkeypatch.setattr("evidex.encoders.model.load_model", reload)
    monkeypatch.setattr("evidex.retrieval.gallery.map_vectors", reload)
    found = Retriever(gallery).search(text="a river", top=3)
    fresh = Retriever(Gallery.open(tmp_path / "g", tiny_model()))
    monkeypatch.undo()
    assert [hit.id for hit in found.hits] == [hit.id for hit in fresh.search(text="a river", top=3).hits]


def test_an_empty_gallery_needs_no_scan(tmp_path: Path) -> None:
    gallery = Gallery.create(tmp_path / "g", tiny_model())
    assert warm_up(gallery, "text") >= 0
    assert Retriever(gallery).search(text="a river").hits == ()
