from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from evidex.errors import InputError
from evidex.retrieval.refine import Refiner, deferred, refine_features, refine_queries
from evidex.retrieval.refiners import GenericRefiner, RsRefiner


class HashEncoder:
    """A real function from content to unit rows: equal content, equal row; no weights needed."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def encode_texts(self, texts: Sequence[str], *, batch_size: int = 64) -> NDArray[np.float32]:
        assert batch_size > 0
        self.seen += texts
        return np.stack([self._row(text.encode()) for text in texts])

    def encode_images(self, images: Sequence[Any], *, batch_size: int = 64) -> NDArray[np.float32]:
        assert batch_size > 0
        return np.stack([self._row(image.tobytes()) for image in images])

    @staticmethod
    def _row(content: bytes) -> NDArray[np.float32]:
        row = np.frombuffer(hashlib.sha256(content).digest(), dtype=np.uint8).astype(np.float32) - 127.5
        return row / np.float32(np.linalg.norm(row))


class Words:
    def synonyms(self, word: str) -> tuple[str, ...]:
        return (f"{word}like",)


CAPTIONS = [f"{count} boats are in a harbor near a bridge ." for count in ("many", "several", "two", "three", "some")]


def pictures(count: int) -> list[Image.Image]:
    rng = np.random.default_rng(0)
    return [Image.fromarray(rng.integers(0, 256, (12, 10, 3), dtype=np.uint8)) for _ in range(count)]


def test_refined_features_are_the_mean_on_the_sphere() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(5, 8)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    refined = refine_features(rows[0], rows[1:])
    expected = rows.astype(np.float64).sum(axis=0)
    expected /= np.sqrt((expected**2).sum())
    assert refined.dtype == np.float32
    np.testing.assert_allclose(refined, expected, atol=1e-6)


def test_copies_equal_to_the_original_change_nothing() -> None:
    row = np.array([0.6, 0.8], dtype=np.float32)
    np.testing.assert_allclose(refine_features(row, np.tile(row, (4, 1))), row, atol=1e-7)


def test_copies_that_cancel_out_leave_the_original() -> None:
    row = np.array([1.0, 0.0], dtype=np.float32)
    np.testing.assert_array_equal(refine_features(row, -row[None]), row)


def test_features_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError, match="do not fit"):
        refine_features(np.zeros(3, np.float32), np.zeros((4, 2), np.float32))


@pytest.mark.parametrize("refiner", [RsRefiner(), GenericRefiner(thesaurus=Words())])
def test_texts_are_refined_by_four_copies(refiner: Refiner) -> None:
    model = HashEncoder()
    refined = refine_queries(model, CAPTIONS, "text", refiner, 3)
    for place, caption in enumerate(CAPTIONS):
        copies = refiner.texts(caption, np.random.default_rng([3, place]))
        assert len(copies) == 4
        rows = model.encode_texts([caption, *copies]).astype(np.float64)
        expected = rows.mean(axis=0) / np.linalg.norm(rows.mean(axis=0))
        np.testing.assert_allclose(refined[place], expected, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(refined, axis=1), 1, atol=1e-6)


@pytest.mark.parametrize("refiner", [RsRefiner(copies=2), GenericRefiner(copies=2)])
def test_images_are_refined_and_come_from_paths_too(refiner: Refiner, tmp_path: Path) -> None:
    images = pictures(35)
    refined = refine_queries(HashEncoder(), images, "image", refiner, 0)
    assert refined.shape == (35, 32)
    plain = HashEncoder().encode_images(images)
    assert (np.abs(refined - plain).max(axis=1) > 1e-3).all()
    images[34].save(tmp_path / "one.png")
    again = refine_queries(HashEncoder(), [tmp_path / "one.png"], "image", refiner, 0, indices=[34])
    np.testing.assert_array_equal(again[0], refined[34])


def test_a_query_is_refined_alike_in_any_company() -> None:
    refiner = RsRefiner()
    whole = refine_queries(HashEncoder(), CAPTIONS, "text", refiner, 1)
    part = refine_queries(HashEncoder(), [CAPTIONS[4], CAPTIONS[1]], "text", refiner, 1, indices=[4, 1])
    np.testing.assert_array_equal(part, whole[[4, 1]])
    other = refine_queries(HashEncoder(), CAPTIONS, "text", refiner, 2)
    assert not np.array_equal(other, whole)


def test_each_distinct_text_is_encoded_once() -> None:
    model = HashEncoder()
    refine_queries(model, ["xyzzy", "xyzzy", "plugh"], "text", RsRefiner(), 0)
    assert sorted(model.seen) == ["plugh", "xyzzy"]


@pytest.mark.parametrize(
    ("queries", "kind", "options", "words"),
    [
        ([], "text", {}, "no queries"),
        (["a"], "sound", {}, "unknown"),
        (["a"], "text", {"indices": [1, 2]}, "2 indices"),
        (["a"], "text", {"rng_seed": -1}, "negative"),
        ([Path("a.png")], "text", {}, "no text"),
    ],
)
def test_wrong_calls_are_refused(queries: list[Any], kind: Any, options: dict[str, Any], words: str) -> None:
    arguments = {"rng_seed": 0, **options}
    with pytest.raises(InputError, match=words):
        refine_queries(HashEncoder(), queries, kind, RsRefiner(), **arguments)


@given(st.lists(st.sampled_from([0.1, 0.2, 0.3, 0.9]), max_size=40), st.floats(0, 1))
def test_the_most_uncertain_are_deferred(uncertainty: list[float], ratio: float) -> None:
    mask = deferred(np.array(uncertainty, dtype=np.float64), ratio)
    order = sorted(range(len(uncertainty)), key=lambda i: (-uncertainty[i], i))
    assert abs(mask.sum() - ratio * len(uncertainty)) <= 0.5 + 1e-6
    assert set(np.flatnonzero(mask)) == set(order[: int(mask.sum())])


@pytest.mark.parametrize(
    ("count", "ratio", "expected"),
    [(10, 0.1, 1), (10, 0.15, 2), (70, 0.15, 11), (4, 0.1, 0), (5, 0.1, 1), (3, 1.0, 3), (3, 0.0, 0), (0, 0.5, 0)],
)
def test_number_of_deferred_queries(count: int, ratio: float, expected: int) -> None:
    assert deferred(np.zeros(count), ratio).sum() == expected


def test_ties_go_to_the_earlier_query() -> None:
    np.testing.assert_array_equal(deferred(np.array([0.5, 0.7, 0.5, 0.5]), 0.5), [True, True, False, False])


@pytest.mark.parametrize(
    ("uncertainty", "ratio", "words"),
    [([0.1, np.nan], 0.5, "NaN"), ([0.1], 1.5, "ratio"), ([0.1], float("nan"), "ratio"), ([[0.1]], 0.5, "shape")],
)
def test_what_cannot_be_ranked_is_refused(uncertainty: list[Any], ratio: float, words: str) -> None:
    with pytest.raises(InputError, match=words):
        deferred(np.array(uncertainty), ratio)
