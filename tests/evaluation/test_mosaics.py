"""Mosaics know what is in them; the blended map and the plain baseline are measured on the same windows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evidex.data.datasets import Dataset, load_dataset
from evidex.errors import InputError
from evidex.evaluation.mosaics import PICTURE, SIDE, draw_mosaics, measure
from evidex.scenes.archive import render_archive
from tests.locating.places import compact

RSICD = Path(__file__).resolve().parents[3] / "shared" / "data" / "rsicd"


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    folder = tmp_path_factory.mktemp("mosaics") / "archive"
    render_archive(folder, count=31, size=64)
    return load_dataset(folder, "train")


def test_a_mosaic_tells_what_is_whole_what_is_cut_and_where(rendered: Dataset) -> None:
    pictures = {record.label: rendered.open_image(place) for place, record in enumerate(rendered.records)}
    (mosaic,) = draw_mosaics(rendered, 1, seed=3)
    assert mosaic.picture.size == (SIDE, SIDE)
    assert len(mosaic.whole) >= 9
    assert not mosaic.cut & mosaic.whole.keys()
    for label, window in mosaic.whole.items():
        shown = mosaic.picture.crop((window.x, window.y, window.x + window.width, window.y + window.height))
        assert np.array_equal(np.asarray(shown), np.asarray(pictures[label].resize((PICTURE, PICTURE))))
    (again,) = draw_mosaics(rendered, 1, seed=3)
    assert np.array_equal(np.asarray(again.picture), np.asarray(mosaic.picture))


def test_too_few_labels_make_no_mosaic(rendered: Dataset) -> None:
    with pytest.raises(InputError, match="has 5 labels"):
        next(draw_mosaics(rendered.subset(range(5)), 1, seed=0))


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.skipif(not RSICD.is_dir(), reason="RSICD is not beside the checkout")
def test_on_rsicd_the_blended_map_is_right_more_often_than_the_best_window() -> None:
    data = load_dataset(RSICD, "val")
    labels = sorted({record.label for record in data.records if record.label is not None})
    found = measure(compact(), list(draw_mosaics(data, 2, seed=2)), {label: label for label in labels})
    ours, plain, stricter = found
    assert ours.there >= 18
    assert ours.hit > 0.6
    assert ours.right > plain.right
    assert ours.said_absent > plain.said_absent
    assert ours.r_mi > 0.7
    assert stricter.said_there <= plain.said_there
    assert stricter.said_absent > plain.said_absent
