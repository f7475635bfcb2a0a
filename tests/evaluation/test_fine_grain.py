"""Captions against their twins: what a model that knows and one that knows nothing score, and how ties count."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from evidex.data.datasets import Dataset, load_dataset
from evidex.data.records import Record
from evidex.degrade.text import words
from evidex.degrade.twins import TWIN_AXES
from evidex.evaluation.fine_grain import fine_grain, twin_pairs, wilson
from evidex.evaluation.protocol import evaluate, with_fine_grain
from evidex.evaluation.table import print_evaluation
from tests.evaluation.colours import ColourModel, write_colours

RECORDS = (
    Record("a.jpg", "val", ("two red cars are near a river .", "two red cars are near a river .", "a river .")),
    Record("b.jpg", "val", ("many green trees are next to a church .",)),
    Record("c.jpg", "val", ("nothing of the kind .",)),
    Record("d.jpg", "val", ("four boats in a blue lake .", "a lake .")),
)
WORDS = sorted({word for pair in twin_pairs(RECORDS) for text in (pair.caption, pair.twin) for word in words(text)})


class _Knowing:
    """A text is the bag of its words, and so is a picture, of the words that are true of it."""

    temperature, fingerprint = 0.1, "knows"

    def encode_texts(self, texts: Sequence[str], **_: Any) -> np.ndarray:
        rows = np.array([[word in words(text) for word in WORDS] for text in texts], np.float32)
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True).clip(min=1))

    def encode_images(self, images: Sequence[Record], **_: Any) -> np.ndarray:
        return self.encode_texts([" ".join(record.captions) for record in images])


class _Collapsed(_Knowing):
    def encode_texts(self, texts: Sequence[str], **_: Any) -> np.ndarray:
        return np.full((len(texts), 7), 0.377964, np.float32)


def test_who_knows_scores_one_and_who_gives_all_one_vector_scores_chance() -> None:
    for model, share in ((_Knowing(), 1.0), (_Collapsed(), 0.5)):
        found = fine_grain(model, model.encode_images(RECORDS), RECORDS)
        assert found is not None
        assert {axis: one.share for axis, one in found.axes.items()} == dict.fromkeys(TWIN_AXES, share)
        assert {axis: one.images for axis, one in found.axes.items()} == {
            "colour": 3, "number": 3, "object": 3, "relation": 2,
        }  # fmt: skip
        assert all(one.low < one.share or one.share == 0 for one in found.axes.values())
    found = fine_grain(_Collapsed(), _Collapsed().encode_images(RECORDS), RECORDS)
    assert found is not None
    assert {one.elsewhere for one in found.axes.values()} == {0.5}


def test_each_image_counts_once_and_ties_count_half() -> None:
    """Against a loop over the pairs."""
    rng = np.random.default_rng(0)
    table = {
        text: rng.integers(0, 3, 4).astype(np.float32) for p in twin_pairs(RECORDS) for text in (p.caption, p.twin)
    }

    class Random(_Knowing):
        def encode_texts(self, texts: Sequence[str], **_: Any) -> np.ndarray:
            return np.stack([table[text] for text in texts])

    pictures = rng.integers(0, 3, (len(RECORDS), 4)).astype(np.float32)
    found = fine_grain(Random(), pictures, RECORDS)
    assert found is not None
    for axis in TWIN_AXES:
        for shift, get in ((0, found.axes[axis].share), (2, found.axes[axis].elsewhere)):
            by_image: dict[int, list[float]] = {}
            for pair in twin_pairs(RECORDS):
                if pair.axis == axis:
                    picture = pictures[(pair.image + shift) % 4]
                    gap = float(picture @ table[pair.caption] - picture @ table[pair.twin])
                    by_image.setdefault(pair.image, []).append(1.0 if gap > 0 else 0.5 if gap == 0 else 0.0)
            assert get == pytest.approx(np.mean([np.mean(values) for values in by_image.values()]))


def test_twins_are_the_same_each_time_and_of_each_caption_once() -> None:
    pairs = twin_pairs(RECORDS)
    assert pairs == twin_pairs(RECORDS)
    assert len({(pair.axis, pair.image, pair.caption) for pair in pairs}) == len(pairs)
    assert all(pair.caption != pair.twin for pair in pairs)


@pytest.mark.parametrize(("share", "count"), [(0.0, 5), (1.0, 5), (0.5, 40), (0.83, 900)])
def test_the_interval_is_where_the_share_is_no_further_off_than_chance_allows(share: float, count: int) -> None:
    low, high = wilson(share, count)
    for end in (low, high):
        if 0 < end < 1:
            assert abs(share - end) == pytest.approx(1.959964 * np.sqrt(end * (1 - end) / count), abs=1e-6)
    assert 0 <= low <= share <= high <= 1
    assert low < high


@pytest.fixture(scope="module")
def colours(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return load_dataset(write_colours(tmp_path_factory.mktemp("colours")), "val")


def test_an_evaluation_tells_it_in_tables_and_json(colours: Dataset) -> None:
    plain = evaluate(ColourModel(), colours, absent=False)
    found = with_fine_grain(plain, ColourModel(), colours)
    axes = found.to_json()["fine_grain"]["axes"]
    assert axes["colour"]["share"] > 0.9
    assert axes["number"]["share"] == axes["relation"]["share"] == 0.5, "it knows colours alone"
    console = Console(width=120, record=True, file=io.StringIO())
    print_evaluation(found, console)
    assert "chance: 50 %" in console.export_text()
    assert plain.to_json()["fine_grain"] is None
