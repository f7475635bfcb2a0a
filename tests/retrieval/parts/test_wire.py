from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from evidex.data.footprints import Window
from evidex.errors import InputError
from evidex.retrieval.parts.wire import PartFound, pack, unpack, vectors_from_text, vectors_text
from evidex.retrieval.rows import Row
from evidex.retrieval.scan.partial import ScanResult


def found(count: int = 50) -> PartFound:
    result = ScanResult(
        np.array([[7, 3], [3, 12]]), np.array([[0.1 + 0.2, -0.25], [1 / 3, 1e-17]]), np.array([4.5, 700.0]), count, 0.1
    )
    rows = (
        Row("a", "/scenes/ä\udcff.tif", "tile", "0" * 64, window=Window(0, 512, 64, 32), width=64, height=32),
        Row("b", "b.png", "image", "1" * 64, captions=("a port", "ships"), acquired=datetime(2021, 6, 1, tzinfo=UTC)),
        Row("c", "", "text", "2" * 64, captions=("a pond",)),
    )
    return PartFound(result, np.array([3, 7, 12]), rows, 5)


def test_what_arrives_is_what_was_sent() -> None:
    sent = found()
    got = unpack(pack(sent), 2, 2)
    assert got.rows == sent.rows
    for name in ("ids", "scores", "log_sum_exp"):
        np.testing.assert_array_equal(getattr(got.result, name), getattr(sent.result, name))
    assert (got.result.count, got.result.temperature, got.version) == (50, 0.1, 5)
    np.testing.assert_array_equal(got.places, sent.places)


def test_a_part_without_rows_answers_too() -> None:
    nothing = ScanResult(np.empty((3, 0), np.int64), np.empty((3, 0)), np.full(3, -np.inf), 0, 0.1)
    got = unpack(pack(PartFound(nothing, np.empty(0, np.int64), (), 1)), 3, 9)
    assert got.result.ids.shape == (3, 0)
    assert (got.result.log_sum_exp == -np.inf).all()


@pytest.mark.parametrize(
    "broken",
    [
        replace(found(), rows=found().rows[:2]),
        replace(found(), places=np.array([3, 7, 13])),
        replace(found(), result=replace(found().result, scores=np.full((2, 2), np.nan))),
        replace(found(), result=replace(found().result, log_sum_exp=np.array([np.inf, 0.0]))),
        replace(found(), result=replace(found().result, log_sum_exp=np.zeros(3))),
        replace(found(), result=replace(found().result, count=1)),
        replace(found(), result=replace(found().result, ids=np.array([[7, 3], [3, -1]])), places=np.array([-1, 3, 7])),
    ],
)
def test_what_does_not_fit_together_is_refused(broken: PartFound) -> None:
    with pytest.raises(ValueError, match="fit together"):
        unpack(pack(broken), 2, 2)


def test_other_bytes_are_refused() -> None:
    whole = pack(found())
    for content in (b"", b"<html>", whole[: len(whole) // 2], whole[:-40]):
        with pytest.raises(ValueError):
            unpack(content, 2, 2)
    with pytest.raises(ValueError):
        unpack(whole, 3, 2)


def test_vectors_keep_their_bits() -> None:
    vectors = np.random.default_rng(0).normal(size=(5, 7)).astype(np.float32)
    np.testing.assert_array_equal(vectors_from_text(vectors_text(vectors), 7), vectors)


@pytest.mark.parametrize(
    "text", ["", "é", "AAAA=", vectors_text(np.zeros((1, 6), np.float32)), vectors_text(np.full((1, 7), np.nan))]
)
def test_vectors_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(InputError):
        vectors_from_text(text, 7)
