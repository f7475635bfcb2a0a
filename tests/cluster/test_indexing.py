"""Indexing on a cluster leaves what indexing here does, whatever is killed meanwhile."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from evidex.cluster.connection import Cluster
from evidex.cluster.indexing import ClusterWorkforce
from evidex.errors import GalleryError
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.indexing import IndexOptions, IndexReport
from evidex.retrieval.reindexing import reindex
from evidex.retrieval.verifying.verify import verify
from tests.data.serving import serving as web
from tests.data.stac.catalogs import item, write, write_catalog
from tests.retrieval.archive import tiny_model, write_images
from tests.storage.store import fresh_place, serving

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def nodes() -> Iterator[Any]:
    """Two nodes as processes of their own, beside a store that they know."""
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster as Nodes

    with serving() as store:
        small = {"num_cpus": 1, "object_store_memory": 80 * 2**20}
        started = Nodes(initialize_head=True, head_node_args={**small, "include_dashboard": False})
        started.add_node(**small)
        started.store = store
        with Cluster(started.address):
            yield started
        ray.shutdown()
        started.shutdown()


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EVIDEX_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "scenes"
    paths = write_images(folder, 60)
    (folder / "copy.png").write_bytes(paths[0].read_bytes())
    (folder / "broken.png").write_bytes(b"no picture at all")
    entry = {"filename": paths[1].name, "split": "x", "captions": ["many planes near a terminal"]}
    (folder / "captions.json").write_text(json.dumps({"dataset": "a", "images": [entry]}))
    return folder


def indexed(place: str | Path, archive: Path, cluster: bool, then: Callable[[Any], None] | None = None) -> IndexReport:
    gallery = Gallery.open(place) if cluster and _is_there(place) else Gallery.create(place, tiny_model())
    workforce = ClusterWorkforce(gallery.place) if cluster else None
    return gallery.add([archive], options=IndexOptions(workforce=workforce, rows_a_commit=8, committed=then))


def _is_there(place: str | Path) -> bool:
    from evidex.storage.objects import place_of

    return (place_of(place) / "gallery.json").exists()


def rows(place: str | Path) -> list[dict[str, Any]]:
    """By id, with the vectors to the last bit."""
    table = Gallery.open(place).dataset.to_table().sort_by("id")
    return list(table.to_pylist())


def workers_of(nodes: Any) -> list[int]:
    """The processes of these nodes that index, and none of another cluster's."""
    raylets = {node.all_processes["raylet"][0].process.pid for node in nodes.list_all_nodes()}
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                if parent in raylets and (entry / "cmdline").read_bytes().startswith(b"ray::IndexWorker"):
                    found.append(int(entry.name))
    return found


@pytest.mark.usefixtures("nodes")
def test_what_is_told_of_pictures_comes_through_workers_too(archive: Path, tmp_path: Path) -> None:
    """Of a catalog, one item of it on another machine, and beside pictures that are hashed to find their copies."""
    catalog = write_catalog(tmp_path, 5)
    site = tmp_path / "site"
    site.mkdir()
    (site / "far.png").write_bytes((archive / "copy.png").read_bytes())
    write(site / "item.json", item("far", {"visual": "far.png"}, {"eo:cloud_cover": 3}))
    with web(site) as server:
        places: list[str | Path] = [catalog, archive, f"{server.address}/item.json"]
        here, there = (Gallery.create(tmp_path / name, tiny_model()) for name in ("here", "there"))
        here.add(places, options=IndexOptions(workers=1))
        report = there.add(places, options=IndexOptions(workforce=ClusterWorkforce(there.place)))
    assert report.added == 67
    found = rows(tmp_path / "there")
    assert found == rows(tmp_path / "here")
    assert all(row["phash"] is not None for row in found)
    assert sum(row["catalog"] is not None for row in found) == 6
    assert [row["item"] for row in found if row["thumbnail"] is not None] == ["far"]
    assert there.notes == here.notes


@pytest.mark.parametrize("shared", ["folder", "store"])
@pytest.mark.usefixtures("nodes")
def test_the_rows_are_those_of_a_run_here(shared: str, archive: Path, tmp_path: Path) -> None:
    here = indexed(tmp_path / "here", archive, cluster=False)
    there = tmp_path / "there" if shared == "folder" else fresh_place()
    report = indexed(there, archive, cluster=True)
    assert rows(there) == rows(tmp_path / "here")
    counts = ("found", "added", "skipped", "rows", "images")
    assert [getattr(report, name) for name in counts] == [getattr(here, name) for name in counts]
    again = indexed(there, archive, cluster=True)
    assert (again.unchanged, again.encoded, len(again.skipped)) == (61, 0, 1)
    assert verify(there).sound


def test_a_worker_and_a_node_that_are_killed_and_a_busy_store_cost_nothing(
    nodes: Any, archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    third = nodes.add_node(num_cpus=1, object_store_memory=80 * 2**20)
    done: list[str] = []

    def disturb(_: object) -> None:
        if not done:
            os.kill(workers_of(nodes)[0], signal.SIGKILL)
            done.append("worker")
        elif done[-1] == "worker":
            nodes.remove_node(third, allow_graceful=False)
            done.append("node")
        elif done[-1] == "node":
            nodes.store.be_busy(10)
            done.append("store")

    there = fresh_place()
    report = indexed(there, archive, cluster=True, then=disturb)
    assert done == ["worker", "node", "store"]
    assert capsys.readouterr().out == "", "where a command prints JSON, and Ray what it lost"
    assert (report.added, report.rows) == (61, 61)
    indexed(tmp_path / "here", archive, cluster=False)
    assert rows(there) == rows(tmp_path / "here")
    assert verify(there).sound


def test_a_driver_that_is_killed_is_run_again(nodes: Any, archive: Path, tmp_path: Path) -> None:
    there = fresh_place()
    Gallery.create(there, tiny_model())
    code = (
        "import sys\nfrom evidex import Gallery\nfrom evidex.cluster.connection import Cluster\n"
        "from evidex.cluster.indexing import ClusterWorkforce\nfrom evidex.retrieval.indexing import IndexOptions\n"
        "gallery = Gallery.open(sys.argv[1])\nwith Cluster(sys.argv[3]):\n"
        "    options = IndexOptions(workforce=ClusterWorkforce(gallery.place), rows_a_commit=8, committed=print)\n"
        "    gallery.add([sys.argv[2]], options=options)\n"
    )
    command = [sys.executable, "-u", "-c", code, there, str(archive), nodes.address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline()
        driver.kill()
    assert 0 < len(Gallery.open(there)) < 61
    started = time.monotonic()
    assert indexed(there, archive, cluster=True).rows == 61
    assert time.monotonic() - started < 39  # its place as the writer is not waited for: it is known to be gone
    indexed(tmp_path / "here", archive, cluster=False)
    assert rows(there) == rows(tmp_path / "here")


@pytest.mark.usefixtures("nodes")
def test_what_a_worker_lacks_is_told(archive: Path, tmp_path: Path) -> None:
    tiny_model().save(tmp_path / "here.safetensors")
    gallery = Gallery.create(tmp_path / "there", tiny_model(), source=tmp_path / "here.safetensors")
    (tmp_path / "here.safetensors").unlink()
    with pytest.raises(GalleryError, match=r"^a worker of the cluster: .* was made with model .* cannot be loaded"):
        gallery.add([archive], options=IndexOptions(workforce=ClusterWorkforce(gallery.place)))


@pytest.mark.usefixtures("nodes")
def test_another_model_over_a_gallery(archive: Path, tmp_path: Path) -> None:
    indexed(tmp_path / "old", archive, cluster=False)
    old = Gallery.open(tmp_path / "old")
    new = Gallery.create(tmp_path / "new", tiny_model(seed=1))
    report = reindex(old, new, IndexOptions(workforce=ClusterWorkforce(new.place)))
    assert (report.added, report.rows) == (61, 61)
    fresh = Gallery.create(tmp_path / "fresh", tiny_model(seed=1))
    fresh.add([archive])
    assert rows(tmp_path / "new") == rows(tmp_path / "fresh")
    assert reindex(old, new, IndexOptions(workforce=ClusterWorkforce(new.place))).unchanged == 61


def test_the_command_says_what_it_did(nodes: Any, archive: Path, tmp_path: Path) -> None:
    gallery = str(tmp_path / "there")
    command = [sys.executable, "-m", "evidex", "index", str(archive), "--gallery", gallery, "--no-calibrate", "--json"]
    run = subprocess.run([*command, "--cluster", nodes.address], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["rows"] == 61
