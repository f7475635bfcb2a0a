"""Damage to any file of a gallery ends in the same answer or in one line that says what is damaged."""

from __future__ import annotations

import json
import logging
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from evidex.encoders import model as models
from evidex.errors import DamagedError, GalleryError
from evidex.retrieval.certainty.calibration_store import load_policy
from evidex.retrieval.certainty.self_calibrating import self_calibrate
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.gallery_info import read_info
from evidex.retrieval.retriever import Retriever
from evidex.retrieval.rows import vectors_in
from evidex.retrieval.soundness.repair import repair
from evidex.retrieval.soundness.seal import digest_of
from evidex.retrieval.soundness.verify import verify
from evidex.retrieval.table import manifests
from tests.retrieval.archive import arbitrary_gallery, tiny_model

SETTLED = 0.06


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = arbitrary_gallery(tmp_path_factory.mktemp("sound") / "g", tiny_model(), 60)
    self_calibrate(made, np.random.default_rng(0))
    return made.path


@pytest.fixture
def gallery(tmp_path: Path, template: Path, monkeypatch: pytest.MonkeyPatch) -> Gallery:
    """Used and left alone for a moment: its files are known to be as sealed."""
    content = (template / "model.safetensors").read_bytes()
    real = models.load_model
    # Loading takes longest, and most damages leave the model alone.
    same = lambda path: tiny_model() if path.read_bytes() == content else real(path)  # noqa: E731
    monkeypatch.setattr(models, "load_model", same)
    shutil.copytree(template, tmp_path / "g")
    time.sleep(SETTLED)
    _hits(tmp_path / "g")
    return Gallery.open(tmp_path / "g", tiny_model())


def _hits(folder: Path) -> list[tuple[str, float]]:
    found = Retriever(Gallery.open(folder, tiny_model())).search(text="a river", top=5)
    return [(hit.path, hit.score) for hit in found.hits] + [(found.verdict, found.uncertainty)]


def _flip(path: Path, place: int = -1) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 0x40
    with path.open("r+b") as stream:
        stream.write(content)


def _file(gallery: Gallery, pattern: str) -> Path:
    return max(gallery.path.glob(pattern), key=lambda path: path.stat().st_size)


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
    sound = _hits(gallery.path)
    _flip(_mapped(gallery), place)
    report = verify(gallery.path)
    assert [finding.kind for finding in report.findings] == ["vectors"]
    with caplog.at_level(logging.WARNING):
        assert _hits(gallery.path) == sound
    assert "made again from its table" in caplog.text
    assert verify(gallery.path).sound


@pytest.mark.usefixtures("held")
def test_a_calibration_is_never_made_of_damaged_vectors(gallery: Gallery) -> None:
    path = gallery.path / "calibration" / "image-to-images-by-itself.json"
    before = path.read_text()
    _flip(_mapped(gallery), 1003)
    self_calibrate(Gallery.open(gallery.path, tiny_model()), np.random.default_rng(0))
    assert path.read_text() == before


@pytest.mark.parametrize("change", [{"rows": None}, {"dim": 2**31}, {"checks": None}, {"file": 3}, {"fragments": []}])
def test_nonsense_in_the_state_of_the_vectors_is_mended(gallery: Gallery, change: dict[str, object]) -> None:
    sound = _hits(gallery.path)
    state = gallery.path / "vectors.json"
    content = json.loads(state.read_text()) | change
    state.write_text(json.dumps({key: value for key, value in content.items() if value is not None}))
    assert _hits(gallery.path) == sound


@pytest.mark.parametrize("change", [{"dim": 2**31}, {"dim": 31}, {"dim": None}, {"temperature": -1}, {"format": 99}])
def test_a_damaged_description_is_read_from_its_copy(gallery: Gallery, change: dict[str, object]) -> None:
    sound = _hits(gallery.path)
    info = gallery.path / "gallery.json"
    written = info.read_text()
    info.write_text(json.dumps(json.loads(written) | change))
    assert _hits(gallery.path) == sound
    assert not verify(gallery.path).sound
    assert repair(gallery.path).sound
    assert info.read_text() == written


@pytest.mark.parametrize("change", [{"dim": 2**31}, {"dim": "32"}, {"temperature": None}, {"dim": 31}])
def test_nonsense_in_the_description_of_an_unsealed_gallery_is_told(
    gallery: Gallery, change: dict[str, object]
) -> None:
    _make_old(gallery)
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
    _flip(path, path.stat().st_size // 2)
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
    sound = _hits(gallery.path)
    path = gallery.path / "calibration" / "text-to-images-by-itself.json"
    path.unlink()
    with pytest.raises(DamagedError, match=r"by-itself\.json is missing"):
        _hits(gallery.path)
    assert repair(gallery.path).sound
    assert _hits(gallery.path) == sound


def test_damaged_rows_are_dropped_by_a_repair_and_named(gallery: Gallery) -> None:
    _flip(_file(gallery, "rows.lance/data/*.lance"), 40)
    report = repair(gallery.path)
    assert not report.sound
    assert "60 rows were dropped" in report.findings[0].remedy
    assert "evidex index" in report.findings[0].remedy
    assert len(Gallery.open(gallery.path)) == 0


@pytest.mark.parametrize("damage", [Path.unlink, _flip, lambda path: path.write_text("{}")])
def test_a_lost_seal_is_told_and_made_again(gallery: Gallery, damage: Callable[[Path], None]) -> None:
    sound = _hits(gallery.path)
    damage(gallery.path / "seal.json")
    with pytest.raises(DamagedError, match=r"seal\.json, which holds the checksums"):
        Gallery.open(gallery.path)
    assert repair(gallery.path).sound
    assert _hits(gallery.path) == sound


def test_a_gallery_of_before_opens_and_is_sealed_when_something_is_put_in(gallery: Gallery) -> None:
    sound = _hits(gallery.path)
    _make_old(gallery)
    assert _hits(gallery.path) == sound
    assert verify(gallery.path).notes
    with Gallery.open(gallery.path).writing():
        pass
    assert verify(gallery.path).sound
    assert not verify(gallery.path).notes
    _flip(_file(gallery, "rows.lance/data/*.lance"), 40)
    with pytest.raises(DamagedError):
        Gallery.open(gallery.path)


def _make_old(gallery: Gallery) -> None:
    for name in ("seal.json", "checked.json", "vectors.json"):
        (gallery.path / name).unlink(missing_ok=True)
    info = gallery.path / "gallery.json"
    info.write_text(json.dumps(json.loads(info.read_text()) | {"format": 1}))


def test_a_commit_that_was_not_sealed_any_more_is_kept_and_sealed_when_next_opened(gallery: Gallery) -> None:
    """A process that is killed between the two leaves files that the seal does not name."""
    before = (gallery.path / "seal.json").read_bytes()
    gallery.remove([gallery.rows([0])[0].id])
    (gallery.path / "seal.json").write_bytes(before)
    assert len(Gallery.open(gallery.path)) == 59
    assert verify(gallery.path).sound
    _newest_version(gallery.path).unlink()
    with pytest.raises(DamagedError, match="is gone"):
        Gallery.open(gallery.path)


def test_after_going_back_a_version_the_mapped_vectors_are_those_of_the_table(gallery: Gallery) -> None:
    """The table numbers its pieces anew then: what was mapped of lost rows must not stand for others."""
    model = tiny_model()
    for words in ("lost", "found"):
        gallery = Gallery.open(gallery.path, model)
        gallery.add_texts([f"{words} {number}" for number in range(10)], source=words)
        assert len(gallery.vectors) == 70
        table = np.concatenate([vectors_in(batch) for batch in gallery.batches()])
        np.testing.assert_array_equal(gallery.vectors, table)
        if words == "lost":
            time.sleep(SETTLED)
            _newest_version(gallery.path).write_bytes(b"")
            assert len(Gallery.open(repair(gallery.path).gallery)) == 60


def test_a_gallery_whose_sealing_was_cut_short_is_completed(gallery: Gallery) -> None:
    """Of an old gallery the seal is written before its description."""
    path = gallery.path / "gallery.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 1}))
    with Gallery.open(gallery.path).writing():
        pass
    assert json.loads(path.read_text())["format"] == 2
    assert verify(gallery.path).sound


def test_a_seal_written_while_a_gallery_is_opened_is_taken_up(
    gallery: Gallery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process replaces a calibration after this one has read the seal."""

    def slowly(folder: Path) -> object:
        found = read_info(folder)
        self_calibrate(gallery, np.random.default_rng(5))
        return found

    monkeypatch.setattr("evidex.retrieval.gallery.read_info", slowly)
    opened = Gallery.open(gallery.path, tiny_model())
    assert load_policy(opened, "text", "images", 0.1, 0.02) is not None


def test_rows_committed_while_a_gallery_is_opened_are_no_damage(
    gallery: Gallery, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evidex.retrieval import table

    real, others = table.manifests, [gallery.rows([0])[0].id]

    def meanwhile(folder: Path) -> dict[int, str]:
        found = real(folder)
        if others:
            gallery.remove([others.pop()])
        return found

    monkeypatch.setattr(table, "manifests", meanwhile)
    assert len(Gallery.open(gallery.path)) >= 59


def test_files_of_a_clock_that_is_ahead_are_read_once(gallery: Gallery, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evidex.retrieval.soundness.checks.time.time_ns", lambda: 0)
    (gallery.path / "checked.json").unlink()
    read: list[Path] = []

    def reading(path: Path) -> object:
        read.append(path)
        return digest_of(path)

    monkeypatch.setattr("evidex.retrieval.soundness.checks.digest_of", reading)
    opened = Gallery.open(gallery.path)
    assert read
    read.clear()
    opened.check()
    Gallery.open(gallery.path)
    assert read == []


def _newest_version(folder: Path) -> Path:
    versions = manifests(folder)
    return folder / versions[max(versions)]


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


def test_rows_that_a_repair_dropped_are_missed_until_something_is_indexed(gallery: Gallery, tmp_path: Path) -> None:
    data = max((gallery.path / "rows.lance" / "data").iterdir(), key=lambda path: path.stat().st_size)
    os.truncate(data, 100)
    assert {finding.kind for finding in repair(gallery.path).findings} == {"rows", "lost"}
    assert [finding.kind for finding in verify(gallery.path).findings] == ["lost"]
    with pytest.raises(DamagedError, match=r"lost all its rows: a repair dropped 60 .*; run 'evidex index'"):
        _hits(gallery.path)
    (tmp_path / "scenes").mkdir()
    Gallery.open(gallery.path, tiny_model()).add(tmp_path / "scenes")
    assert verify(gallery.path).sound


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
