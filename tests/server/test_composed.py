"""Questions in several parts, and copies, over HTTP."""

from __future__ import annotations

import io
from typing import Any

import httpx

from evidex.retrieval.gallery import Gallery
from evidex.server.settings import Settings
from tests.retrieval.archive import picture
from tests.server.places import asking


def _png(seed: int) -> bytes:
    stream = io.BytesIO()
    picture(seed).save(stream, "PNG")
    return stream.getvalue()


def test_parts_come_as_json_or_as_a_form(settings: Settings, gallery: Gallery) -> None:
    item = gallery.rows([3])[0]

    async def ask(client: httpx.AsyncClient) -> list[Any]:
        pictures = [("image", ("a.png", _png(1), "image/png")), ("image", ("b.png", _png(2), "image/png"))]
        return [
            (await client.post("/search", json={"item": item.id, "text": "a lake", "without": ["snow"]})).json(),
            (await client.post("/search", json={"text": "a lake -snow"})).json(),
            (await client.post("/search", files=pictures, data={"text": "a lake", "without": ["snow", "ice"]})).json(),
            (await client.post("/search", json={"without": ["snow"]})).json(),
            (await client.post("/search", json={"text": "-snow"})).json(),
            (await client.post("/search", json={"text": "a lake", "copies": True})).json(),
        ]

    both, minus, form, nothing, only, plain = asking(settings, ask)
    assert both["query"] == f"{item.name} + a lake -snow"
    assert minus["query"] == "a lake -snow"
    assert form["query"] == "a.png + b.png + a lake -snow -ice"
    for answer in (both, minus, form):
        assert answer["reasons"][0] == "several_parts"
        assert len(answer["hits"]) == 12
    assert "give a text or an image" in nothing["error"]
    assert "only what is not wanted" in only["error"]
    assert plain["reasons"][:1] != ["several_parts"]
    assert all(hit["copies"] == [] for hit in plain["hits"])
