"""The fused scan beside faiss flat, usearch exact and the time it takes to read the gallery once.

    python benchmarks/scan.py --rows 1000000 --dim 512

The gallery is rendered: clusters around a common mean, as encoders make them; queries are noisy copies of rows. All
timings come from one run, the contestants taking turns, so that whatever else the machine does falls on all of them;
the table shows medians and the targets compare medians. The peers return the best rows only, the scan also the
evidence.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evidex.retrieval.scan.quantize import Int8Vectors, quantize_int8, to_bfloat16
from evidex.retrieval.scan.scan import scan
from evidex.retrieval.soundness.mapped import MappedVectors, rows_a_block

Floats = NDArray[np.float32]
_TOP = 10
_BLOCK = 8192


@dataclass(frozen=True)
class Target:
    """One promise, what was measured, and whether it holds."""

    name: str
    measured: float
    limit: float
    at_least: bool

    @property
    def met(self) -> bool:
        return self.measured >= self.limit if self.at_least else self.measured <= self.limit


def main() -> int:
    options = _options()
    if options.peak_of is not None:
        print(_peak_over_array(options.peak_of, options.threads))
        return 0
    rng = np.random.default_rng(options.seed)
    gallery = _gallery(rng, options.rows, options.dim)
    queries = _queries(rng, gallery, 64)
    brain, coded = _bfloat16(gallery), quantize_int8(gallery)
    with tempfile.TemporaryDirectory() as folder:
        contestants = _contestants(gallery, brain, coded, queries, options)
        contestants["evidex float32, mapped and checked"] = _from_disk(Path(folder), gallery, queries[:1], options)
        timings = _race(contestants, options.repeats)
    targets = _targets(timings, gallery, coded, queries, options)
    report = {
        "rows": options.rows, "dim": options.dim, "threads": options.threads, "repeats": options.repeats,
        "seconds": {name: median(times) for name, times in timings.items()},
        "targets": [asdict(target) | {"met": target.met} for target in targets],
    }  # fmt: skip
    print(json.dumps(report, indent=1) if options.json else _table(timings, targets, options))
    return 0 if all(target.met for target in targets) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--temperature", type=float, default=0.1)
    parser.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--peak-of", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def _gallery(rng: np.random.Generator, rows: int, dim: int) -> Floats:
    centres = rng.standard_normal((1000, dim), dtype=np.float32) + rng.standard_normal(dim, dtype=np.float32)
    gallery = np.empty((rows, dim), np.float32)
    for start in range(0, rows, _BLOCK):
        part = gallery[start : start + _BLOCK]
        part[:] = centres[rng.integers(len(centres), size=len(part))]
        part += rng.standard_normal(part.shape, dtype=np.float32)
        part /= np.linalg.norm(part, axis=1, keepdims=True)
    return gallery


def _queries(rng: np.random.Generator, gallery: Floats, count: int) -> Floats:
    dim = gallery.shape[1]
    picked = gallery[rng.integers(len(gallery), size=count)]
    noisy = picked + rng.standard_normal(picked.shape, dtype=np.float32) / np.float32(dim**0.5)
    return np.asarray(noisy / np.linalg.norm(noisy, axis=1, keepdims=True), np.float32)


def _bfloat16(gallery: Floats) -> NDArray[np.uint16]:
    bits = np.empty(gallery.shape, np.uint16)
    for start in range(0, len(gallery), _BLOCK):
        bits[start : start + _BLOCK] = to_bfloat16(gallery[start : start + _BLOCK])
    return bits


def _contestants(
    gallery: Floats, brain: NDArray[np.uint16], coded: Int8Vectors, queries: Floats, options: argparse.Namespace
) -> dict[str, Callable[[], object]]:
    one = queries[:1]
    common: dict[str, Any] = {"temperature": options.temperature, "top": _TOP, "threads": options.threads}
    runs: dict[str, Callable[[], object]] = {
        "read once": lambda: _read_once(gallery, options.threads),
        "evidex float32, 1 query": lambda: scan(one, gallery, **common),
        "evidex bfloat16, 1 query": lambda: scan(one, brain, exact=gallery, **common),
        "evidex int8, 1 query": lambda: scan(one, coded, exact=gallery, **common),
        "evidex float32, 64 queries": lambda: scan(queries, gallery, **common),
        "evidex bfloat16, 64 queries": lambda: scan(queries, brain, exact=gallery, **common),
        "evidex int8, 64 queries": lambda: scan(queries, coded, exact=gallery, **common),
    }
    if importlib.util.find_spec("faiss"):
        import faiss

        faiss.omp_set_num_threads(options.threads)
        index = faiss.IndexFlatIP(gallery.shape[1])
        index.add(gallery)
        runs["faiss flat, 1 query"] = lambda: index.search(one, _TOP)
        runs["faiss flat, 64 queries"] = lambda: index.search(queries, _TOP)
    if importlib.util.find_spec("usearch"):
        from usearch.index import MetricKind, search

        def exact_search(asked: Floats) -> object:
            return search(gallery, asked, _TOP, MetricKind.IP, exact=True, threads=options.threads)

        runs["usearch exact, 1 query"] = lambda: exact_search(one)
        runs["usearch exact, 64 queries"] = lambda: exact_search(queries)
    return runs


def _from_disk(folder: Path, gallery: Floats, query: Floats, options: argparse.Namespace) -> Callable[[], object]:
    """As a gallery is searched: its blocks held against their checksums, its file looked at before and after."""
    (folder / "vectors").write_bytes(gallery.data)
    size = rows_a_block(gallery.shape[1])
    checks = [zlib.crc32(gallery[start : start + size].data.cast("B")) for start in range(0, len(gallery), size)]
    mapped = MappedVectors.of_file(folder / "vectors", len(gallery), gallery.shape[1], checks)
    time.sleep(0.1)  # so that later changes show in the file's times, and blocks stay checked

    def run() -> object:
        mapped.look()
        found = scan(
            query, mapped.values, temperature=options.temperature, top=_TOP, threads=options.threads,
            ensure=mapped.ensure,
        )  # fmt: skip
        mapped.recheck()
        return found

    return run


def _read_once(gallery: Floats, threads: int) -> float:
    values = gallery.reshape(-1)
    with ThreadPoolExecutor(threads) as pool:
        return float(sum(pool.map(np.sum, np.array_split(values, threads))))


def _race(runs: dict[str, Callable[[], object]], repeats: int) -> dict[str, list[float]]:
    for run in runs.values():
        run()
    timings: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            timings[name].append(time.perf_counter() - start)
    return timings


def _targets(
    timings: dict[str, list[float]], gallery: Floats, coded: Int8Vectors, queries: Floats, options: argparse.Namespace
) -> list[Target]:
    seconds = {name: median(times) for name, times in timings.items()}
    common: dict[str, Any] = {"temperature": options.temperature, "top": _TOP, "threads": options.threads}
    full = scan(queries, gallery, **common)
    small = scan(queries, coded, exact=gallery, **common)
    recall = np.mean([np.isin(a, b).mean() for a, b in zip(full.ids, small.ids, strict=True)])
    drift = np.abs(full.log_sum_exp - small.log_sum_exp).max()
    one = seconds["evidex float32, 1 query"]
    on_disk = seconds["evidex float32, mapped and checked"]
    many = seconds["evidex float32, 64 queries"]
    faster_one, faster_many = one / seconds["evidex int8, 1 query"], many / seconds["evidex int8, 64 queries"]
    targets = [
        Target("float32, 1 query: time / reading once", one / seconds["read once"], 1.1, False),
        Target("float32, mapped and checked: time / reading once", on_disk / seconds["read once"], 1.1, False),
        Target("int8, 1 query: times faster than float32", faster_one, 2, True),
        Target("int8, 64 queries: times faster than float32", faster_many, 2, True),
        Target("int8, 64 queries: recall of the top 10", float(recall), 0.999, True),
        Target("int8, 64 queries: largest error of log evidence", float(drift), 1e-3, False),
        Target("float32: peak memory / array", _peak_in_a_new_process(gallery, options.threads), 1.1, False),
    ]
    if "faiss flat, 64 queries" in seconds:
        ratio = seconds["faiss flat, 64 queries"] / many
        targets.insert(1, Target("float32, 64 queries: times faster than faiss flat", ratio, 2, True))
    return targets


def _peak_in_a_new_process(gallery: Floats, threads: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "gallery.npy"
        np.save(path, gallery)
        command = [sys.executable, __file__, "--peak-of", str(path), "--threads", str(threads)]
        return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def _peak_over_array(path: Path, threads: int) -> float:
    """Peak memory of scanning a memory-mapped file, mapped pages included, over its size; less what Python needs."""
    gallery = np.load(path, mmap_mode="r")
    queries = np.array(gallery[:64])
    for asked in (queries[:1], queries):
        scan(asked, np.array(gallery[:1000]), temperature=0.1, top=_TOP, threads=threads)
    before = _peak_memory()
    for asked in (queries[:1], queries):
        scan(asked, gallery, temperature=0.1, top=_TOP, threads=threads)
    return (_peak_memory() - before) / int(gallery.nbytes)


def _peak_memory() -> int:
    """Bytes. Not getrusage: a child process inherits its parent's peak there."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise SystemExit("/proc/self/status has no VmHWM; the memory figure needs Linux")


def _table(timings: dict[str, list[float]], targets: list[Target], options: argparse.Namespace) -> str:
    read = median(timings["read once"])
    lines = [
        f"{options.rows:,} × {options.dim}, top {_TOP}, {options.threads} threads, median of {options.repeats}",
        "",
    ]
    lines.append(f"{'':36}{'ms':>9}{'fastest':>9}{'× read':>9}")
    for name, times in timings.items():
        lines.append(f"{name:36}{median(times) * 1e3:9.0f}{min(times) * 1e3:9.0f}{median(times) / read:9.2f}")
    lines.append("")
    for target in targets:
        sign = "≥" if target.at_least else "≤"
        verdict = "met" if target.met else "MISSED"
        lines.append(f"{target.name:52}{target.measured:9.3g}  {sign} {target.limit:<7g}{verdict}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
