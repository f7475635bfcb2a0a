"""Several servers, each with a part of the archive, against one gallery that holds all of it."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import uvicorn

from evidex.errors import InputError, PartError
from evidex.retrieval.certainty.calibration import Calibration
from evidex.retrieval.certainty.common_questions import COMMON_QUESTIONS
from evidex.retrieval.certainty.scores import certainty_lost
from evidex.retrieval.encoding import encode
from evidex.retrieval.filters import NO_FILTERS
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.indexing import IndexOptions
from evidex.retrieval.parts.joined import JoinedRows, Parts
from evidex.retrieval.parts.part import Part
from evidex.retrieval.parts.wire import PartFound
from evidex.retrieval.refine import ALWAYS, NEVER
from evidex.retrieval.retriever import Retriever
from evidex.retrieval.searchable import OwnRows
from evidex.scenes.archive import render_archive
from evidex.server.app import create_app
from evidex.server.engine import Engine, PartScan
from evidex.server.metrics import Metrics
from evidex.server.running import bound
from evidex.server.settings import Settings
from tests.retrieval.archive import tiny_model
from tests.server.places import asking, live

QUERIES = ["a river between green fields", "dense houses and roads", "avocado armchair", "many planes near a terminal"]
TOKEN = "between-us"


@dataclass(frozen=True)
class Cluster:
    whole: Gallery
    folders: list[Path]
    front: str
    second: str


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Rows 0, 3, 6, … here and the others on two further servers."""
    folder = tmp_path_factory.mktemp("parts")
    render_archive(folder / "archive", count=126, size=48, georeferenced=True)
    whole = Gallery.create(folder / "whole", tiny_model())
    whole.add(folder / "archive", options=IndexOptions(workers=1))
    folders = []
    for number in range(3):
        part = Gallery.create(folder / f"part{number}", tiny_model())
        places = list(range(number, len(whole), 3))
        part.append(whole.rows(places), np.array(whole.vectors[places]))
        folders.append(part.path)
    with ExitStack() as stack:
        others = [stack.enter_context(live(Settings(path, port=0, token=TOKEN))) for path in folders[1:]]
        front = Settings(folders[0], port=0, parts=tuple(others), part_token=TOKEN, refresh_seconds=0.2)
        yield Cluster(whole, folders, stack.enter_context(live(front)), others[1])


def asked(cluster: Cluster, **question: Any) -> dict[str, Any]:
    reply = httpx.post(f"{cluster.front}/search", json=question, timeout=30)
    assert reply.status_code == 200, reply.text
    answer: dict[str, Any] = reply.json()
    return answer


def bare(row_id: str) -> str:
    return row_id.rpartition(".")[2]


@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.parametrize("top", [1, 7, 126])
def test_the_answer_is_that_of_the_whole(cluster: Cluster, text: str, top: int) -> None:
    got = asked(cluster, text=text, top=top, mode="plain")
    expected = Retriever(cluster.whole).search(text=text, top=top, refine=NEVER)
    assert [bare(hit["id"]) for hit in got["hits"]] == [hit.id for hit in expected.hits]
    assert [hit["score"] for hit in got["hits"]] == pytest.approx([hit.score for hit in expected.hits], abs=1e-6)
    assert got["uncertainty"] == pytest.approx(expected.uncertainty, rel=1e-6)
    assert got["searched"] == len(cluster.whole)
    assert {"caption", "footprint", "acquired", "path"} <= got["hits"][0].keys()
    for hit, known in zip(got["hits"], expected.hits, strict=True):
        assert hit | {"id": known.id, "score": 0.0} == json.loads(json.dumps(known.json() | {"score": 0.0}))


def test_filters_hold_everywhere(cluster: Cluster) -> None:
    everything = asked(cluster, text=QUERIES[0], top=126)["hits"]
    west, south, *_ = everything[0]["corners"][3]
    box = [west - 0.05, south - 0.05, west + 0.05, south + 0.05]
    expected = Retriever(cluster.whole).search(text=QUERIES[0], top=126, refine=NEVER)
    inside = asked(cluster, text=QUERIES[0], top=126, bbox=box)
    assert 0 < inside["searched"] < 126
    assert inside["searched"] == len(inside["hits"])
    wanted = {bare(hit["id"]) for hit in inside["hits"]}
    assert [bare(hit["id"]) for hit in inside["hits"]] == [hit.id for hit in expected.hits if hit.id in wanted]
    none = asked(cluster, text=QUERIES[0], glob="*.nowhere")
    assert (none["searched"], none["hits"], none["verdict"]) == (0, [], "abstained")


def test_queries_are_judged_by_what_usual_ones_find_in_the_whole(cluster: Cluster) -> None:
    whole = OwnRows(cluster.whole)
    vectors = encode(cluster.whole.model, [*COMMON_QUESTIONS, QUERIES[0]], "text")
    *usual, own = certainty_lost(whole.scan(vectors, whole.select(NO_FILTERS, "images"), 1)).tolist()
    got = asked(cluster, text=QUERIES[0], mode="plain")["percentile"]
    assert got == pytest.approx(np.mean(np.array(usual) < own), abs=1e-9)
    about = httpx.get(f"{cluster.front}/gallery").json()
    assert about["rows"] == 126
    assert about["kinds"] == {"image": 126}
    assert {(each["direction"], each["among"]) for each in about["calibrations"]} == {
        ("text", "images"),
        ("image", "images"),
    }
    assert "evidex_gallery_rows 126.0" in httpx.get(f"{cluster.front}/metrics").text


def test_rows_of_other_machines_can_be_looked_at(cluster: Cluster) -> None:
    hits = asked(cluster, text=QUERIES[0], top=126)["hits"]
    by_part = {hit["id"].partition(".")[0] if "." in hit["id"] else "0": hit for hit in hits}
    assert set(by_part) == {"0", "1", "2"}
    with httpx.Client(base_url=cluster.front) as client:
        for hit in by_part.values():
            item = client.get(f"/items/{hit['id']}").json()
            assert (item["id"], item["path"]) == (hit["id"], hit["path"])
            picture = client.get(f"/items/{hit['id']}/thumbnail")
            assert picture.content.startswith(b"\xff\xd8\xff")
            again = client.get(f"/items/{hit['id']}/thumbnail", headers={"If-None-Match": picture.headers["etag"]})
            assert again.status_code == 304
            like = asked(cluster, item=hit["id"], top=3)
            assert like["hits"][0]["id"] == hit["id"]
        for unknown in ("1.0f3c", "3.0f3c", "9999999999999.0f3c", "1.", "1.../../health", "0.x"):
            assert client.get(f"/items/{unknown}").status_code == 404, unknown
            assert client.get(f"/items/{unknown}/preview").status_code == 404, unknown


def test_neighbours_are_those_of_the_whole(cluster: Cluster) -> None:
    hits = asked(cluster, text=QUERIES[1], top=126)["hits"]
    whole = Retriever(cluster.whole)
    for hit in hits[::17]:
        got = httpx.get(f"{cluster.front}/items/{hit['id']}/neighbours", params={"top": 5}).json()["hits"]
        (expected,) = whole.neighbours([bare(hit["id"])], 5)
        assert isinstance(expected, list)
        assert [bare(each["id"]) for each in got] == [each.id for each in expected]


def test_parts_ask_for_their_token_and_answer_for_themselves_alone(cluster: Cluster) -> None:
    vectors = tiny_model().encode_texts(["a river"])
    with pytest.raises(PartError, match="401"):
        Part(cluster.second).scan(vectors, NO_FILTERS, "images", 5)
    found = Part(cluster.second, TOKEN).scan(vectors, NO_FILTERS, "images", 5)
    assert found.result.count == 42
    assert Part(cluster.front).scan(vectors, NO_FILTERS, "images", 5).result.count == 42
    assert Part(cluster.front).scan(vectors, NO_FILTERS, "images", 201).result.ids.shape == (1, 42)
    with pytest.raises(PartError, match="top is 499; give 1 to 200"):
        Part(cluster.front).scan(vectors, NO_FILTERS, "images", 500)
    with pytest.raises(PartError, match="no vectors of 32"):
        Part(cluster.front).scan(vectors[:, :31], NO_FILTERS, "images", 5)


def test_new_rows_elsewhere_are_found_and_counted(cluster: Cluster, tmp_path: Path) -> None:
    render_archive(tmp_path / "more", count=25, size=48, seed=5)
    part = Gallery.create(tmp_path / "growing", tiny_model())
    with live(Settings(part.path, port=0, refresh_seconds=0.1)) as address:
        settings = Settings(cluster.folders[0], parts=(address,), refresh_seconds=0.1)

        async def ask(client: httpx.AsyncClient) -> tuple[int, int]:
            before = (await client.get("/gallery")).json()["rows"]
            part.add(tmp_path / "more", options=IndexOptions(workers=1))
            for _ in range(200):
                after = (await client.get("/gallery")).json()["rows"]
                if after == 67:
                    break
                await asyncio.sleep(0.05)
            answer = (await client.post("/search", json={"text": QUERIES[0], "top": 100})).json()
            assert answer["searched"] == 67
            return before, after

        assert asking(settings, ask) == (42, 67)


def test_a_part_that_is_gone_is_said_and_no_answer_is_given(cluster: Cluster, tmp_path: Path) -> None:
    part = Gallery.create(tmp_path / "part", tiny_model())
    part.append(cluster.whole.rows([1]), np.array(cluster.whole.vectors[[1]]))
    with ExitStack() as stack:
        gone = stack.enter_context(live(Settings(part.path, port=0)))
        settings = Settings(cluster.folders[0], port=0, parts=(gone,), refresh_seconds=0.1)
        front = ExitStack()
        with front:
            address = front.enter_context(live(settings))
            assert httpx.post(f"{address}/search", json={"text": "a river"}).status_code == 200
            stack.close()
            reply = httpx.post(f"{address}/search", json={"text": "a river"})
            assert reply.status_code == 503
            assert reply.json()["error"].startswith(f"part {gone} does not answer (")
            for _ in range(100):
                ready = httpx.get(f"{address}/ready")
                if ready.status_code == 503:
                    break
            assert gone in ready.json()["error"]


def test_a_server_that_starts_before_its_parts_becomes_ready_with_them(cluster: Cluster, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    part = Gallery.create(tmp_path / "late", tiny_model())
    part.append(cluster.whole.rows([1]), np.array(cluster.whole.vectors[[1]]))
    settings = Settings(cluster.folders[0], port=0, parts=(f"http://127.0.0.1:{port}",), refresh_seconds=0.1)
    listener = bound(settings)
    server = uvicorn.Server(uvicorn.Config(create_app(settings), log_level="critical"))
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    try:
        for _ in range(200):
            try:
                if "does not answer" in httpx.get(f"{address}/ready").text:
                    break
            except httpx.TransportError:
                pass
            threading.Event().wait(0.05)
        else:
            pytest.fail("the missing part was not noticed")
        with live(Settings(part.path, port=port)):
            for _ in range(200):
                if httpx.get(f"{address}/ready").status_code == 200:
                    break
                threading.Event().wait(0.05)
            assert httpx.post(f"{address}/search", json={"text": "a river"}).json()["searched"] == 43
    finally:
        server.should_exit = True
        thread.join(20)
        listener.close()


def test_a_part_that_joins_parts_itself_is_refused(cluster: Cluster) -> None:
    engine = Engine(Gallery.open(cluster.folders[1]), Metrics(), parts=Parts([Part(cluster.front)]))
    with pytest.raises(PartError, match="joins parts itself"):
        engine.warm_up()
    with pytest.raises(InputError, match="named twice"):
        Settings(cluster.folders[0], parts=("http://west", "http://west/"))


def test_rows_that_move_between_two_scans_of_a_query_are_not_mixed_up(cluster: Cluster) -> None:
    """The part answers from one gallery at first and then from another, as if rows had been removed in between."""
    first, second = (Engine(Gallery.open(folder), Metrics()) for folder in cluster.folders[1:])
    second.gallery._version = 1000
    asked_of: list[Engine] = []

    class Moving(Part):
        def scan(self, vectors: Any, filters: Any, target: Any, top: int) -> PartFound:
            asked_of.append(first if not asked_of else second)
            found: PartFound = asked_of[-1].run(PartScan(top, filters, target), [vectors])[0]
            return found

    gallery, parts = Gallery.open(cluster.folders[0]), Parts([Moving("http://west")])
    calibration = Calibration(gallery.info.model_fingerprint, "text", 84, "vacuity", np.linspace(-20, 20, 50))
    parts.calibrations["text", "images"] = calibration
    retriever = Retriever(gallery, rows=JoinedRows(OwnRows(gallery), parts))
    answer = retriever.search(text=QUERIES[0], top=60, refine=ALWAYS)
    assert answer.verdict == "refined"
    assert len(asked_of) == 4, "two scans, and both again"
    there = {f"1.{row.id}" for row in second.gallery.rows(range(len(second.gallery)))}
    assert {hit.id for hit in answer.hits if "." in hit.id} <= there


def test_a_part_that_answers_drop_by_drop_is_given_up_in_time() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()

        def drip() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
                for _ in range(100):
                    try:
                        connection.sendall(b" ")
                    except OSError:
                        return
                    threading.Event().wait(0.05)

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        begun = time.monotonic()
        with pytest.raises(PartError, match="takes too long"):
            Part(f"http://127.0.0.1:{listener.getsockname()[1]}", seconds=0.3).about()
        assert time.monotonic() - begun < 3
        thread.join(10)


def test_a_part_of_another_model_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    other = Gallery.create(tmp_path / "other", tiny_model(1))
    with live(Settings(other.path, port=0)) as address:
        engine = Engine(Gallery.open(cluster.folders[0]), Metrics(), parts=Parts([Part(address)]))
        with pytest.raises(PartError, match="vectors of another model"):
            engine.warm_up()


def test_a_server_without_rows_of_its_own_answers_for_the_others(cluster: Cluster, tmp_path: Path) -> None:
    empty = Gallery.create(tmp_path / "empty", tiny_model())
    with live(Settings(cluster.folders[1], port=0)) as other:

        async def ask(client: httpx.AsyncClient) -> dict[str, Any]:
            answer: dict[str, Any] = (await client.post("/search", json={"text": QUERIES[0], "top": 4})).json()
            return answer

        got = asking(Settings(empty.path, parts=(other,)), ask)
    expected = Retriever(Gallery.open(cluster.folders[1])).search(text=QUERIES[0], top=4)
    assert [hit["id"] for hit in got["hits"]] == [f"1.{hit.id}" for hit in expected.hits]
    assert got["uncertainty"] == pytest.approx(expected.uncertainty, rel=1e-6)
    assert got["calibrated"]


@pytest.mark.parametrize(
    "address", ["west", "ftp://west", "http://", "http://west:99999", "http://west:x", "http://a/b"]
)
def test_an_address_that_is_none_is_said_before_anything_is_served(cluster: Cluster, address: str) -> None:
    with pytest.raises(InputError, match="write http://HOST:PORT"):
        create_app(Settings(cluster.folders[0], parts=(address,)))
    with pytest.raises(InputError, match="give 1024"):
        Settings(cluster.folders[0], parts=("http://west",), largest_batch=2000)
