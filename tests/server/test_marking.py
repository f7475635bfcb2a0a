"""Marks over HTTP: kept for a question, and made by nobody but the page or a client of one's own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from evidex.retrieval.gallery import Gallery
from evidex.retrieval.marks import Marks
from evidex.server.settings import Settings
from tests.server.places import asking


@pytest.fixture(autouse=True)
def _without_marks(gallery: Gallery) -> Iterator[None]:
    yield
    Marks(gallery.path).delete()


def test_a_mark_is_kept_changed_and_taken_back(settings: Settings, gallery: Gallery) -> None:
    one, two = gallery.rows([0, 1])

    async def ask(client: httpx.AsyncClient) -> list[object]:
        said = []
        for row, says in ((one, "right"), (two, "wrong"), (one, "wrong"), (two, None)):
            body = {"text": "a river", "id": row.id, "says": says}
            said.append((await client.post("/marks", json=body)).json()["marks"])
        said.append((await client.get("/marks", params={"text": " a  river "})).json()["marks"])
        said.append((await client.get("/marks", params={"text": "a lake"})).json()["marks"])
        said.append((await client.get("/gallery")).json()["marks"])
        return said

    first, _, third, fourth, river, lake, taken = asking(settings, ask)
    assert first == [{"id": one.id, "says": "right"}]
    assert {"id": two.id, "says": "wrong"} in third  # type: ignore[operator]
    assert fourth == river == [{"id": one.id, "says": "wrong"}]
    assert (lake, taken) == ([], True)


def test_marks_rank_the_question_anew_without_a_verdict(settings: Settings) -> None:
    async def ask(client: httpx.AsyncClient) -> list[dict[str, object]]:
        plain = (await client.post("/search", json={"text": "a river", "top": 24})).json()
        ids = [hit["id"] for hit in plain["hits"]]
        again = {"text": "a river", "top": 24, "right": [ids[10], "gone"], "wrong": [ids[0]]}
        return [plain, (await client.post("/search", json=again)).json()]

    plain, again = asking(settings, ask)
    before, after = ([hit["id"] for hit in answer["hits"]] for answer in (plain, again))  # type: ignore[attr-defined]
    assert after.index(before[10]) < 10
    assert again["reasons"][0] == "several_parts"  # type: ignore[index]


def test_other_sites_and_forms_may_not_mark(settings: Settings, gallery: Gallery) -> None:
    body = {"text": "a river", "id": gallery.rows([0])[0].id, "says": "right"}

    async def ask(client: httpx.AsyncClient) -> list[int]:
        origins = ("http://evil.example", "null", "http://localhost:1234", "http://localhost")
        answers = [await client.post("/marks", json=body, headers={"Origin": origin}) for origin in origins]
        plain = {"Content-Type": "text/plain"}
        answers.append(await client.post("/marks", json=body, headers=plain))
        answers.append(await client.post("/marks", data=body))
        answers.append(await client.post("/marks", json={**body, "id": "unknown"}))
        answers.append(await client.post("/marks", json={"id": body["id"], "says": "right"}))
        answers.append(await client.post("/marks", json={**body, "says": "perhaps"}))
        answers.append(await client.options("/marks", headers={"Origin": "http://evil.example"}))
        return [answer.status_code for answer in answers]

    codes = asking(settings, ask)
    assert codes[:4] == [403, 403, 403, 200]
    assert all(code in (415, 422) for code in codes[4:6])
    assert codes[6:] == [404, 422, 422, 405]
    assert len(Marks(gallery.path).all()) == 1


def test_a_server_that_others_reach_takes_marks_only_if_told(settings: Settings, gallery: Gallery) -> None:
    body = {"text": "a river", "id": gallery.rows([0])[0].id, "says": "right"}

    async def ask(client: httpx.AsyncClient) -> tuple[int, bool]:
        return (await client.post("/marks", json=body)).status_code, (await client.get("/gallery")).json()["marks"]

    public = replace(settings, host="0.0.0.0")
    assert asking(public, ask) == (403, False)
    assert asking(replace(public, marks=True), ask) == (200, True)
    assert asking(replace(settings, marks=False), ask) == (403, False)


def test_marks_of_what_is_gone_are_not_told(settings: Settings, gallery: Gallery) -> None:
    row = gallery.rows([0])[0]

    async def ask(client: httpx.AsyncClient) -> object:
        await client.post("/marks", json={"text": "a river", "id": row.id, "says": "right"})
        file = Path(gallery.path) / "marks.jsonl"
        kept = file.read_bytes()
        Marks(gallery.path).add(replace(Marks(gallery.path).all()[0], id="gone"))
        Marks(gallery.path).add(replace(Marks(gallery.path).all()[0], sha256="0" * 64))
        found = (await client.get("/marks", params={"text": "a river"})).json()["marks"]
        file.write_bytes(kept)
        return found

    assert asking(settings, ask) == []
