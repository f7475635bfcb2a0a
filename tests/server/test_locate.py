"""POST /locate: only into what the gallery holds, by words, by another item, or by a picture that is sent."""

from __future__ import annotations

import base64
import io
from typing import Any

import httpx
import numpy as np
import pytest

from evidex.locating.asked import ask
from evidex.locating.locate import locate
from evidex.locating.view import view_of_picture
from evidex.retrieval.gallery import Gallery
from evidex.server.settings import Settings
from tests.retrieval.archive import picture
from tests.server.places import ANSWERED, asking


def _png() -> bytes:
    stream = io.BytesIO()
    picture(4).save(stream, "PNG")
    return stream.getvalue()


def test_it_gives_the_librarys_map_and_places(settings: Settings, gallery: Gallery) -> None:
    row = gallery.rows([0])[0]

    async def look(client: httpx.AsyncClient) -> list[httpx.Response]:
        return [
            await client.post("/locate", json={"item": row.id, "text": ANSWERED}),
            await client.post("/locate", json={"item": row.id, "like": row.id}),
            await client.post("/locate", data={"item": row.id}, files={"image": ("a.png", _png(), "image/png")}),
        ]

    responses = asking(settings, look)
    assert [response.status_code for response in responses] == [200, 200, 200]
    body, like, sent = (response.json() for response in responses)
    expected = locate(
        gallery.model, view_of_picture(gallery.open_image(row), row.name), ask(gallery.model, ANSWERED, "text")
    )
    assert body["peak"] == pytest.approx(expected.heat.peak, abs=1e-5)
    assert body["headline"] == expected.headline
    heat = body["heat"]
    levels = np.frombuffer(base64.b64decode(heat["values"]), np.uint8).reshape(heat["rows"], heat["columns"])
    assert levels.max() == 255
    assert np.unravel_index(levels.argmax(), levels.shape) == np.unravel_index(
        np.nan_to_num(expected.heat.values).argmax(), levels.shape
    )
    assert row.footprint is not None
    bounds = row.footprint.bounds
    for peak in body["peaks"]:
        assert bounds.west <= peak["place"]["longitude"] <= bounds.east
        assert bounds.south <= peak["place"]["latitude"] <= bounds.north
    assert like["best_similarity"] == pytest.approx(1.0, abs=0.02)  # the item in itself
    assert sent["query"] == "a.png"


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"item": "nowhere", "text": "a lake"}, 404, "is not in the gallery"),
        ({"item": "/etc/passwd", "text": "a lake"}, 404, "is not in the gallery"),
        ({"item": "ITEM"}, 422, "give either a text"),
        ({"item": "ITEM", "text": "a lake", "like": "ITEM"}, 422, "give either a text"),
        ({"item": "ITEM", "text": "  "}, 422, "the query is empty"),
        ({"item": "ITEM", "like": "nowhere"}, 404, "is not in the gallery"),
        ({"item": "ITEM", "scene": "/tmp/a.tif"}, 422, "'scene' is unknown"),
        ({"text": "a lake"}, 422, "'item' is missing"),
    ],
)
def test_what_cannot_be_looked_at_is_said_in_a_line(
    settings: Settings, gallery: Gallery, body: dict[str, Any], status: int, words: str
) -> None:
    item = gallery.rows([0])[0].id
    sent = {name: item if value == "ITEM" else value for name, value in body.items()}

    async def look(client: httpx.AsyncClient) -> httpx.Response:
        return await client.post("/locate", json=sent)

    response = asking(settings, look)
    assert response.status_code == status
    assert words in response.json()["error"]


def test_forms_without_a_picture_and_other_contents_are_refused(settings: Settings, gallery: Gallery) -> None:
    item = gallery.rows([0])[0].id

    async def look(client: httpx.AsyncClient) -> list[httpx.Response]:
        return [
            await client.post("/locate", data={"item": item}, files={"other": ("a.png", _png(), "image/png")}),
            await client.post("/locate", data={"item": item}, files={"image": ("a.png", b"", "image/png")}),
            await client.post("/locate", data={"item": item}, files={"image": ("a.txt", b"words", "image/png")}),
            await client.post("/locate", content=b"tanks", headers={"content-type": "text/plain"}),
        ]

    assert [response.status_code for response in asking(settings, look)] == [422, 415, 415, 415]
