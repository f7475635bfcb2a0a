"""Search on a Ray cluster of three nodes: the answers of one gallery, whatever is lost or added meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from evidex.data.footprints import Bounds
from evidex.errors import ClusterError, NotFoundError
from evidex.retrieval.answers import Answer
from evidex.retrieval.certainty.calibrating import GuaranteeRequest, KnownQuery, calibrate
from evidex.retrieval.certainty.self_calibrating import self_calibrate
from evidex.retrieval.filters import NO_FILTERS, Filters
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.refine import ALWAYS, AS_CALIBRATED
from evidex.retrieval.retriever import Retriever
from evidex.retrieval.rows import item_id
from evidex.retrieval.sharded.fleet import ShardOptions
from evidex.retrieval.sharded.rows import ShardedRows
from evidex.server.settings import Settings
from tests.cluster.nodes import cluster_of, kill_node, kill_process
from tests.retrieval.archive import WORDS, picture, tiny_model
from tests.retrieval.certainty.test_calibrating import TEXTS
from tests.retrieval.sharded.test_holder import _rows, _unit
from tests.server.places import live
from tests.storage.store import Store, fresh_place, serving

pytestmark = pytest.mark.slow
pytest.importorskip("ray")


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with serving() as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def cluster(store: Store) -> Iterator[Any]:  # noqa: ARG001 (its nodes are to know the store)
    with cluster_of(3) as made:
        yield made


@pytest.fixture
def gallery(tmp_path: Path) -> Gallery:
    return _made(tmp_path / "gallery")


def _made(place: str | Path) -> Gallery:
    made = Gallery.create(place, tiny_model())
    made.append(_rows(400), _unit(400, 0))
    made.add_texts([f"caption {n}" for n in range(20)])
    self_calibrate(made, np.random.default_rng(0))
    return made


def _same(got: Answer, expected: Answer) -> None:
    assert [hit.id for hit in got.hits] == [hit.id for hit in expected.hits]
    assert [hit.score for hit in got.hits] == [hit.score for hit in expected.hits], "to the last bit"
    assert got.uncertainty == pytest.approx(expected.uncertainty, rel=1e-6)
    assert (got.verdict, got.searched, got.guarantee) == (expected.verdict, expected.searched, expected.guarantee)
    assert got.standing.level == expected.standing.level


@pytest.mark.usefixtures("cluster")
def test_answers_are_those_of_one_gallery(gallery: Gallery) -> None:
    filters = [
        NO_FILTERS,
        Filters(bbox=Bounds(13.2, 51.0, 13.9, 53.0)),
        Filters(after=datetime(2021, 1, 1, tzinfo=UTC)),
    ]
    local = Retriever(gallery)
    with Retriever(gallery, cluster="auto", shards=4, replicas=2) as spread:
        for number, text in enumerate([*WORDS, "avocado armchair"]):
            for among in (None, "texts"):
                asked: dict[str, Any] = {
                    "filters": filters[number % 3] if among is None else NO_FILTERS,
                    "among": among,
                }
                for refine in (AS_CALIBRATED, ALWAYS):
                    _same(
                        spread.search(text=text, refine=refine, **asked),
                        local.search(text=text, refine=refine, **asked),
                    )
                example = picture(number)
                _same(spread.search(image=example, **asked), local.search(image=example, **asked))
        ids = [row.id for row in gallery.rows([3, 399])]
        assert spread.neighbours(ids, 5) == local.neighbours(ids, 5)
        (unknown,) = spread.neighbours(["nobody"], 5)
        assert isinstance(unknown, NotFoundError)
        gallery_before = spread.search(text=WORDS[0]).searched
        gallery.append(_rows(30, 400), _unit(30, 400))
        spread.refresh()
        assert spread.search(text=WORDS[0]).searched == gallery_before + 30
        _same(spread.search(text=WORDS[0]), Retriever(gallery).search(text=WORDS[0]))


@pytest.mark.usefixtures("cluster")
def test_copies_fold_as_in_one_gallery(gallery: Gallery) -> None:
    """Pictures that lie there three times, in rows of several shards, one of the three in another folder."""
    rows, vectors = (
        [replace(row, phash=n * 0x9E3779B97F4A7C15 % 2**64) for n, row in enumerate(_rows(40))],
        _unit(40, 0),
    )
    names = [f"/{folder}/scene_{n}.tif" for folder in ("again", "backup") for n in range(40)]
    copied = [replace(rows[n % 40], id=item_id(name), path=name) for n, name in enumerate(names)]
    gallery.replace(rows, vectors)
    gallery.append(copied, np.concatenate([vectors, vectors]))
    local = Retriever(gallery)
    filters = [
        NO_FILTERS,
        Filters(glob="/a*"),
        Filters(after=datetime(2021, 1, 1, tzinfo=UTC)),
        Filters(glob="/backup/*"),
    ]
    with Retriever(gallery, cluster="auto", shards=4) as spread:
        for chosen in filters:
            for text in WORDS[:2]:
                got, expected = (one.search(text=text, top=60, filters=chosen) for one in (spread, local))
                _same(got, expected)
                assert [hit.copies for hit in got.hits] == [hit.copies for hit in expected.hits]
                folded = sum(len(hit.copies) for hit in got.hits)
                assert (folded > 0) == (chosen.glob != "/backup/*")
        (row,) = gallery.rows([int(np.flatnonzero(np.array(gallery.column("path")) == names[0])[0])])
        gallery.remove([row.id])
        spread.refresh()
        got = spread.search(text=WORDS[0], top=400)
        assert names[0] not in {path for hit in got.hits for path in (hit.path, *(copy.path for copy in hit.copies))}
        _same(got, Retriever(gallery).search(text=WORDS[0], top=400))


@pytest.mark.usefixtures("cluster")
def test_a_learned_score_and_its_guarantee_are_those_of_one_gallery(gallery: Gallery) -> None:
    found = Retriever(gallery).search_batch(texts=TEXTS, top=120)
    known = [
        KnownQuery(text, frozenset([answer.hits[100 if n % 3 == 0 else n % 10].id]))
        for n, (text, answer) in enumerate(zip(TEXTS, found, strict=True))
    ]
    rng, guarantee = np.random.default_rng(0), GuaranteeRequest(0.5, 0.1, 10)
    assert calibrate(gallery, known, "text", guarantee=guarantee, score="learned", rng=rng).guarantee is not None
    local = Retriever(gallery)
    with Retriever(gallery, cluster="auto") as spread:
        for text in (f"{text} again" for text in TEXTS[:9]):
            got, expected = spread.search(text=text), local.search(text=text)
            _same(got, expected)
            assert got.standing.chance is not None
            assert got.standing.chance == pytest.approx(expected.standing.chance, abs=1e-6)


@pytest.mark.usefixtures("cluster")
def test_a_gallery_in_an_object_store_is_held_in_memory(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVIDEX_CACHE", str(tmp_path / "cache"))
    gallery = _made(fresh_place())
    expected = Retriever(gallery).search(text=WORDS[0])
    with Retriever(gallery, cluster="auto") as spread:
        _same(spread.search(text=WORDS[0]), expected)
        time.sleep(1.1)  # what was listed of the store is believed for a second
        store.refused = 0
        store.be_busy(10)
        for _ in range(5):
            _same(spread.search(text=WORDS[0]), expected)
        assert store.refused
        gallery.append(_rows(30, 400), _unit(30, 400))
        spread.refresh()
        _same(spread.search(text=WORDS[1]), Retriever(gallery).search(text=WORDS[1]))


@pytest.mark.usefixtures("cluster")
def test_a_process_that_is_killed_is_replaced_and_the_query_repeated(gallery: Gallery) -> None:
    expected = Retriever(gallery).search(text=WORDS[0])
    with Retriever(gallery, cluster="auto", shards=3) as spread:
        rows = spread.rows
        assert isinstance(rows, ShardedRows)
        _same(spread.search(text=WORDS[0]), expected)
        (victim,) = rows.fleet.processes()[1]
        killer = threading.Timer(0.05, kill_process, (victim,))
        killer.start()
        for _ in range(40):
            _same(spread.search(text=WORDS[0]), expected)
        killer.join()
        assert rows.fleet.processes()[1] != [victim]


def test_a_node_that_is_lost_costs_no_query(cluster: Any, gallery: Gallery) -> None:
    import ray

    expected = Retriever(gallery).search(text=WORDS[0])
    with Retriever(gallery, cluster="auto", shards=3) as spread:
        _same(spread.search(text=WORDS[0]), expected)
        lost = next(iter(cluster.worker_nodes))  # each of the three has a shard
        kill_node(lost)
        for _ in range(20):
            _same(spread.search(text=WORDS[0]), expected)
        left = {node["NodeID"] for node in ray.nodes() if node["Alive"]}
        assert lost.node_id not in left, "its shard is held by another since"
        cluster.worker_nodes.discard(lost)


@pytest.mark.usefixtures("cluster")
def test_what_does_not_come_back_in_time_is_told(gallery: Gallery) -> None:
    rows = ShardedRows(gallery, "auto", ShardOptions(shards=2, patience=0.2))
    with Retriever(gallery, rows=rows) as spread:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:  # a process takes longer to start than this one's patience lasts
            try:
                spread.search(text=WORDS[0])
                break
            except ClusterError:
                continue
        kill_process(rows.fleet.processes()[0][0])
        with pytest.raises(ClusterError, match=r"shard 1 of 2 was not to be had in 0\.2 s"):
            spread.search(text=WORDS[0])


@pytest.mark.usefixtures("cluster")
def test_a_server_answers_from_the_cluster(gallery: Gallery) -> None:
    expected = Retriever(gallery).search(text=WORDS[0], top=5)
    with live(Settings(gallery.path, port=0, cluster="auto", shards=2, refresh_seconds=0.1)) as address:
        got = httpx.post(f"{address}/search", json={"text": WORDS[0], "top": 5}, timeout=60).json()
        assert [hit["id"] for hit in got["hits"]] == [hit.id for hit in expected.hits]
        assert got["verdict"] == expected.verdict
        assert httpx.get(f"{address}/gallery").json()["kinds"] == {"image": 400, "text": 20}
        gallery.append(_rows(10, 400), _unit(10, 400))
        for _ in range(100):
            if httpx.get(f"{address}/gallery", timeout=60).json()["rows"] == 430:
                break
            time.sleep(0.1)
        assert httpx.post(f"{address}/search", json={"text": WORDS[0]}, timeout=60).json()["searched"] == 410
