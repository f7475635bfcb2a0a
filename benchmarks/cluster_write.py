"""Rows of a gallery written by a Ray cluster: by Lance's fragments, as an index run does, and by lance-ray.

    python benchmarks/cluster_write.py --rows 20000 [--store] [--kill]

Both make the same rows in the same batches on the cores there are, and all of them must be in the table once. Fragments
are written with the checksums that the seal needs; lance-ray knows of none, so what it takes to read its files for them
is printed beside it. `--kill` ends a worker with SIGKILL in the middle of each run. With `--store` the gallery lies in
an object store (moto's, in this process). Without lance-ray (`pip install lance-ray==0.5.0`, best in an environment of
its own: it brings pandas) one line says so.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from evidex.cluster.connection import Cluster
from evidex.encoders.model import load_model
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.rows import Row, WrittenRows, item_id, row_schema, to_table, vectors_in
from evidex.retrieval.soundness.seal import digest_of
from evidex.retrieval.table import ROWS
from evidex.retrieval.written_rows import write_rows
from evidex.storage.objects import lance_place, place_of
from tests.storage.store import fresh_place, serving


@dataclass(frozen=True)
class Job:
    """What is written: batches of rows, each the same whoever makes it."""

    batches: int
    size: int
    dim: int
    killed: str | None = None
    """A file that is not there yet: whoever makes the batch in the middle leaves it there, and is killed."""

    def rows(self, number: int) -> tuple[list[Row], np.ndarray]:
        if self.killed is not None and number == self.batches // 2:
            with suppress(FileExistsError):
                os.close(os.open(self.killed, os.O_CREAT | os.O_EXCL))
                os.kill(os.getpid(), signal.SIGKILL)
        vectors = np.random.default_rng(number).standard_normal((self.size, self.dim)).astype(np.float32)
        names = [f"/synthetic/{number:05d}-{row:04d}.tif" for row in range(self.size)]
        return [Row(item_id(name), name, "image", f"{number:064x}") for name in names], vectors


@dataclass(frozen=True)
class Outcome:
    rows_a_second: float
    commits: int
    pieces: int
    reading: float
    """Seconds in which this process reads what was written, for the seal; 0 where that was done."""


Way = Callable[[Gallery, Job], None]


def main() -> int:
    options = _options()
    if find_spec("lance_ray") is None:
        print("lance-ray is not installed; fragments alone are measured")
    ways: dict[str, Way] = {
        "fragments, a commit for each batch": partial(by_fragments, at_once=1),
        "fragments, one commit": partial(by_fragments, at_once=options.rows),
    }
    if find_spec("lance_ray") is not None:
        ways["lance-ray, a commit for each batch"] = partial(by_lance_ray, stream=True)
        ways["lance-ray, one commit"] = partial(by_lance_ray, stream=False)
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="evidex-bench-"))
        if options.store:
            stack.enter_context(serving())
        stack.enter_context(Cluster("local"))
        model = load_model()
        job = Job(options.rows // options.batch, options.batch, model.dim)
        outcomes: dict[str, list[Outcome]] = {name: [] for name in ways}
        for turn in range(options.rounds + 1):
            for name, way in ways.items():
                fresh = Path(tempfile.mkdtemp(dir=folder))
                mark = fresh / "killed"
                gallery = Gallery.create(fresh_place() if options.store else fresh / "gallery", model)
                # The first of each starts processes and imports; its batches are few.
                work = replace(job, killed=str(mark) if options.kill else None) if turn else replace(job, batches=4)
                outcome = measure(way, gallery, work)
                assert not (turn and options.kill) or mark.exists(), "nobody was killed"
                if turn:
                    outcomes[name].append(outcome)
    _report(outcomes, job, options)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--batch", type=int, default=256, help="rows that a worker writes at once, as an index run has")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--store", action="store_true", help="put the galleries into an object store")
    parser.add_argument("--kill", action="store_true", help="kill a worker in the middle")
    return parser.parse_args()


def measure(way: Way, gallery: Gallery, job: Job) -> Outcome:
    before = int(gallery.dataset.version)
    start = time.perf_counter()
    way(gallery, job)
    seconds = time.perf_counter() - start
    dataset = _newest(gallery)
    _check(dataset, job)
    sealed = int(gallery.dataset.version) == int(dataset.version)
    start = time.perf_counter()
    if not sealed:
        for fragment in dataset.get_fragments():
            for file in fragment.data_files():
                assert digest_of(gallery.place / f"{ROWS}/data/{file.path}") is not None
    reading = 0.0 if sealed else time.perf_counter() - start
    rows = job.batches * job.size
    return Outcome(rows / seconds, int(dataset.version) - before, len(dataset.get_fragments()), reading)


def _newest(gallery: Gallery) -> Any:
    import lance

    return lance.dataset(**lance_place(gallery.place / ROWS))


def _check(dataset: Any, job: Job) -> None:
    """Every row is there once, with its vector."""
    found = dataset.to_table(columns=["path", "vector"])
    vectors = dict(zip(found.column("path").to_pylist(), vectors_in(found), strict=True))
    assert found.num_rows == len(vectors) == job.batches * job.size, "rows are lost or doubled"
    for number in range(job.batches):
        rows, expected = replace(job, killed=None).rows(number)
        assert (np.stack([vectors[row.path] for row in rows]) == expected).all(), "rows have other vectors"


def by_fragments(gallery: Gallery, job: Job, at_once: int) -> None:
    """Tasks write pieces; this process commits and seals them, so many batches at once."""
    import ray

    write = ray.remote(num_cpus=1)(written)
    waiting = [write.remote(str(gallery.place), job, number) for number in range(job.batches)]
    held: list[WrittenRows] = []
    while waiting:
        done, waiting = ray.wait(waiting, num_returns=1)
        held += ray.get(done)
        if len(held) >= at_once or not waiting:
            gallery.append_written(held)
            held = []


def written(place: str, job: Job, number: int) -> WrittenRows:
    return write_rows(place_of(place), *job.rows(number))


def by_lance_ray(gallery: Gallery, job: Job, stream: bool) -> None:
    """A dataset of Ray's whose blocks are the batches; ``stream`` is lance-ray's way to commit each."""
    import ray
    from lance_ray import write_lance

    logging.getLogger("ray.data").setLevel(logging.ERROR)
    ray.data.DataContext.get_current().enable_progress_bars = False
    made = ray.data.range(job.batches, override_num_blocks=job.batches).map_batches(
        partial(block, job), batch_size=1, batch_format="numpy", zero_copy_batch=True
    )
    write_lance(
        made,
        schema=row_schema(job.dim),
        mode="append",
        stream=stream,
        batch_size=job.size,
        **lance_place(gallery.place / ROWS),
    )


def block(job: Job, batch: dict[str, np.ndarray]) -> Any:
    (number,) = batch["id"].tolist()
    return to_table(*job.rows(number))


def _report(outcomes: dict[str, list[Outcome]], job: Job, options: argparse.Namespace) -> None:
    where = "an object store" if options.store else "a folder"
    killed = ", a worker killed in each run" if options.kill else ""
    print(f"{job.batches * job.size:,} rows of {job.dim} numbers in batches of {job.size}, to {where}{killed};")
    print(f"medians of {options.rounds} rounds; every row was there once\n")
    print("| | rows/s | of the first | commits | pieces | reading for the seal, s |")
    print("|---|---|---|---|---|---|")
    rates = {name: float(np.median([one.rows_a_second for one in found])) for name, found in outcomes.items()}
    first = next(iter(rates.values()))
    for name, found in outcomes.items():
        reading = float(np.median([one.reading for one in found]))
        told = f"{reading:.1f}" if reading else "done"
        rate = rates[name]
        print(f"| {name} | {rate:,.0f} | {rate / first:.2f} | {found[-1].commits} | {found[-1].pieces} | {told} |")


if __name__ == "__main__":
    raise SystemExit(main())
