"""Index the same archive here and on clusters of several nodes on this machine, and compare the galleries row for row.

    python benchmarks/cluster_index.py --pictures 20000 --nodes 2 4

Every node is a set of processes of its own with one core. Printed are the rows of each gallery, how many differ from
those of the run here (in any column, vectors to the last bit), and pictures a second against the run here. With
`--kill` a worker, then a node, is killed in the middle of every run on a cluster.
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import evidex
from evidex.cluster.connection import Cluster
from evidex.cluster.indexing import ClusterWorkforce
from evidex.retrieval.indexing import IndexOptions, IndexReport
from evidex.retrieval.verifying.verify import verify

_IN_FOLDER = 1000
_STORE_BYTES = 100 * 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", type=int, default=20_000)
    parser.add_argument("--size", type=int, default=64, help="pixels a side")
    parser.add_argument("--nodes", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--model", default="compact")
    parser.add_argument("--kill", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="evidex-bench-") as scratch:
        folder = Path(scratch)
        draw(folder / "scenes", options.pictures, options.size)
        here = evidex.Gallery.create(folder / "here", evidex.load_model(options.model))
        report = here.add([folder / "scenes"])
        base = report.encoded / report.seconds
        print(f"here: {report.rows} rows, {report.seconds:.1f} s, {base:.0f} pictures/s", flush=True)
        for count in options.nodes:
            report, killed = on_nodes(folder, count, options.model, options.kill)
            rate = report.encoded / report.seconds
            there = folder / f"nodes-{count}"
            differ = differing(folder / "here", there)
            print(
                f"{count} nodes: {report.rows} rows, {differ} differ, {'sound' if verify(there).sound else 'DAMAGED'}, "
                f"{report.seconds:.1f} s, {rate:.0f} pictures/s ({rate / base:.2f} of here){killed}",
                flush=True,
            )


def draw(folder: Path, count: int, size: int) -> None:
    for number in range(count):
        place = folder / f"{number // _IN_FOLDER:03d}"
        place.mkdir(parents=True, exist_ok=True)
        coarse = np.random.default_rng(number).integers(0, 256, (6, 6, 3), dtype=np.uint8)
        picture = Image.fromarray(coarse).resize((size, size), Image.Resampling.BICUBIC)
        picture.save(place / f"{number:06d}.jpg", quality=85)


def on_nodes(folder: Path, count: int, model: str, kill: bool) -> tuple[IndexReport, str]:
    """Index on a cluster of so many nodes; what was killed meanwhile, in words."""
    import ray
    from ray.cluster_utils import Cluster as Nodes

    small = {"num_cpus": 1, "object_store_memory": _STORE_BYTES}
    nodes = Nodes(initialize_head=True, head_node_args={**small, "include_dashboard": False})
    others = [nodes.add_node(**small) for _ in range(count - 1)]
    killing = _Killing(nodes, others[-1:]) if kill else None
    try:
        with Cluster(nodes.address):
            gallery = evidex.Gallery.create(folder / f"nodes-{count}", evidex.load_model(model))
            options = IndexOptions(workforce=ClusterWorkforce(gallery.place), committed=killing)
            return gallery.add([folder / "scenes"], options=options), f"; {killing}" if killing else ""
    finally:
        ray.shutdown()
        nodes.shutdown()


class _Killing:
    """Kills a worker after the second commit and a node after the fourth."""

    def __init__(self, nodes: Any, others: list[Any]) -> None:
        self._nodes, self._others, self._commits = nodes, others, 0
        self._done: list[str] = []

    def __str__(self) -> str:
        return f"killed: {', '.join(self._done) or 'nothing'}"

    def __call__(self, _: Sequence[str]) -> None:
        self._commits += 1
        if self._commits == 2 and (workers := workers_of(self._nodes)):
            os.kill(workers[0], signal.SIGKILL)
            self._done.append("a worker")
        if self._commits == 4 and self._others:
            self._nodes.remove_node(self._others.pop(), allow_graceful=False)
            self._done.append("a node")


def workers_of(nodes: Any) -> list[int]:
    """The processes of these nodes that index."""
    raylets = {node.all_processes["raylet"][0].process.pid for node in nodes.list_all_nodes()}
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                if parent in raylets and (entry / "cmdline").read_bytes().startswith(b"ray::IndexWorker"):
                    found.append(int(entry.name))
    return found


def differing(one: Path, other: Path) -> int:
    """How many rows are in one gallery only, or not the same in both."""
    kept = [
        {row["id"]: row for row in evidex.Gallery.open(place).dataset.to_table().to_pylist()} for place in (one, other)
    ]
    return sum(kept[0].get(each) != kept[1].get(each) for each in kept[0].keys() | kept[1].keys())


if __name__ == "__main__":
    started = time.monotonic()
    main()
    print(f"{time.monotonic() - started:.0f} s in all")
