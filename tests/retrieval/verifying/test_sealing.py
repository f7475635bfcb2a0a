"""When galleries are sealed: those of before, commits that were cut short, and what others write meanwhile."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest

from evidex.errors import DamagedError
from evidex.retrieval.certainty.calibration_store import load_policy
from evidex.retrieval.certainty.self_calibrating import self_calibrate
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.gallery_info import read_info
from evidex.retrieval.rows import vectors_in
from evidex.retrieval.soundness.seal import digest_of
from evidex.retrieval.verifying.repair import repair
from evidex.retrieval.verifying.verify import verify
from tests.retrieval.archive import tiny_model
from tests.retrieval.verifying.conftest import SETTLED
from tests.retrieval.verifying.damaging import file_of, flip, hits, make_old, newest_version


def test_a_gallery_of_before_opens_and_is_sealed_when_something_is_put_in(gallery: Gallery) -> None:
    sound = hits(gallery.path)
    make_old(gallery)
    assert hits(gallery.path) == sound
    assert verify(gallery.path).notes
    with Gallery.open(gallery.path).writing():
        pass
    assert verify(gallery.path).sound
    assert not verify(gallery.path).notes
    flip(file_of(gallery, "rows.lance/data/*.lance"), 40)
    with pytest.raises(DamagedError):
        Gallery.open(gallery.path)


def test_a_commit_that_was_not_sealed_any_more_is_kept_and_sealed_when_next_opened(gallery: Gallery) -> None:
    """A process that is killed between the two leaves files that the seal does not name."""
    before = (gallery.path / "seal.json").read_bytes()
    gallery.remove([gallery.rows([0])[0].id])
    (gallery.path / "seal.json").write_bytes(before)
    assert len(Gallery.open(gallery.path)) == 59
    assert verify(gallery.path).sound
    newest_version(gallery.path).unlink()
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
            newest_version(gallery.path).write_bytes(b"")
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
