"""What a Ray cluster costs and brings in search, and what 10^8 and 10^9 rows would take, from what was measured here.

    python benchmarks/cluster.py --rows 1000000 --folder /somewhere/with/5/GB

1, 2 and 4 shards on the cores there are against a scan in this process, single queries and batches, in turns; then one
actor against this process in pairs (bar: 1.15 times the time in the median). The last table is a model: nodes like this
machine, each with an even share of the rows. It rests on the points that are printed above it and on nothing else.
Others may work on the machine: the table has the fastest of all rounds, and medians beside it.
"""

from __future__ import annotations

import argparse
import pickle
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from serve import make_gallery

from evidex.cluster.connection import Cluster
from evidex.retrieval.filters import NO_FILTERS
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.scan.partial import ScanResult, merge_results
from evidex.retrieval.scan.precision import Precision
from evidex.retrieval.searchable import OwnRows, Searchable
from evidex.retrieval.sharded.fleet import ShardOptions
from evidex.retrieval.sharded.rows import ShardedRows

_BAR = 1.15
_TOP, _BATCH = 10, 64
_SHARDS = (1, 2, 4)
_COLUMNS = ("id", "kind", "path", "footprint", "acquired")
_MODEL_ROWS, _MODEL_NODES = (10**8, 10**9), (8, 32, 128, 512)
_BYTES: dict[Precision, int] = {"float32": 4, "int8": 1}


@dataclass(frozen=True)
class Taken:
    """Seconds of one way to scan."""

    best: float
    median: float


@dataclass(frozen=True)
class Points:
    """What the model rests on."""

    rows: int
    dim: int
    one: dict[Precision, float]
    """Seconds of one query over all rows in one process with all cores."""
    batch: dict[Precision, float]
    """Of a batch."""
    call: float
    """Of a call to one actor that does nothing, right after a scan, which leaves nothing of Ray in the caches."""
    warm: float
    """Of one after another such call."""
    each: float
    """Of one more actor in the same call."""
    merge: float
    """Of one more result that is merged, for a batch."""
    sent: int
    """Bytes of a question to a shard, one query."""
    returned: int
    """Bytes of its answer."""
    columns: float
    """Bytes of a row beside its vector, once filters have asked for all columns."""


def main() -> int:
    options = _options()
    with ExitStack() as stack:
        folder = options.folder or stack.enter_context(tempfile.TemporaryDirectory())
        place = Path(folder) / f"gallery-{options.rows}-{options.dim}"
        if not place.exists():
            make_gallery(place, range(options.rows), options.dim)
        gallery = Gallery.open(place)
        gallery.vectors  # noqa: B018 (written and read once)
        stack.enter_context(Cluster("local"))
        ways: dict[str, Searchable] = {"this process": OwnRows(gallery)}
        for shards in _SHARDS:
            ways[f"{shards} shard{'s' * (shards > 1)}"] = ShardedRows(
                Gallery.open(place), "local", ShardOptions(shards)
            )
        ways["int8"] = OwnRows(Gallery.open(place), precision="int8")
        for rows in ways.values():
            stack.callback(rows.close)
        one, batch = (_race(ways, _queries(gallery, count), options.rounds) for count in (1, _BATCH))
        points = _points(ways, gallery, one, batch)
        ratios = _paired(ways["this process"], ways["1 shard"], _queries(gallery, 1), options.pairs)
    _print_measured(one, batch, options.rows, options.dim)
    low, ratio, high = (float(value) for value in np.percentile(ratios, [25, 50, 75]))
    print(
        f"one actor takes {ratio:.3f} times as long as this process (bar: {_BAR}): the median of {len(ratios)} pairs,"
    )
    print(f"half of them between {low:.3f} and {high:.3f}\n")
    _print_model(points)
    return 0 if ratio <= _BAR else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--pairs", type=int, default=60, help="of scans, in this process and by one actor")
    parser.add_argument("--folder", help="where the gallery is made and kept; without it, in a temporary folder")
    return parser.parse_args()


def _queries(gallery: Gallery, count: int) -> np.ndarray:
    rng = np.random.default_rng(count)
    near = gallery.vectors[rng.integers(0, len(gallery), count)] + 0.05 * rng.standard_normal((count, gallery.dim))
    return np.asarray(near / np.linalg.norm(near, axis=1, keepdims=True), np.float32)


def _race(ways: dict[str, Searchable], queries: np.ndarray, rounds: int) -> dict[str, Taken]:
    """The seconds of each, in turns; all must find the same rows."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    found: dict[str, ScanResult] = {}
    for number in range(rounds + 2):
        for name, rows in ways.items():
            start = time.perf_counter()
            found[name] = _scan(rows, queries)
            if number >= 2:  # after two to warm up
                seconds[name].append(time.perf_counter() - start)
    expected = found["this process"]
    for name, result in found.items():
        assert name == "int8" or (result.ids == expected.ids).all(), f"{name} finds other rows"
        assert name == "int8" or (result.scores == expected.scores).all(), f"{name} gives other scores"
    return {name: Taken(min(values), float(np.median(values))) for name, values in seconds.items()}


def _paired(one: Searchable, other: Searchable, queries: np.ndarray, pairs: int) -> list[float]:
    """How many times as long the other takes, asked right after or right before the one by turns."""
    ratios = []
    for number in range(pairs):
        seconds = {}
        for rows in (one, other) if number % 2 else (other, one):
            start = time.perf_counter()
            _scan(rows, queries)
            seconds[rows] = time.perf_counter() - start
        ratios.append(seconds[other] / seconds[one])
    return ratios


def _scan(rows: Searchable, queries: np.ndarray) -> ScanResult:
    return rows.steadily(lambda: rows.scan(queries, rows.select(NO_FILTERS, "images"), _TOP))


def _points(ways: dict[str, Searchable], gallery: Gallery, one: dict[str, Taken], batch: dict[str, Taken]) -> Points:
    few, many = ways["1 shard"], ways[f"{_SHARDS[-1]} shards"]
    assert isinstance(few, ShardedRows)
    assert isinstance(many, ShardedRows)
    queries = _queries(gallery, 1)
    call, calls = (_call_seconds(rows, partial(_scan, rows, queries)) for rows in (few, many))
    answer, answers = (_scan(ways["this process"], _queries(gallery, count)) for count in (1, _BATCH))
    question = (_queries(gallery, 1), NO_FILTERS, "images", _TOP)
    kept = sum(gallery.column(name).nbytes for name in _COLUMNS)
    return Points(
        len(gallery),
        gallery.dim,
        {"float32": one["this process"].best, "int8": one["int8"].best},
        {"float32": batch["this process"].best, "int8": batch["int8"].best},
        call,
        _call_seconds(few),
        max(calls - call, 0.0) / (_SHARDS[-1] - 1),
        _median(lambda: merge_results(answers, answers, _TOP), 200),
        len(pickle.dumps(question)),
        len(pickle.dumps(answer)),
        kept / len(gallery),
    )


def _call_seconds(rows: ShardedRows, before: Callable[[], object] = lambda: None) -> float:
    """Of a call that does nothing to every shard."""
    shards = range(rows.fleet.shards)
    return _median(lambda: rows.fleet.each("alive", dict.fromkeys(shards, ())), 100, before)


def _median(work: Callable[[], object], times: int, before: Callable[[], object] = lambda: None) -> float:
    taken = []
    for _ in range(times):
        before()
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return float(np.median(taken))


def _print_measured(one: dict[str, Taken], batch: dict[str, Taken], rows: int, dim: int) -> None:
    here = "this process"
    print(f"{rows:,} rows of {dim} numbers, float32; hits and scores equal to the last bit\n")
    print(f"| | one query, ms (median) | of {here} | batch of {_BATCH}, ms (median) | of {here} |")
    print("|---|---|---|---|---|")
    for name in one:
        if name != "int8":
            cells = [
                f"{1e3 * took[name].best:.0f} ({1e3 * took[name].median:.0f}) | {took[name].best / took[here].best:.2f}"
                for took in (one, batch)
            ]
            print(f"| {name} | {' | '.join(cells)} |")
    print()


def _print_model(points: Points) -> None:
    print("The model's points, all measured above on this machine, which is a node of the model:")
    for name in points.one:
        print(
            f"- {name}: {points.rows / points.one[name] / 1e6:.1f} million rows a second for one query, "
            f"{_BATCH * points.rows / points.batch[name] / 1e6:.0f} million for {_BATCH} at once"
        )
    print(
        f"- a call to one actor {1e3 * points.call:.2f} ms right after a scan ({1e3 * points.warm:.2f} after another "
        f"call), each further one {1e3 * points.each:.2f} ms"
    )
    print(f"- merging one more shard's answer to {_BATCH} queries {1e3 * points.merge:.2f} ms")
    print(
        f"- to a shard {points.sent:,} bytes a query, from it {points.returned:,}; {points.columns:.0f} bytes a row of"
    )
    print("  columns in a shard once filters have asked for all of them; the front keeps the ids, 32 bytes a row\n")
    print("| rows | vectors | nodes | GB a node | one query, s | queries/s in batches | to the front, kB a query |")
    print("|---|---|---|---|---|---|---|")
    for rows in _MODEL_ROWS:
        for precision in points.one:
            for nodes in _MODEL_NODES:
                print(_modelled(points, rows, precision, nodes))


def _modelled(points: Points, rows: int, precision: Precision, nodes: int) -> str:
    """A query waits for the scan of one share and for the calls and merges of all."""
    share = rows / nodes
    memory = share * (points.dim * _BYTES[precision] + points.columns) / 1e9
    around = points.call + nodes * (points.each + points.merge)
    one = points.one[precision] * share / points.rows + around
    batch = points.batch[precision] * share / points.rows + around
    traffic = nodes * points.returned / 1e3
    return (
        f"| 10^{len(str(rows)) - 1} | {precision} | {nodes} | {memory:.1f} | {one:.2f} | {_BATCH / batch:.0f} "
        f"| {traffic:.0f} |"
    )


if __name__ == "__main__":
    raise SystemExit(main())
