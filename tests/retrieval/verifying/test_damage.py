"""Damage to any file of a gallery ends in the same answer or in one line that says what is damaged."""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from evidex.errors import DamagedError, GalleryError
from evidex.retrieval.certainty.calibration_store import load_policy
from evidex.retrieval.certainty.self_calibrating import self_calibrate
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.retriever import Retriever
from evidex.retrieval.verifying.repair import repair
from evidex.retrieval.verifying.verify import verify
from tests.retrieval.archive import tiny_model
from tests.retrieval.verifying.damaging import file_of, flip, hits, make_old


def _mapped(gallery: Gallery) -> Path:
    return gallery.path / str(json.loads((gallery.path / "vectors.json").read_text())["file"])


@pytest.fixture(params=["in memory", "mapped"])
def held(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors as a small gallery holds them, and as a large one does."""
    if request.param == "mapped":
        monkeypatch.setattr("evidex.retrieval.soundness.mapped.are_few", lambda *_: False)


@pytest.mark.usefixtures("held")
@pytest.mark.parametrize("place", [3, 1000, -1])
def test_a_flipped_bit_in_the_mapped_vectors_is_mended_and_said(
    gallery: Gallery, place: int, caplog: pytest.LogCaptureFixture
) -> None:
    sound = hits(gallery.path)
    flip(_mapped(gallery), place)
    report = verify(gallery.path)
    assert [finding.kind for finding in report.findings] == ["vectors"]
    with caplog.at_level(logging.WARNING):
        assert hits(gallery.path) == sound
    assert "made again from its table" in caplog.text
    assert verify(gallery.path).sound


@pytest.mark.usefixtures("held")
def test_a_calibration_is_never_made_of_damaged_vectors(gallery: Gallery) -> None:
    path = gallery.path / "calibration" / "image-to-images-by-itself.json"
    before = path.read_text()
    flip(_mapped(gallery), 1003)
    self_calibrate(Gallery.open(gallery.path, tiny_model()), np.random.default_rng(0))
    assert path.read_text() == before


@pytest.mark.parametrize("change", [{"rows": None}, {"dim": 2**31}, {"checks": None}, {"file": 3}, {"fragments": []}])
def test_nonsense_in_the_state_of_the_vectors_is_mended(gallery: Gallery, change: dict[str, object]) -> None:
    sound = hits(gallery.path)
    state = gallery.path / "vectors.json"
    content = json.loads(state.read_text()) | change
    state.write_text(json.dumps({key: value for key, value in content.items() if value is not None}))
    assert hits(gallery.path) == sound


@pytest.mark.parametrize("change", [{"dim": 2**31}, {"dim": 31}, {"dim": None}, {"temperature": -1}, {"format": 99}])
def test_a_damaged_description_is_read_from_its_copy(gallery: Gallery, change: dict[str, object]) -> None:
    sound = hits(gallery.path)
    info = gallery.path / "gallery.json"
    written = info.read_text()
    info.write_text(json.dumps(json.loads(written) | change))
    assert hits(gallery.path) == sound
    assert not verify(gallery.path).sound
    assert repair(gallery.path).sound
    assert info.read_text() == written


@pytest.mark.parametrize("change", [{"dim": 2**31}, {"dim": "32"}, {"temperature": None}, {"dim": 31}])
def test_nonsense_in_the_description_of_an_unsealed_gallery_is_told(
    gallery: Gallery, change: dict[str, object]
) -> None:
    make_old(gallery)
    info = gallery.path / "gallery.json"
    info.write_text(json.dumps(json.loads(info.read_text()) | change))
    with pytest.raises(GalleryError, match="is damaged"):
        Gallery.open(gallery.path)


@pytest.mark.parametrize(
    "pattern",
    ["rows.lance/data/*.lance", "rows.lance/_versions/*.manifest", "calibration/text*.json", "model.safetensors"],
)
@pytest.mark.parametrize("times", ["new", "kept"])
def test_a_flipped_bit_in_what_cannot_be_mended_is_told(gallery: Gallery, pattern: str, times: str) -> None:
    files = gallery.path.glob(pattern)
    path = min(files, key=lambda path: path.name)  # of versions the newest: they count down
    before = path.stat()
    flip(path, path.stat().st_size // 2)
    if times == "kept":
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    name = str(path.relative_to(gallery.path))
    with pytest.raises(DamagedError, match=f"{name} is not what was written; 'evidex verify"):
        Retriever(Gallery.open(gallery.path)).search(text="a river")
    assert name in [finding.file for finding in verify(gallery.path).findings]


@pytest.mark.parametrize("gone", ["rows.lance", "rows.lance/_versions", "rows.lance/data"])
def test_lost_rows_are_no_empty_gallery(gallery: Gallery, gone: str) -> None:
    shutil.rmtree(gallery.path / gone)
    with pytest.raises(DamagedError, match=r"its rows are gone|is missing"):
        Gallery.open(gallery.path)
    assert not verify(gallery.path).sound
    assert not repair(gallery.path).sound


def test_a_lost_version_is_told_though_an_earlier_one_is_whole(gallery: Gallery) -> None:
    min((gallery.path / "rows.lance" / "_versions").glob("*.manifest")).unlink()
    with pytest.raises(DamagedError, match="version 2 of its rows is gone, and 1 is the last"):
        Gallery.open(gallery.path)
    assert not repair(gallery.path).sound
    assert verify(gallery.path).rows == 0


def test_a_new_gallery_is_empty_and_sound(tmp_path: Path) -> None:
    Gallery.create(tmp_path / "g", tiny_model())
    assert len(Gallery.open(tmp_path / "g")) == 0
    assert verify(tmp_path / "g").sound
    assert Retriever(Gallery.open(tmp_path / "g", tiny_model())).search(text="a river").hits == ()


def test_a_calibration_that_is_gone_is_told_and_made_again(gallery: Gallery) -> None:
    sound = hits(gallery.path)
    path = gallery.path / "calibration" / "text-to-images-by-itself.json"
    path.unlink()
    with pytest.raises(DamagedError, match=r"by-itself\.json is missing"):
        hits(gallery.path)
    assert repair(gallery.path).sound
    assert hits(gallery.path) == sound


def test_damaged_rows_are_dropped_by_a_repair_and_named(gallery: Gallery) -> None:
    flip(file_of(gallery, "rows.lance/data/*.lance"), 40)
    report = repair(gallery.path)
    assert not report.sound
    assert "60 rows were dropped" in report.findings[0].remedy
    assert "evidex index" in report.findings[0].remedy
    assert len(Gallery.open(gallery.path)) == 0


@pytest.mark.parametrize("damage", [Path.unlink, flip, lambda path: path.write_text("{}")])
def test_a_lost_seal_is_told_and_made_again(gallery: Gallery, damage: Callable[[Path], None]) -> None:
    sound = hits(gallery.path)
    damage(gallery.path / "seal.json")
    with pytest.raises(DamagedError, match=r"seal\.json, which holds the checksums"):
        Gallery.open(gallery.path)
    assert repair(gallery.path).sound
    assert hits(gallery.path) == sound


def test_a_calibration_that_was_being_replaced_is_sound_before_and_after(
    gallery: Gallery, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    from evidex.retrieval.certainty import calibration_store

    monkeypatch.setattr(calibration_store, "write_atomic", killed)
    with pytest.raises(KeyboardInterrupt):
        self_calibrate(gallery, np.random.default_rng(1))
    opened = Gallery.open(gallery.path, tiny_model())
    assert load_policy(opened, "text", "images", 0.1, 0.02) is not None
    assert verify(gallery.path).sound


def test_rows_that_a_repair_dropped_are_missed_until_they_are_back(gallery: Gallery, tmp_path: Path) -> None:
    data = max((gallery.path / "rows.lance" / "data").iterdir(), key=lambda path: path.stat().st_size)
    os.truncate(data, 100)
    assert {finding.kind for finding in repair(gallery.path).findings} == {"rows", "lost"}
    assert [finding.kind for finding in verify(gallery.path).findings] == ["lost"]
    with pytest.raises(DamagedError, match=r"lost all its rows: a repair dropped 60 .*; run 'evidex index'"):
        hits(gallery.path)
    (tmp_path / "scenes").mkdir()
    Gallery.open(gallery.path, tiny_model()).add(tmp_path / "scenes")
    assert not verify(gallery.path).sound


def test_vectors_mapped_by_another_version_are_no_damage(gallery: Gallery) -> None:
    state = gallery.path / "vectors.json"
    state.write_text(json.dumps({**json.loads(state.read_text()), "format": 1}))
    assert verify(gallery.path).sound


def test_a_folder_in_the_place_of_a_calibration_is_mended(gallery: Gallery) -> None:
    path = next((gallery.path / "calibration").glob("*-by-itself.json"))
    path.unlink()
    path.mkdir()
    assert repair(gallery.path).sound
    assert path.is_file()
