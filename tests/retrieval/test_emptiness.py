"""A search with nothing to look at says why."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from evidex.data.footprints import Bounds, Footprint
from evidex.retrieval.emptiness import why_nothing, with_reasons
from evidex.retrieval.filters import Filters, Selector
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.retriever import Retriever
from evidex.retrieval.rows import Row, item_id
from tests.retrieval.archive import tiny_model

_RING = Footprint(((10.0, 50.0), (10.0, 49.0), (11.0, 49.0), (11.0, 50.0)))
_DAY = datetime(2021, 6, 1, tzinfo=UTC)


def _row(name: str, **known: object) -> Row:
    return replace(Row(item_id(name), name, "image", "0" * 64), **known)  # type: ignore[arg-type]


def _gallery(path: Path, *rows: Row) -> Gallery:
    gallery = Gallery.create(path, tiny_model())
    vectors = np.random.default_rng(0).standard_normal((len(rows), 32)).astype(np.float32)
    gallery.append(list(rows), vectors / np.linalg.norm(vectors, axis=1, keepdims=True) if rows else vectors)
    return gallery


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Gallery:
    """One row with a date and a place of its own, one with neither, one dated elsewhere in time."""
    return _gallery(
        tmp_path_factory.mktemp("known") / "g",
        _row("/a/dated.tif", acquired=_DAY, footprint=_RING),
        _row("/a/plain.tif"),
        _row("/b/late.tif", acquired=datetime(2023, 2, 3, tzinfo=UTC)),
    )


FAR = Bounds(100.0, 0.0, 101.0, 1.0)
NEAR = Bounds(9.0, 48.0, 12.0, 51.0)
LATER = datetime(2030, 1, 1, tzinfo=UTC)


def test_an_empty_gallery_is_called_empty(tmp_path: Path) -> None:
    gallery = _gallery(tmp_path / "g")
    assert "is empty" in why_nothing(gallery, Filters(glob="x"))
    (answer,) = with_reasons([Retriever(gallery).search(text="a river")], gallery, Filters(), None)
    assert answer.explanation == "Nothing was searched: the gallery is empty; put something in with 'evidex index'."


@pytest.mark.parametrize(
    ("filters", "words"),
    [
        (Filters(bbox=FAR), "none of the 3 pictures touches the area"),
        (Filters(after=LATER), "the dated ones are from 2021-06-01 to 2023-02-03"),
        (Filters(before=datetime(2000, 1, 1, tzinfo=UTC)), "none of the 3 pictures was taken in that time"),
        (Filters(after=datetime(2022, 1, 1, tzinfo=UTC), before=datetime(2022, 2, 1, tzinfo=UTC)), "in that time"),
        (Filters(after=LATER, before=datetime(2022, 2, 1, tzinfo=UTC)), "before 2022-02-01; swap the two"),
        (
            Filters(glob="*none*"),
            "the path of none of the 3 pictures matches '*none*'; the paths are such as '/a/dated.tif'",
        ),
        (Filters(glob="nothing*"), "matches 'nothing*'; the paths are such as '/a/dated.tif'"),
        (Filters(bbox=NEAR, glob="/b/*"), "none passes all of them"),
        (Filters(bbox=NEAR, after=LATER), "in that time"),
    ],
)
def test_the_filter_that_lets_nothing_pass_is_named(known: Gallery, filters: Filters, words: str) -> None:
    selected = Selector(known).select(filters, "images")
    assert selected is not None
    assert not selected.any()
    assert words in why_nothing(known, filters)


@pytest.mark.parametrize(
    ("tried", "instead"),
    [("ate*", "*ate*"), ("./ate*", "*ate*"), ("*.TIF", "*.tif"), ("B/Late*", "b/late*"), ("./A/PLAIN", "*a/plain*")],
)
def test_the_pattern_that_is_proposed_finds_something(known: Gallery, tried: str, instead: str) -> None:
    assert why_nothing(known, Filters(glob=tried)).endswith(f"matches '{tried}'; try '{instead}'")
    selected = Selector(known).select(Filters(glob=instead), "images")
    assert selected is None or selected.any()


def test_letters_of_both_kinds_are_shown_as_they_are(tmp_path: Path) -> None:
    gallery = _gallery(tmp_path / "g", _row("/Scenes/a.tif"), _row("/b/Harbour_2024.TIF"))
    reason = why_nothing(gallery, Filters(glob="b/harbour*"))
    assert reason.endswith("small and capital letters count, as in '/b/Harbour_2024.TIF'")


def test_rows_that_know_neither_place_nor_time(tmp_path: Path) -> None:
    gallery = _gallery(tmp_path / "g", _row("/a.tif"), _row("/b.tif"))
    assert "none of the 2 pictures has a date" in why_nothing(gallery, Filters(after=_DAY))
    assert "none of the 2 pictures knows its place" in why_nothing(gallery, Filters(bbox=NEAR))


def test_texts_that_have_dates_do_not_speak_for_pictures(tmp_path: Path) -> None:
    gallery = _gallery(tmp_path / "g", _row("/a.tif"), _row("/t", kind="text", captions=("a",), acquired=_DAY))
    assert "none of the 1 pictures has a date" in why_nothing(gallery, Filters(after=_DAY))


def test_rows_of_the_other_kind_alone(tmp_path: Path, known: Gallery) -> None:
    assert "holds no texts, only pictures" in why_nothing(known, Filters(), "texts")
    only_texts = _gallery(tmp_path / "g", _row("/t", kind="text", captions=("a",)))
    assert "holds no pictures, only texts" in why_nothing(only_texts, Filters(), "images")


def test_answers_with_rows_are_left_as_they_are(known: Gallery) -> None:
    answer = Retriever(known).search(text="a river")
    assert with_reasons([answer], known, Filters(), None) == [answer]
    assert answer.emptiness is None
