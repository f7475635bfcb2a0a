"""A small georeferenced archive behind a server, for the tests of the interface and of the page."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx
import numpy as np
from fastapi import FastAPI

from evidex.retrieval.certainty.calibration import Calibration
from evidex.retrieval.certainty.calibration_store import store_calibration
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.indexing import IndexOptions
from evidex.retrieval.queries import Direction
from evidex.retrieval.retriever import Retriever
from evidex.scenes.archive import render_archive
from evidex.server.app import create_app
from evidex.server.settings import Settings
from tests.retrieval.archive import tiny_model

T = TypeVar("T")
ANSWERED, REFINED, ABSTAINED = "a river between green fields", "dense houses and roads", "avocado armchair"


def make_gallery(folder: Path, *, count: int = 24, size: int = 64, calibrated: bool = True, seed: int = 0) -> Gallery:
    """Rendered scenes with a place and a time; ANSWERED, REFINED and ABSTAINED get the verdicts of their names."""
    render_archive(folder / "archive", count=count, size=size, georeferenced=True)
    gallery = Gallery.create(folder / "gallery", tiny_model(seed))
    gallery.add(folder / "archive", options=IndexOptions(workers=1))
    if calibrated:
        _calibrate(gallery, "text")
        _calibrate(gallery, "image")
    return gallery


def _calibrate(gallery: Gallery, direction: Direction) -> None:
    """Put the thresholds (percentiles 0.9 and 0.98) between the scores that the three queries have."""
    if direction == "image":
        scores = np.linspace(-20.0, 10.0, 100)
    else:
        found = Retriever(gallery).search_batch(texts=[ANSWERED, REFINED, ABSTAINED], top=1)
        # The score is -log(1/u - 1); an untrained model gives them in no useful order, so the words are sorted first.
        a, b, c = sorted(-np.log(1 / answer.uncertainty - 1) for answer in found)
        scores = np.concatenate([np.linspace(a - 1, a + (b - a) / 2, 90), np.linspace(b, b + (c - b) / 2, 9), [c + 1]])
    calibration = Calibration(gallery.info.model_fingerprint, direction, len(gallery), "vacuity", scores)
    store_calibration(gallery, calibration, "images")


def texts_by_verdict(gallery: Gallery) -> dict[str, str]:
    """Which of the three texts gets which verdict."""
    texts = [ANSWERED, REFINED, ABSTAINED]
    return {
        answer.verdict: text for text, answer in zip(texts, Retriever(gallery).search_batch(texts=texts), strict=True)
    }


@asynccontextmanager
async def running(app: FastAPI, **options: Any) -> AsyncIterator[httpx.AsyncClient]:
    """A client of ``app`` in this process, once it is ready."""
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://localhost", **options) as client,
    ):
        while (await client.get("/ready")).status_code != 200:
            await asyncio.sleep(0.01)
        yield client


def asking(settings: Settings, ask: Callable[[httpx.AsyncClient], Awaitable[T]], **options: Any) -> T:
    """What ``ask`` returns of a fresh server."""

    async def whole() -> T:
        async with running(create_app(settings), **options) as client:
            return await ask(client)

    return asyncio.run(whole())


@contextmanager
def live(settings: Settings) -> Iterator[str]:
    """The address of a real server on a free port, once it is ready."""
    import uvicorn

    from evidex.server.running import bound, configured

    listener = bound(settings)
    server = uvicorn.Server(configured(create_app(settings), settings))
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    try:
        with httpx.Client(base_url=address) as client:
            for _ in range(1000):
                try:
                    if client.get("/ready").status_code == 200:
                        break
                except httpx.TransportError:
                    pass
                threading.Event().wait(0.02)
        yield address
    finally:
        server.should_exit = True
        thread.join(20)
        listener.close()
