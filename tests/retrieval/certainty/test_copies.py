"""A picture that lies in the gallery twice must not make all others look uncertain."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from evidex.retrieval.certainty.calibrating import self_calibrate
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.rows import Row, item_id
from tests.retrieval.archive import tiny_model


def _gallery(folder: Path, copies: int) -> Gallery:
    gallery = Gallery.create(folder, tiny_model())
    drawn = np.random.default_rng(0).standard_normal((60, gallery.dim))
    unit = (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)
    vectors = np.repeat(unit[: 60 // copies] if copies > 3 else unit, copies, axis=0)
    rows = [Row(item_id(str(n)), str(n), "image", f"{n // copies:064x}") for n in range(len(vectors))]
    gallery.append(rows, vectors)
    return gallery


def _image_scores(gallery: Gallery) -> np.ndarray:
    calibration = self_calibrate(gallery, np.random.default_rng(0))[-1].calibration
    assert calibration.direction == "image"
    return np.asarray(calibration.scores)


def test_copies_do_not_change_what_is_usual(tmp_path: Path) -> None:
    once, thrice = _image_scores(_gallery(tmp_path / "once", 1)), _image_scores(_gallery(tmp_path / "thrice", 3))
    np.testing.assert_allclose(np.sort(thrice)[::3], np.sort(once), atol=0.02)


def test_a_gallery_of_one_picture_many_times_says_nothing_of_others(tmp_path: Path) -> None:
    outcomes = self_calibrate(_gallery(tmp_path / "g", 60), np.random.default_rng(0))
    assert [outcome.calibration.direction for outcome in outcomes] == ["text"]
