"""A calibration holds for what the model knew when it was made, and is refused when the model knows other things."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from evidex.encoders.domain import Domain, words_of
from evidex.encoders.model import Model
from evidex.errors import DataError, ModelError
from evidex.retrieval.certainty.calibrating import KnownQuery, calibrate
from evidex.retrieval.certainty.calibration import Calibration
from evidex.retrieval.certainty.calibration_store import (
    calibration_name,
    calibration_text,
    load_policy,
    read_calibration,
)
from evidex.retrieval.certainty.guarantee import Guarantee
from evidex.retrieval.certainty.policy import Policy
from evidex.retrieval.certainty.self_calibrating import self_calibrate
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.retriever import Retriever
from evidex.retrieval.rows import Row, item_id
from tests.retrieval.archive import WORDS, picture, rewrite, tiny_model
from tests.retrieval.certainty.world import unit

QUERIES = [KnownQuery(f"{word} number {n}") for n in range(10) for word in WORDS]
REFUSED = "made when the model knew other texts; run evidex calibrate"


def _knowing(*texts: str) -> Domain:
    """Everything lies inside, so that nothing is out of domain; only what is known differs."""
    dim = tiny_model().dim
    return Domain(
        words_of(texts), np.zeros(dim, np.float32), np.eye(1, dim, dtype=np.float32), np.array([0, 9], np.float32)
    )


@pytest.fixture
def gallery(tmp_path: Path) -> Gallery:
    plain = tiny_model()
    made = Gallery.create(tmp_path / "g", Model(plain.encoder, plain.temperature))
    rows = [Row(item_id(str(n)), str(n), "image", f"{n:064x}") for n in range(40)]
    made.append(rows, unit(np.random.default_rng(0).standard_normal((40, plain.dim))))
    return made


def _policy(gallery: Gallery) -> Policy | None:
    return load_policy(gallery, "text", "images", 0.1, 0.02)


def _calibrate(gallery: Gallery) -> None:
    calibrate(gallery, QUERIES, "text", rng=np.random.default_rng(0))


@pytest.mark.parametrize("before", [None, _knowing("a river")])
@pytest.mark.parametrize("after", [None, _knowing("a harbour")])
def test_what_was_calibrated_with_other_knowledge_is_refused_until_calibrated_again(
    gallery: Gallery, before: Domain | None, after: Domain | None
) -> None:
    gallery.model.domain = before
    assert _policy(gallery) is None
    _calibrate(gallery)
    assert _policy(gallery) is not None
    gallery.model.domain = after
    if before is after:
        assert Retriever(gallery).search(text="a lake").percentile is not None
        return
    for ask in (_policy, lambda held: Retriever(held).search(text="a lake")):
        with pytest.raises(ModelError, match=REFUSED):
            ask(gallery)
    _calibrate(gallery)
    assert Retriever(gallery).search(text="a lake").percentile is not None


def test_a_gallery_calibrates_itself_anew(gallery: Gallery) -> None:
    self_calibrate(gallery, np.random.default_rng(0))
    gallery.model.domain = _knowing("a harbour")
    with pytest.raises(ModelError, match=REFUSED):
        _policy(gallery)
    self_calibrate(gallery, np.random.default_rng(0))
    assert _policy(gallery) is not None


def test_pictures_are_judged_as_before_whatever_texts_the_model_knows(gallery: Gallery) -> None:
    self_calibrate(gallery, np.random.default_rng(0))
    gallery.model.domain = _knowing("a harbour")
    assert Retriever(gallery).search(image=picture(0)).percentile is not None


def test_a_gallery_without_calibrations_needs_no_model_to_say_so(gallery: Gallery) -> None:
    opened = Gallery.open(gallery.path)
    (gallery.path / "model.safetensors").unlink()
    assert _policy(opened) is None


def test_calibrations_of_before_do_not_tell_and_are_used(gallery: Gallery) -> None:
    _calibrate(gallery)
    path = gallery.path / calibration_name("text", "images")
    content = json.loads(path.read_text())
    del content["domain_digest"], content["check"]
    rewrite(gallery, path, json.dumps(content | {"format": 3}))
    gallery.model.domain = _knowing("a harbour")
    assert _policy(gallery) is not None


def calibration_of(scores: list[float] | np.ndarray[tuple[int], np.dtype[np.float64]]) -> Calibration:
    return Calibration("abc123", "text", 1000, "certainty_lost", np.asarray(scores, np.float64))


def test_a_saved_calibration_comes_back(tmp_path: Path) -> None:
    scores = np.random.default_rng(4).standard_normal(300)
    guarantee = Guarantee(0.05, 0.1, 1.25, 240, 120, 2, top=5, refine_ratio=0.1, gallery_size=5470)
    none = Guarantee(0.01, 0.1, None, 240, 0, 0)
    saved = Calibration("abc123", "image", 5470, "certainty_lost", scores, (guarantee, none))
    (tmp_path / "calibration.json").write_text(calibration_text(saved))
    loaded = read_calibration(tmp_path / "calibration.json")
    np.testing.assert_array_equal(loaded.scores, np.sort(scores))
    assert loaded.guarantees == (guarantee, none)
    assert (loaded.model_fingerprint, loaded.direction, loaded.gallery_size, loaded.score) == (
        "abc123",
        "image",
        5470,
        "certainty_lost",
    )


@pytest.mark.parametrize(
    "change",
    [
        {"direction": "sound"},
        {"scores": []},
        {"scores": [1.0, None]},
        {"scores": "x"},
        {"guarantees": [{}]},
        {"format": None},
    ],
)
def test_a_damaged_file_is_refused_in_words(tmp_path: Path, change: dict[str, object]) -> None:
    path = tmp_path / "calibration.json"
    path.write_text(calibration_text(calibration_of([1.0, 2.0])))
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 3} | change))
    with pytest.raises(DataError, match="is no calibration"):
        read_calibration(path)


def test_a_calibration_whose_numbers_changed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    path.write_text(calibration_text(calibration_of([1.0, 2.0])))
    path.write_text(path.read_text().replace("2.0", "2.5"))
    with pytest.raises(DataError, match="checksum is wrong"):
        read_calibration(path)


def test_foreign_missing_and_newer_files_are_refused_in_words(tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    with pytest.raises(DataError, match="does not exist"):
        read_calibration(path)
    for content in ("", "[]", "{}", "\x00"):
        path.write_text(content)
        with pytest.raises(DataError, match="is no calibration"):
            read_calibration(path)
    path.write_text('{"format": 99}')
    with pytest.raises(DataError, match="format 99, newer than 5"):
        read_calibration(path)
