"""A look at a gallery's files tells every change that a server must take up."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from evidex.errors import GalleryError
from evidex.retrieval.certainty.calibration import Calibration
from evidex.retrieval.certainty.calibration_store import store_calibration
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.retriever import Search
from evidex.retrieval.rows import Row, item_id
from evidex.server.engine import Engine, Neighbours
from evidex.server.metrics import Metrics
from evidex.server.settings import Settings
from evidex.server.watch import state_of
from tests.retrieval.archive import tiny_model
from tests.server.places import asking, make_gallery


def _gallery(path: Path) -> Gallery:
    gallery = Gallery.create(path, tiny_model())
    gallery.append([_row(name) for name in "ab"], np.eye(32, dtype=np.float32)[:2])
    return gallery


def _row(name: str) -> Row:
    return Row(item_id(name), name, "image", "0" * 64)


def _calibrate(gallery: Gallery, offset: float) -> None:
    scores = np.linspace(0, 1, 50) + offset
    calibration = Calibration(gallery.info.model_fingerprint, "text", 2, "vacuity", scores)
    store_calibration(gallery, calibration, "images")


def test_every_change_shows_and_nothing_else_does(tmp_path: Path) -> None:
    gallery = _gallery(tmp_path / "g")
    seen = [state_of(gallery.path)]
    gallery.vectors  # noqa: B018 (mapping them writes files beside the table)
    Gallery.open(gallery.path, tiny_model()).rows([0])
    assert state_of(gallery.path) == seen[0]
    changes: tuple[Callable[[], object], ...] = (
        lambda: gallery.append([_row("c")], np.eye(32, dtype=np.float32)[:1]),
        lambda: gallery.replace([replace(_row("a"), captions=("new",))], np.eye(32, dtype=np.float32)[:1]),
        lambda: gallery.remove([item_id("b")]),
        gallery.compact,
        lambda: _calibrate(gallery, 0.0),
        lambda: _calibrate(gallery, 1.0),
        lambda: shutil.rmtree(gallery.path / "calibration"),
    )
    for change in changes:
        change()
        seen.append(state_of(gallery.path))
        assert seen[-1] != seen[-2]


def test_a_gallery_that_is_gone_is_an_os_error(tmp_path: Path) -> None:
    gallery = _gallery(tmp_path / "g")
    shutil.rmtree(gallery.path / "rows.lance")
    with pytest.raises(OSError, match=r"rows\.lance"):
        state_of(gallery.path)


def test_the_table_is_opened_again_only_after_a_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gallery = _gallery(tmp_path / "g")
    looks: list[Path] = []
    real = Gallery.refresh

    def noted(self: Gallery) -> bool:
        looks.append(self.path)
        return real(self)

    monkeypatch.setattr(Gallery, "refresh", noted)

    async def ask(client: httpx.AsyncClient) -> tuple[int, int, Any]:
        assert not (await client.post("/search", json={"text": "a river"})).json()["calibrated"]
        quiet = -1
        while quiet != len(looks):  # until it has looked and settled, however slow the machine
            quiet = len(looks)
            await asyncio.sleep(0.5)
        await asyncio.sleep(0.5)
        still = len(looks)
        _calibrate(gallery, 0.0)
        answer: Any = None
        for _ in range(200):
            answer = (await client.post("/search", json={"text": "a river"})).json()
            if answer["calibrated"] and len(looks) > still:
                break
            await asyncio.sleep(0.05)
        return quiet, still, answer

    quiet, still, answer = asking(Settings(gallery.path, refresh_seconds=0.05), ask)
    assert still == quiet
    assert answer["calibrated"]
    assert len(looks) > still


def test_times_of_the_same_second_are_told_apart(tmp_path: Path) -> None:
    gallery = _gallery(tmp_path / "g")
    before = state_of(gallery.path)
    status = (gallery.path / "gallery.json").stat()
    os.utime(gallery.path / "gallery.json", ns=(status.st_atime_ns, status.st_mtime_ns + 1000))
    assert state_of(gallery.path) != before


def test_a_gallery_that_was_taken_away_is_said_to_who_asks(tmp_path: Path) -> None:
    engine = Engine(make_gallery(tmp_path, count=8, calibrated=False), Metrics())
    engine.warm_up()
    (tmp_path / "gallery").rename(tmp_path / "elsewhere")
    engine.gallery._columns.clear()
    with pytest.raises(GalleryError, match="is gone; bring it back"):
        engine.run(Neighbours(3), ["any"])
    (tmp_path / "elsewhere").rename(tmp_path / "gallery")
    assert len(engine.run(Search("text", 3), ["a river"])[0].hits) == 3
