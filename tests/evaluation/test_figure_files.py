from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from evidex.data.datasets import load_dataset
from evidex.errors import InputError
from evidex.evaluation.deferral import Refinements
from evidex.evaluation.figure_files import _right_and_wrong, write_figures
from evidex.evaluation.noisy import NoisySplit
from evidex.evaluation.protocol import evaluate, evaluate_features
from tests.evaluation.colours import ColourModel, write_colours


def test_every_figure_of_a_noisy_evaluation_is_written(tmp_path: Path) -> None:
    dataset = load_dataset(write_colours(tmp_path), "val")
    found = evaluate(ColourModel(), dataset, noisy_seed=0, refinements=Refinements((0.0, 0.2)), absent=False)
    paths = write_figures(found, NoisySplit(dataset, 0), tmp_path / "figures")
    assert {path.stem for path in paths} == {
        "risk_coverage",
        "text_queries",
        "image_queries",
        "uncertainty_samples",
        "uncertainty",
        "deferral",
    }
    for path in paths:
        with Image.open(path) as picture:
            assert picture.format == "PNG"
            assert min(picture.size) > 200


def test_examples_are_half_right_where_possible() -> None:
    rng = np.random.default_rng(0)
    hits = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0, np.nan])
    chosen = _right_and_wrong(hits, 4, rng)
    assert [hits[i] for i in chosen] == [1.0, 1.0, 0.0, 0.0]
    assert len(_right_and_wrong(np.ones(5), 4, rng)) == 4
    assert len(_right_and_wrong(np.zeros(5), 4, rng)) == 4
    assert len(_right_and_wrong(np.array([1.0, 0.0]), 4, rng)) == 2


def test_figures_need_the_features(tmp_path: Path) -> None:
    dataset = load_dataset(write_colours(tmp_path), "val")
    found = evaluate_features(
        np.eye(24, dtype=np.float32), np.eye(72, 24, dtype=np.float32), dataset.image_of_caption, 0.1
    )
    with pytest.raises(InputError, match="no features"):
        write_figures(found, dataset, tmp_path / "figures")
