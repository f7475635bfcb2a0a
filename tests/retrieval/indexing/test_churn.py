"""Whatever happens to the files, the next quiet run leaves exactly what a fresh index would."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evidex.retrieval.gallery import Gallery
from evidex.retrieval.table import files_of
from evidex.retrieval.verifying.verify import verify
from tests.retrieval.archive import tiny_model
from tests.retrieval.indexing.churning import Archive, differences, fresh_rows, options, rows_of
from tests.retrieval.indexing.in_process import Pool


class Killed(BaseException):
    pass


def _kill_at(gallery: Gallery, write: int, after: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the process end before or after so many changes of the table: all that a kill can leave of it."""
    left = [write]

    def ending(change: Callable[..., Any]) -> Callable[..., Any]:
        def changed(*arguments: Any) -> None:
            left[0] -= 1
            if left[0] < 0 and not after:
                raise Killed
            change(*arguments)
            if left[0] < 0:
                raise Killed

        return changed

    for name in ("append", "replace", "remove", "compact", "_committed"):  # the last: between a commit and its seal
        monkeypatch.setattr(gallery, name, ending(getattr(gallery, name)))


def _churned(seed: int, rounds: int, place: Path, pool: type[Pool], monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    archive = Archive(place / "archive", rng, 8)
    Gallery.create(place / "gallery", tiny_model())
    for number in range(rounds):
        did = [archive.churn() for _ in range(int(rng.integers(1, 6)))]
        gallery = Gallery.open(place / "gallery", tiny_model())
        how = str(rng.choice(["quiet", "killed", "restless"]))
        if how == "killed":
            with monkeypatch.context() as patch:
                _kill_at(gallery, int(rng.integers(6)), bool(rng.random() < 0.5), patch)
                try:
                    gallery.add(archive.folder, options=options())
                except Killed:
                    did.append("killed")
        elif how == "restless":
            pool.between = staticmethod(lambda: archive.churn() if rng.random() < 0.05 else None)
            gallery.add(archive.folder, options=options())
            pool.between = staticmethod(lambda: None)
        gallery = Gallery.open(place / "gallery", tiny_model())
        report = gallery.add(archive.folder, options=options())
        assert report.found == len(archive.files())
        fresh = fresh_rows(archive, tiny_model(), place / "fresh")
        assert differences(rows_of(gallery), fresh) == [], f"seed {seed}, round {number}, {how}: {did}"
        assert verify(gallery.path).findings == ()
        assert gallery.checks.covers(files_of(gallery.path, gallery.dataset), gallery.version)


@pytest.mark.parametrize("seed", range(4))
def test_any_changes_leave_what_a_fresh_index_holds(
    seed: int, tmp_path: Path, pool: type[Pool], monkeypatch: pytest.MonkeyPatch
) -> None:
    _churned(seed, 3, tmp_path, pool, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 112))
def test_many_changes_leave_what_a_fresh_index_holds(
    seed: int, tmp_path: Path, pool: type[Pool], monkeypatch: pytest.MonkeyPatch
) -> None:
    _churned(seed, 12, tmp_path, pool, monkeypatch)
