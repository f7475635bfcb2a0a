"""A running server notices damage to its gallery: the same answer, or 503 with the reason, and back again."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import numpy as np
import pytest

from evidex.errors import DamagedError
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.retriever import Search
from evidex.retrieval.searchable import OwnRows
from evidex.retrieval.soundness import checks
from evidex.server.engine import Engine
from evidex.server.metrics import Metrics
from evidex.server.settings import Settings
from tests.retrieval.archive import arbitrary_gallery, tiny_model
from tests.server.places import asking


@pytest.fixture
def gallery(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Gallery:
    """One whose vectors are mapped, as those of a large one are: in memory no damage reaches them."""
    monkeypatch.setattr("evidex.retrieval.soundness.mapped.are_few", lambda *_: False)
    made = arbitrary_gallery(tmp_path / "g", tiny_model(), 40)
    made.vectors  # noqa: B018 (maps them)
    return made


def _mapped(folder: Path) -> Path:
    return folder / str(json.loads((folder / "vectors.json").read_text())["file"])


def _data(folder: Path) -> Path:
    return next((folder / "rows.lance" / "data").iterdir())


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[40] ^= 8
    with path.open("r+b") as stream:  # in place: it is mapped
        stream.write(content)


@pytest.mark.parametrize(
    ("damage", "status"),
    [
        (lambda folder: os.truncate(_mapped(folder), 64), 200),
        (lambda folder: _flip(_mapped(folder)), 200),
        (lambda folder: _flip(_data(folder)), 503),
        (lambda folder: _data(folder).unlink(), 503),
        (lambda folder: shutil.rmtree(folder / "rows.lance"), 503),
        (shutil.rmtree, 503),
    ],
)
def test_the_very_next_answer_is_the_same_or_503(
    gallery: Gallery, tmp_path: Path, damage: Callable[[Path], None], status: int
) -> None:
    shutil.copytree(gallery.path, tmp_path / "kept")

    async def ask(client: httpx.AsyncClient) -> list[httpx.Response]:
        question = {"text": "a river"}
        before = await client.post("/search", json=question)
        damage(gallery.path)
        replies = [before] + [await client.post("/search", json=question) for _ in range(5)]
        if status == 503:
            for _ in range(400):
                if (await client.get("/ready")).status_code == 503:
                    break
                await asyncio.sleep(0.05)
            replies.append(await client.get("/ready"))
            shutil.copytree(tmp_path / "kept", gallery.path, dirs_exist_ok=True)
        for _ in range(400):
            if (after := await client.post("/search", json=question)).status_code == 200:
                break
            await asyncio.sleep(0.05)
        return [*replies, after]

    first, *replies, last = asking(Settings(gallery.path, refresh_seconds=0.1), ask)
    assert {reply.status_code for reply in replies} == {status}
    hits = first.json()["hits"]
    assert last.json()["hits"] == hits
    for reply in replies:
        if status == 200:
            assert reply.json()["hits"] == hits
        else:
            told = reply.json()["error"]
            assert any(words in told for words in ("is damaged", "is gone", "cannot be read any more"))


def test_a_patrol_tells_of_rows_that_changed_though_no_time_did(
    gallery: Gallery, monkeypatch: pytest.MonkeyPatch
) -> None:
    time.sleep(0.06)
    engine = Engine(Gallery.open(gallery.path, tiny_model()), Metrics())
    engine.warm_up()
    before = engine.run(Search("text", 3), ["a river"])[0].hits
    _patrol(engine)
    path = _data(gallery.path)
    # Nothing can be written without the times telling; so the look at them is made blind.
    before_flip, real = checks.state_of(path), checks.state_of
    _flip(path)
    monkeypatch.setattr(checks, "state_of", lambda place: before_flip if place == path else real(place))
    assert engine.run(Search("text", 3), ["a river"])[0].hits == before
    with pytest.raises(DamagedError, match=path.name):
        _patrol(engine)
    with pytest.raises(DamagedError, match=path.name):
        engine.run(Search("text", 3), ["a river"])


def _patrol(engine: Engine) -> None:
    for _ in range(20):
        engine.patrol()


def test_what_is_served_rounded_is_scored_with_sound_vectors(gallery: Gallery) -> None:
    exact = Engine(Gallery.open(gallery.path, tiny_model()), Metrics()).run(Search("text", 3), ["a river"])[0]
    opened = Gallery.open(gallery.path, tiny_model())
    engine = Engine(opened, Metrics(), OwnRows(opened, precision="int8"))
    engine.warm_up()
    _flip(_mapped(gallery.path))
    found = engine.run(Search("text", 3), ["a river"])[0]
    assert [hit.path for hit in found.hits] == [hit.path for hit in exact.hits]
    assert np.allclose([hit.score for hit in found.hits], [hit.score for hit in exact.hits], atol=0)
