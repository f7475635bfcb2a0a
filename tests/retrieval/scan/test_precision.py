"""A search over rounded vectors gives the exact hits and nearly the exact evidence."""

from pathlib import Path

import pytest

from evidex.errors import InputError
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.retriever import Retriever
from evidex.retrieval.scan.precision import Precision, checked_precision
from evidex.retrieval.searchable import OwnRows
from tests.retrieval.archive import WORDS, tiny_model, write_images


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Gallery:
    folder = tmp_path_factory.mktemp("precision")
    made = Gallery.create(folder / "gallery", tiny_model())
    made.add(write_images(folder / "images", 60))
    return made


@pytest.mark.parametrize("precision", ["bfloat16", "int8"])
def test_rounded_vectors_find_what_exact_ones_find(gallery: Gallery, precision: Precision) -> None:
    exact = Retriever(gallery).search_batch(texts=WORDS, top=5)
    rounded = Retriever(gallery, rows=OwnRows(gallery, precision=precision)).search_batch(texts=WORDS, top=5)
    for one, two in zip(exact, rounded, strict=True):
        assert [hit.id for hit in one.hits] == [hit.id for hit in two.hits]
        assert [hit.score for hit in one.hits] == pytest.approx([hit.score for hit in two.hits], abs=1e-6)
        assert one.uncertainty == pytest.approx(two.uncertainty, rel=5e-3)


def test_rounded_vectors_follow_a_growing_gallery(gallery: Gallery, tmp_path: Path) -> None:
    retriever = Retriever(gallery, rows=OwnRows(gallery, precision="int8"))
    before = retriever.search(text=WORDS[0], top=100)
    gallery.add(write_images(tmp_path / "more", 3, first=200))
    retriever.refresh()
    assert len(retriever.search(text=WORDS[0], top=100).hits) == len(before.hits) + 3


def test_an_unknown_precision_is_named() -> None:
    with pytest.raises(InputError, match="precision 'int4' is unknown"):
        checked_precision("int4")
