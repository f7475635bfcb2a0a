"""Pictures from strangers: bombs, wrong types, damaged files, names that are paths."""

from __future__ import annotations

import asyncio
import io
import struct
import zlib
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
import numpy as np
import pytest
from PIL import Image

from evidex.server.settings import Settings
from tests.retrieval.archive import picture
from tests.server.places import asking


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _bomb(width: int, height: int) -> bytes:
    """A PNG of few bytes that claims, and unpacks to, very many pixels."""
    header = _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    packed = zlib.compress(bytes(min(width * height, 2**24)), 9)
    return b"\x89PNG\r\n\x1a\n" + header + _chunk(b"IDAT", packed) + _chunk(b"IEND", b"")


def _encoded(image: Image.Image, form: str, **options: Any) -> bytes:
    stream = io.BytesIO()
    image.save(stream, form, **options)
    return stream.getvalue()


def _sent(settings: Settings, files: list[tuple[str, bytes]], **fields: str) -> list[httpx.Response]:
    async def ask(client: httpx.AsyncClient) -> list[httpx.Response]:
        return [
            await client.post("/search", files={"image": (name, content, "image/png")}, data=fields)
            for name, content in files
        ]

    return asking(settings, ask)


@pytest.mark.parametrize("form", ["PNG", "JPEG", "TIFF", "WEBP", "GIF", "BMP", "JPEG2000"])
def test_usual_formats_are_read(settings: Settings, form: str) -> None:
    (response,) = _sent(settings, [("query", _encoded(picture(1), form))])
    assert response.status_code == 200, response.text


def test_bombs_are_413_before_they_unfold(settings: Settings) -> None:
    responses = _sent(settings, [("a.png", _bomb(60_000, 60_000)), ("b.png", _bomb(2**31 - 1, 2**31 - 1))])
    for response in responses:
        assert response.status_code in (413, 415)
        assert "pixels" in response.json()["error"] or "decode" in response.json()["error"]
    (small,) = _sent(replace(settings, max_pixels=1000), [("c.png", _encoded(picture(0), "PNG"))])
    assert small.status_code == 413
    assert "48×40 pixels" in small.json()["error"]


def test_a_picture_that_shows_nothing_is_422_and_harms_no_other(settings: Settings) -> None:
    white, seen = _encoded(Image.new("RGB", (64, 64), "white"), "PNG"), _encoded(picture(1), "PNG")

    async def ask(client: httpx.AsyncClient) -> list[httpx.Response]:
        files = [{"image": ("a.png", content, "image/png")} for content in (white, seen, white, seen)]
        return await asyncio.gather(*(client.post("/search", files=each) for each in files))

    responses = asking(settings, ask)
    assert [response.status_code for response in responses] == [422, 200, 422, 200]
    assert responses[0].json()["error"].startswith("'a.png' shows nothing: all its pixels are empty or alike; give")


def test_what_is_no_picture_is_415(settings: Settings) -> None:
    whole = _encoded(picture(2), "PNG")
    postscript = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n(/etc/passwd) (r) file\n"
    svg = b'<svg xmlns="http://www.w3.org/2000/svg"><image href="file:///etc/passwd"/></svg>'
    vrt = b'<VRTDataset rasterXSize="1" rasterYSize="1"><SourceFilename>/etc/passwd</SourceFilename></VRTDataset>'
    contents = [b"", b"hello", postscript, svg, vrt, whole[: len(whole) // 2], whole[:20], b"II*\0" + b"\xff" * 64]
    for response in _sent(settings, [("/etc/passwd", content) for content in contents]):
        assert response.status_code == 415, response.text
        assert response.json()["error"].startswith("'passwd'")
        assert "/etc" not in response.json()["error"]


def test_random_damage_never_fails_the_server(settings: Settings) -> None:
    rng = np.random.default_rng(5)
    files = []
    for form in ("PNG", "JPEG", "TIFF", "WEBP", "GIF", "BMP", "JPEG2000"):
        whole = np.frombuffer(_encoded(picture(3), form), np.uint8)
        for _ in range(8):
            damaged = whole.copy()
            places = rng.integers(4, len(whole), 12)
            damaged[places] = rng.integers(0, 256, 12)
            files.append((f"x.{form}", damaged.tobytes()))
    for response in _sent(settings, files):
        assert response.status_code in (200, 413, 415), response.text


def test_forms_without_a_picture_or_with_odd_fields(settings: Settings) -> None:
    image = ("image", ("a.png", _encoded(picture(0), "PNG")))

    async def ask(client: httpx.AsyncClient) -> list[httpx.Response]:
        return [
            await client.post("/search", files=[("picture", image[1])]),
            await client.post("/search", files=[image] * 9),
            await client.post("/search", files=[image], data={"top": "many"}),
            await client.post("/search", files=[image], data={"bbox": "1,2"}),
            await client.post("/search", files=[image], data={"text": " "}),
            await client.post("/search", files=[image], data={"glob": "x" * 5000}),
            await client.post("/search", files=[image], data={f"f{n}": "1" for n in range(40)}),
        ]

    responses = asking(settings, ask)
    assert [response.status_code for response in responses] == [422, 400, 422, 422, 422, 400, 400]
    assert all(response.json()["error"] for response in responses)


def test_large_bodies_are_413_whether_announced_or_not(settings: Settings) -> None:
    async def unannounced() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b"x" * 10_000

    async def ask(client: httpx.AsyncClient) -> list[httpx.Response]:
        kind = {"content-type": "application/json"}
        return [
            await client.post("/search", content=b"x" * 300_000, headers=kind),
            await client.post("/search", content=unannounced(), headers=kind),
            await client.post("/search/batch", content=unannounced(), headers=kind),
            await client.post("/search", files={"image": ("a.png", b"x" * 300_000)}),
        ]

    for response in asking(replace(settings, max_body_bytes=100_000), ask):
        assert response.status_code == 413
        assert "larger than 100000 bytes" in response.json()["error"]


def test_a_body_that_never_ends_is_408(settings: Settings) -> None:
    async def dripping() -> AsyncIterator[bytes]:
        while True:
            yield b" "
            await asyncio.sleep(0.05)

    async def ask(client: httpx.AsyncClient) -> httpx.Response:
        return await client.post("/search", content=dripping(), headers={"content-type": "application/json"})

    response = asking(replace(settings, request_seconds=0.5), ask)
    assert response.status_code == 408
    assert "did not arrive" in response.json()["error"]
