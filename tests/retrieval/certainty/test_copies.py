"""A picture that lies in the gallery twice must not make all others look uncertain."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from evidex.retrieval.certainty.self_calibrating import self_calibrate
from evidex.retrieval.gallery import Gallery
from tests.retrieval.archive import arbitrary_gallery, tiny_model


def _image_scores(gallery: Gallery) -> np.ndarray:
    calibration = self_calibrate(gallery, np.random.default_rng(0))[-1].calibration
    assert calibration.direction == "image"
    return np.asarray(calibration.scores)


def test_copies_do_not_change_what_is_usual(tmp_path: Path) -> None:
    once, thrice = (
        _image_scores(arbitrary_gallery(tmp_path / "once", tiny_model(), 60)),
        _image_scores(arbitrary_gallery(tmp_path / "thrice", tiny_model(), 60, 3)),
    )
    np.testing.assert_allclose(np.sort(thrice)[::3], np.sort(once), atol=0.02)


def test_a_gallery_of_one_picture_many_times_says_nothing_of_others(tmp_path: Path) -> None:
    outcomes = self_calibrate(arbitrary_gallery(tmp_path / "g", tiny_model(), 1, 60), np.random.default_rng(0))
    assert [outcome.calibration.direction for outcome in outcomes] == ["text"]
