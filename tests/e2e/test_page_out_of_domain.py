"""The page when a question is outside the model's domain: said in words, and not compared with known questions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from evidex.encoders.domain import Domain, words_of
from evidex.encoders.model import Model
from evidex.retrieval.gallery import Gallery
from evidex.server.settings import Settings
from tests.e2e.browsing import MARKS
from tests.retrieval.archive import tiny_model
from tests.server.places import ANSWERED, live, make_gallery

pytestmark = MARKS


def test_a_question_out_of_domain_is_refused_in_words_and_without_a_gauge(
    tmp_path: Path, visit: Callable[..., Any]
) -> None:
    plain = tiny_model()
    near = Domain(
        words_of([ANSWERED]),
        np.zeros(plain.dim, np.float32),
        np.eye(1, plain.dim, dtype=np.float32),
        np.array([0.0, 1e-6], np.float32),
    )
    calibrated = make_gallery(tmp_path)
    gallery = Gallery.create(tmp_path / "out_of_domain", Model(plain.encoder, plain.temperature, domain=near))
    gallery.append(calibrated.rows(range(len(calibrated))), np.array(calibrated.vectors))
    (calibrated.path / "calibration").rename(gallery.path / "calibration")
    with live(Settings(gallery.path, port=0)) as address:
        page = visit(f"{address}/?q=zebra+crossing")
        page.get_by_role("heading", name="The model does not know this").wait_for()
        assert "never learned 'zebra' and 'crossing'" in page.locator(".verdict").inner_text()
        assert page.locator(".verdict.abstained").count() == 1
        assert page.get_by_role("meter").count() == 0
        page.goto(f"{address}/?q={ANSWERED.replace(' ', '+')}")
        page.get_by_text("What this stands on").click()
        page.get_by_role("meter").wait_for()


def test_a_question_without_any_match_is_refused_with_the_numbers_and_without_a_gauge(
    tmp_path: Path, visit: Callable[..., Any]
) -> None:
    calibrated = make_gallery(tmp_path)
    (calibrated.path / "calibration" / "text-to-images.json").unlink()  # queries that were given would lift it
    plain = tiny_model()
    demanding = Domain(
        words_of([ANSWERED]),
        np.zeros(plain.dim, np.float32),
        np.eye(1, plain.dim, dtype=np.float32),
        np.array([0.0, 9.0], np.float32),
        np.array([0.999, 1.0], np.float32),
    )
    gallery = Gallery.create(tmp_path / "demanding", Model(plain.encoder, plain.temperature, domain=demanding))
    gallery.append(calibrated.rows(range(len(calibrated))), np.array(calibrated.vectors))
    with live(Settings(gallery.path, port=0)) as address:
        page = visit(f"{address}/?q={ANSWERED.replace(' ', '+')}")
        page.get_by_role("heading", name="Probably nothing here matches").wait_for()
        page.get_by_text("What this stands on").click()
        assert "nine of ten are at least 1.00" in page.locator(".verdict.abstained").inner_text()
        assert page.get_by_role("meter").count() == 0
