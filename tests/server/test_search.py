"""Searching over HTTP: the same answers as in the library, in one scan, within limits."""

from __future__ import annotations

import asyncio
import io
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from evidex.data.acquired import parse_time
from evidex.data.footprints import Bounds
from evidex.retrieval.certainty.calibrating import GuaranteeRequest, KnownQuery, calibrate
from evidex.retrieval.filters import Filters
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.retriever import Retriever
from evidex.retrieval.scan import scan as scan_module
from evidex.server.settings import Settings
from tests.retrieval.archive import picture
from tests.server.places import ANSWERED, asking, make_gallery, texts_by_verdict


def _png(seed: int = 0) -> bytes:
    stream = io.BytesIO()
    picture(seed).save(stream, "PNG")
    return stream.getvalue()


def test_a_text_gets_the_librarys_answer(settings: Settings, gallery: Gallery) -> None:
    async def ask(client: httpx.AsyncClient) -> httpx.Response:
        return await client.post("/search", json={"text": ANSWERED, "top": 5})

    response = asking(settings, ask)
    expected = Retriever(gallery).search(text=ANSWERED, top=5)
    assert response.status_code == 200
    body = response.json()
    assert [hit["id"] for hit in body["hits"]] == [hit.id for hit in expected.hits]
    assert [hit["score"] for hit in body["hits"]] == pytest.approx([hit.score for hit in expected.hits])
    assert body["uncertainty"] == pytest.approx(expected.uncertainty)
    assert (body["verdict"], body["percentile"]) == (expected.verdict, expected.percentile)
    assert body["explanation"] == expected.explanation
    assert body["searched"] == 24


def test_filters_and_modes_reach_the_search(settings: Settings, gallery: Gallery) -> None:
    box = [-1.0, 39.0, -0.5, 39.5]
    by_verdict = texts_by_verdict(gallery)

    async def ask(client: httpx.AsyncClient) -> list[Any]:
        bodies = (
            {"text": ANSWERED, "top": 24, "bbox": box, "after": "2020-01-01", "before": "2023-01-01T00:00:00Z"},
            {"text": ANSWERED, "glob": "*airport*"},
            {"text": by_verdict["refined"], "mode": "plain"},
            {"text": by_verdict["answered"], "mode": "careful"},
            {"text": ANSWERED, "glob": "nothing-like-this"},
        )
        return [(await client.post("/search", json=body)).json() for body in bodies]

    filtered, airports, plain, careful, nothing = asking(settings, ask)
    filters = Filters(Bounds(*box), parse_time("2020-01-01"), parse_time("2023-01-01"))
    expected = Retriever(gallery).search(text=ANSWERED, top=24, filters=filters)
    assert 0 < expected.searched < 24
    assert [hit["id"] for hit in filtered["hits"]] == [hit.id for hit in expected.hits]
    assert {hit["path"].rpartition("/")[2][:7] for hit in airports["hits"]} == {"airport"}
    assert plain["refinement"] is None
    assert careful["refinement"]["copies"] == 4
    assert "as you wished" in " ".join(careful["details"])
    assert careful["headline"] in ("Good matches", "Plausible matches")
    assert (nothing["hits"], nothing["searched"]) == ([], 0)
    assert nothing["headline"] == "There was nothing to search"


def test_a_guarantee_is_shown_only_in_the_mode_it_was_tested_in(settings: Settings, tmp_path: Path) -> None:
    made = make_gallery(tmp_path, calibrated=False, seed=1)  # whose refined answers keep the right ones
    texts = [f"{ANSWERED} {n}" for n in range(100)]
    found = Retriever(made).search_batch(texts=texts, top=12)
    known = [
        KnownQuery(text, frozenset([answer.hits[n % 12].id]))
        for n, (text, answer) in enumerate(zip(texts, found, strict=True))
    ]
    outcome = calibrate(made, known, "text", guarantee=GuaranteeRequest(0.4, 0.1, 12), rng=np.random.default_rng(1))
    assert outcome.guarantee is not None
    assert outcome.guarantee.threshold is not None
    answers = Retriever(made).search_batch(texts=texts, top=12)
    kept = next(text for text, answer in zip(texts, answers, strict=True) if answer.guarantee is not None)
    made.add_texts(["a row of another kind changes nothing for pictures"])

    async def ask(client: httpx.AsyncClient) -> tuple[Any, list[Any]]:
        modes = ({"mode": "auto"}, {"mode": "plain"}, {"mode": "careful"}, {"top": 11}, {"glob": "*"})
        found = [(await client.post("/search", json={"text": kept, **mode})).json() for mode in modes]
        return (await client.get("/gallery")).json(), [answer["guarantee"] for answer in found]

    served = replace(settings, gallery=made.path)
    about, guarantees = asking(served, ask)
    assert "among the first 12" in guarantees[0]
    assert guarantees[1:] == [None] * 4
    assert [calibration["guarantee"] for calibration in about["calibrations"]] == guarantees[:1]
    assert about["calibrations"][0]["abstain_above"] < 0.9  # the guarantee's
    made.append([replace(made.rows([0])[0], id="another")], made.vectors[:1])
    about, guarantees = asking(served, ask)
    assert guarantees == [None] * 5
    assert [calibration["guarantee"] for calibration in about["calibrations"]] == [None]
    assert about["calibrations"][0]["abstain_above"] > 0.97  # nothing is refused for the guarantee's sake any more


def test_each_verdict_has_its_headline(settings: Settings, gallery: Gallery) -> None:
    async def ask(client: httpx.AsyncClient) -> dict[str, Any]:
        by_verdict = texts_by_verdict(gallery)
        return {
            verdict: (await client.post("/search", json={"text": text})).json() for verdict, text in by_verdict.items()
        }

    found = asking(settings, ask)
    assert {verdict: body["verdict"] for verdict, body in found.items()} == {v: v for v in found}
    assert set(found) == {"answered", "refined", "abstained"}
    assert found["abstained"]["headline"] == "Probably nothing here matches"
    assert found["refined"]["headline"] == "Perhaps: look twice"
    assert found["refined"]["refinement"]["copies"] == 4
    assert found["answered"]["headline"] in ("Good matches", "Plausible matches")


def test_a_picture_gets_the_librarys_answer(settings: Settings, gallery: Gallery) -> None:
    async def ask(client: httpx.AsyncClient) -> httpx.Response:
        files = {"image": ("../../etc/pass\\wd.png", _png(3), "image/png")}
        return await client.post("/search", files=files, data={"top": "4", "bbox": "-2,38,1,41", "after": ""})

    response = asking(settings, ask)
    expected = Retriever(gallery).search(image=picture(3), top=4)
    assert response.status_code == 200, response.text
    assert [hit["id"] for hit in response.json()["hits"]] == [hit.id for hit in expected.hits]
    assert response.json()["query"] == "wd.png"


def test_an_item_can_be_the_query(settings: Settings, gallery: Gallery) -> None:
    row = gallery.rows([7])[0]

    async def ask(client: httpx.AsyncClient) -> tuple[Any, Any, Any]:
        like = await client.post("/search", json={"item": row.id, "top": 3})
        near = await client.get(f"/items/{row.id}/neighbours", params={"top": 3})
        unknown = await client.get("/items/nobody/neighbours")
        return like.json(), near.json(), unknown

    like, near, unknown = asking(settings, ask)
    assert like["hits"][0]["id"] == row.id
    assert like["hits"][0]["score"] == pytest.approx(1.0, abs=1e-3)
    vectors = gallery.vectors.astype(np.float64)
    order = [i for i in np.argsort(-(vectors @ vectors[7])) if i != 7][:3]
    assert [hit["id"] for hit in near["hits"]] == [row.id for row in gallery.rows(order)]
    assert [hit["rank"] for hit in near["hits"]] == [1, 2, 3]
    assert unknown.status_code == 404


@pytest.mark.parametrize(("top", "status"), [(0, 422), (200, 200), (201, 422), (20_000, 422)])
def test_neighbours_have_the_limit_of_hits(settings: Settings, gallery: Gallery, top: int, status: int) -> None:
    address = f"/items/{gallery.rows([7])[0].id}/neighbours"

    async def ask(client: httpx.AsyncClient) -> httpx.Response:
        return await client.get(address, params={"top": top})

    response = asking(settings, ask)
    assert response.status_code == status
    assert status == 200 or response.json()["error"] == f"top is {top}; give 1 to 200"


def test_a_batch_answers_like_single_queries(settings: Settings) -> None:
    texts = ["planes", "a river", ANSWERED, "planes"]

    async def ask(client: httpx.AsyncClient) -> tuple[Any, list[Any]]:
        together = (await client.post("/search/batch", json={"texts": texts, "top": 3})).json()
        alone = [(await client.post("/search", json={"text": text, "top": 3})).json() for text in texts]
        return together["answers"], alone

    together, alone = asking(settings, ask)
    for one, other in zip(together, alone, strict=True):
        assert [hit["id"] for hit in one["hits"]] == [hit["id"] for hit in other["hits"]]
        assert one["verdict"] == other["verdict"]
        assert one["uncertainty"] == pytest.approx(other["uncertainty"], rel=1e-5)


def test_requests_that_arrive_together_share_a_scan(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    scans: list[int] = []
    real = scan_module.scan

    def counted(queries: Any, *arguments: Any, **options: Any) -> Any:
        scans.append(len(queries))
        return real(queries, *arguments, **options)

    async def ask(client: httpx.AsyncClient) -> list[httpx.Response]:
        monkeypatch.setattr("evidex.retrieval.searchable.scan", counted)
        scans.clear()
        asked = [client.post("/search", json={"text": f"{ANSWERED} {n}", "mode": "plain"}) for n in range(20)]
        return await asyncio.gather(*asked)

    responses = asking(replace(settings, batch_seconds=0.5, largest_batch=20), ask)
    assert [response.status_code for response in responses] == [200] * 20
    assert scans == [20]
    assert [response.json()["query"] for response in responses] == [f"{ANSWERED} {n}" for n in range(20)]
    assert len(asking(replace(settings, largest_batch=1, batch_seconds=0.0), ask)) == 20
    assert scans == [1] * 20


def _held_up(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Scans wait for this event."""
    go = threading.Event()
    real = scan_module.scan

    def slow(*arguments: Any, **options: Any) -> Any:
        assert go.wait(20)
        return real(*arguments, **options)

    monkeypatch.setattr("evidex.retrieval.searchable.scan", slow)
    return go


def test_a_full_queue_answers_429_at_once(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask(client: httpx.AsyncClient) -> list[httpx.Response]:
        go = _held_up(monkeypatch)
        try:
            asked = [asyncio.ensure_future(client.post("/search", json={"text": "first"}))]
            while 'kind="text"' not in (await client.get("/metrics")).text:
                await asyncio.sleep(0.01)
            asked += [asyncio.ensure_future(client.post("/search", json={"text": f"t {n}"})) for n in range(11)]
            while sum(task.done() for task in asked) < 7:
                await asyncio.sleep(0.01)
            refused = [task.result() for task in asked if task.done()]
        finally:
            go.set()
        answered = await asyncio.gather(*asked)
        assert sum(response.status_code == 200 for response in answered) == 5
        return refused

    for response in asking(replace(settings, queue=4, largest_batch=4, batch_seconds=0.0), ask):
        assert response.status_code == 429
        assert response.headers["retry-after"] == "1"
        assert "waiting already" in response.json()["error"]


@pytest.mark.parametrize(
    ("address", "status"), [("/gallery", 429), ("/health", 200), ("/ready", 200), ("/metrics", 200)]
)
def test_too_many_requests_at_once_answer_429_except_to_probes(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, address: str, status: int
) -> None:
    async def ask(client: httpx.AsyncClient) -> httpx.Response:
        go = _held_up(monkeypatch)
        asked = [asyncio.ensure_future(client.post("/search", json={"text": "t"})) for _ in range(3)]
        await asyncio.sleep(0.05)
        response = await client.get(address)
        go.set()
        assert [r.status_code for r in await asyncio.gather(*asked)] == [200] * 3
        return response

    assert asking(replace(settings, max_requests=3), ask).status_code == status


def test_a_slow_answer_is_given_up_in_words(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask(client: httpx.AsyncClient) -> httpx.Response:
        go = _held_up(monkeypatch)
        response = await client.post("/search", json={"text": "t"})
        go.set()
        assert (await client.post("/search", json={"text": "t"})).status_code == 200
        return response

    response = asking(replace(settings, request_seconds=0.6), ask)
    assert response.status_code == 504
    assert response.json()["error"].startswith("no answer within 0.6 s")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "give a text or an image"),
        ({"text": "a -b", "without": ["c"] * 9}, "without"),
        ({"text": "  "}, "empty"),
        ({"text": "x" * 2001}, "2001 characters"),
        ({"text": "a", "top": 0}, "top is 0; give 1 to 200"),
        ({"text": "a", "top": -3}, "top is -3; give 1 to 200"),
        ({"text": "a", "top": True}, "top is true; give a number"),
        ({"text": "a", "max_cloud": True}, "max_cloud is true; give a number"),
        ({"text": "a", "top": 201}, "give 1 to 200"),
        ({"text": "a", "top": 20_000}, "top is 20000; give 1 to 200"),
        ({"text": "a", "top": 10**30}, "; give 1 to 200"),
        ({"text": "a", "bbox": [1, 2, 3]}, "bbox"),
        ({"text": "a", "bbox": [0, 50, 1, 40]}, "south above its north"),
        ({"text": "a", "bbox": [0, 0, 1, 1e300]}, "leaves the earth"),
        ({"text": "a", "after": "soon"}, "no time"),
        ({"text": "a", "mode": "wild"}, "mode"),
        ({"text": "a", "colour": "red"}, "'colour' is unknown"),
        ([], "object"),
    ],
)
def test_bad_questions_are_422_in_words(settings: Settings, body: Any, words: str) -> None:
    async def ask(client: httpx.AsyncClient) -> httpx.Response:
        return await client.post("/search", json=body)

    response = asking(settings, ask)
    assert response.status_code == 422
    assert words in response.json()["error"]
    assert list(response.json()) == ["error"]
    assert "\n" not in response.json()["error"]


def test_odd_bodies_are_refused_in_words(settings: Settings) -> None:
    async def ask(client: httpx.AsyncClient) -> list[httpx.Response]:
        json_type = {"content-type": "application/json"}
        return [
            await client.post("/search", content=b"{", headers=json_type),
            await client.post("/search", content=b'{"text": "\\ud800"}', headers=json_type),
            await client.post("/search", content=b"\xff\xfe", headers=json_type),
            await client.post("/search", content=b"text=a", headers={"content-type": "text/plain"}),
            await client.post("/search", content=b"--x", headers={"content-type": "multipart/form-data"}),
            await client.post("/search/batch", json={"texts": ["a"] * 65}),
            await client.post("/search/batch", json={"texts": []}),
            await client.get("/search"),
            await client.get("/nowhere"),
        ]

    responses = asking(settings, ask)
    assert [response.status_code for response in responses] == [422, 422, 422, 415, 400, 422, 422, 405, 404]
    assert all(response.json()["error"] for response in responses)
