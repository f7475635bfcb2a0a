"""The server as a whole: start, token, host names, growth, trouble, metrics, schema."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from evidex.errors import GalleryError, InputError
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.indexing import IndexOptions
from evidex.server.app import create_app
from evidex.server.settings import Settings
from tests.retrieval.archive import tiny_model, write_images
from tests.server.places import ANSWERED, asking, running

OPEN = ("/health", "/ready", "/openapi.json", "/")
CLOSED = ("/gallery", "/metrics", "/items/x", "/items/x/thumbnail", "/items/x/neighbours", "/nowhere")


def test_the_token_guards_everything_that_tells_of_the_gallery(settings: Settings) -> None:
    right = ("Bearer s3cret", "bearer s3cret", "BEARER  s3cret")

    async def ask(client: httpx.AsyncClient) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for sent in (None, "Bearer wrong", "Basic s3cret", "s3cret", "Bearer s3cre", *right, "Bearer ü", "bearer"):
            headers = {} if sent is None else {b"authorization": sent.encode()}
            codes = [(await client.get(path, headers=headers)).status_code for path in (*OPEN, *CLOSED)]
            codes.append((await client.post("/search", json={"text": "a"}, headers=headers)).status_code)
            found[str(sent)] = codes
        return found

    found = asking(replace(settings, token="s3cret"), ask)
    for sent in right:
        assert found.pop(sent) == [200, 200, 200, 503, 200, 200, 404, 404, 404, 404, 200], sent
    for sent, codes in found.items():
        assert codes[4:] == [401] * 7, sent
        assert codes[:4] == [200, 200, 200, 503]


def test_a_local_server_answers_to_its_own_names_only(settings: Settings) -> None:
    async def ask(client: httpx.AsyncClient) -> list[int]:
        names = ("localhost", "127.0.0.1:8765", "[::1]:8765", "LOCALHOST:1", "evil.example", "evil.example:8765", "")
        return [(await client.get("/health", headers={"host": name})).status_code for name in names]

    assert asking(settings, ask) == [200, 200, 200, 200, 400, 400, 400]
    assert set(asking(replace(settings, host="0.0.0.0"), ask)) == {200}


def test_answers_carry_the_headers_of_a_closed_page(settings: Settings) -> None:
    async def ask(client: httpx.AsyncClient) -> httpx.Response:
        return await client.get("/")

    response = asking(settings, ask)
    assert "default-src 'none'" in response.headers["content-security-policy"]
    assert response.headers["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in response.headers
    assert response.status_code == 503
    assert "npm ci &amp;&amp; npm run build" in response.text


def test_new_rows_appear_without_restart(tmp_path: Path) -> None:
    write_images(tmp_path / "a", 3)
    Gallery.create(tmp_path / "gallery", tiny_model()).add(tmp_path / "a", options=IndexOptions(workers=1))

    async def ask(client: httpx.AsyncClient) -> None:
        async def seen() -> tuple[int, int]:
            rows = (await client.get("/gallery")).json()["rows"]
            answer = (await client.post("/search", json={"text": ANSWERED, "top": 50})).json()
            return rows, len(answer["hits"])

        assert await seen() == (3, 3)
        write_images(tmp_path / "a", 5, first=3)
        writer = Gallery.open(tmp_path / "gallery", tiny_model())
        await asyncio.to_thread(writer.add, tmp_path / "a", options=IndexOptions(workers=1))
        for _ in range(200):
            if await seen() == (8, 8):
                break
            await asyncio.sleep(0.05)
        assert await seen() == (8, 8)
        newest = writer.rows([7])[0]
        assert (await client.get(f"/items/{newest.id}/thumbnail")).status_code == 200
        assert (await client.get(f"/items/{newest.id}/neighbours")).status_code == 200
        writer.remove([newest.id])
        for _ in range(200):
            if (await client.get(f"/items/{newest.id}")).status_code == 404 and await seen() == (7, 7):
                break
            await asyncio.sleep(0.05)
        assert (await client.get(f"/items/{newest.id}")).status_code == 404
        assert await seen() == (7, 7)

    asking(Settings(tmp_path / "gallery", refresh_seconds=0.1), ask)


def test_an_empty_gallery_answers_in_words_and_fills(tmp_path: Path) -> None:
    Gallery.create(tmp_path / "gallery", tiny_model())

    async def ask(client: httpx.AsyncClient) -> list[Any]:
        return [
            (await client.get("/gallery")).json(),
            (await client.post("/search", json={"text": "a river"})).json(),
            (await client.get("/items/x/neighbours")).status_code,
        ]

    about, answer, code = asking(Settings(tmp_path / "gallery"), ask)
    assert (about["rows"], about["bounds"], about["calibrations"]) == (0, None, [])
    assert (answer["hits"], answer["verdict"]) == ([], "abstained")
    assert "empty" in answer["explanation"]
    assert code == 404


def test_a_lost_gallery_is_told_and_what_is_mapped_is_served(tmp_path: Path) -> None:
    write_images(tmp_path / "a", 3)
    Gallery.create(tmp_path / "gallery", tiny_model()).add(tmp_path / "a", options=IndexOptions(workers=1))

    async def ask(client: httpx.AsyncClient) -> httpx.Response:
        shutil.rmtree(tmp_path / "gallery" / "rows.lance")
        for _ in range(200):
            response = await client.get("/ready")
            if response.status_code == 503:
                break
            await asyncio.sleep(0.05)
        return response

    response = asking(Settings(tmp_path / "gallery", refresh_seconds=0.1), ask)
    assert response.status_code == 503
    assert "cannot be read any more" in response.json()["error"]


def test_what_is_no_gallery_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(GalleryError, match="is no gallery"):
        create_app(Settings(tmp_path))
    wrongs: list[dict[str, Any]] = [
        {"port": 70000},
        {"token": ""},
        {"token": "ü"},
        {"queue": 0},
        {"request_seconds": float("nan")},
    ]
    for wrong in wrongs:
        with pytest.raises(InputError):
            Settings(tmp_path, **wrong)


def test_the_gallery_is_described(settings: Settings, gallery: Gallery) -> None:
    async def ask(client: httpx.AsyncClient) -> Any:
        return (await client.get("/gallery")).json()

    about = asking(settings, ask)
    boxes = [row.footprint.bounds for row in gallery.rows(range(24)) if row.footprint]
    times = [row.acquired for row in gallery.rows(range(24)) if row.acquired]
    assert (about["rows"], about["kinds"], about["georeferenced"], about["dated"]) == (24, {"image": 24}, 24, 24)
    assert about["bounds"][0] == min(box.west for box in boxes)
    assert about["bounds"][3] == max(box.north for box in boxes)
    assert about["first"][:19] == min(times).isoformat()[:19]
    assert {(c["direction"], c["queries"]) for c in about["calibrations"]} == {("text", 100), ("image", 100)}
    text = next(c for c in about["calibrations"] if c["direction"] == "text")
    assert 0.85 < text["refine_above"] < text["abstain_above"] <= 1.0


def test_metrics_count_requests_batches_and_verdicts(settings: Settings) -> None:
    async def ask(client: httpx.AsyncClient) -> str:
        await client.post("/search/batch", json={"texts": ["a", "b", "c"], "mode": "plain"})
        await client.get("/items/nobody")
        await client.get("/nowhere/at/all")
        return (await client.get("/metrics")).text

    text = asking(settings, ask)
    assert 'evidex_requests_total{method="POST",route="/search/batch",status="200"} 1.0' in text
    assert 'evidex_requests_total{method="GET",route="/items/{item_id}",status="404"} 1.0' in text
    assert 'route="(none)",status="404"' in text
    assert 'evidex_batch_size_sum{kind="text"} 3.0' in text
    assert "evidex_gallery_rows 24.0" in text
    assert "process_resident_memory_bytes" in text


def test_the_schema_has_examples_that_work(settings: Settings) -> None:
    async def ask(client: httpx.AsyncClient) -> tuple[Any, list[int]]:
        schema = (await client.get("/openapi.json")).json()
        examples = schema["paths"]["/search"]["post"]["requestBody"]["content"]["application/json"]["examples"]
        codes = [(await client.post("/search", json=example["value"])).status_code for example in examples.values()]
        batch = schema["components"]["schemas"]["BatchRequest"]["examples"][0]
        return schema, [*codes, (await client.post("/search/batch", json=batch)).status_code]

    schema, codes = asking(settings, ask)
    assert codes == [200, 200, 404, 404, 200]
    assert set(schema["paths"]) == {
        "/search", "/search/batch", "/items/{item_id}", "/items/{item_id}/neighbours", "/items/{item_id}/thumbnail",
        "/items/{item_id}/preview", "/locate", "/gallery", "/health", "/ready",
        "/marks", "/metrics",
    }  # fmt: skip
    assert "multipart/form-data" in schema["paths"]["/search"]["post"]["requestBody"]["content"]


def test_two_apps_live_side_by_side(settings: Settings) -> None:
    async def both() -> list[int]:
        async with running(create_app(settings)) as one, running(create_app(settings)) as other:
            return [(await client.post("/search", json={"text": "a"})).status_code for client in (one, other, one)]

    assert asyncio.run(both()) == [200, 200, 200]
