"""A server under load: 32 clients on a gallery of 200,000 rows, with and without micro-batching; and its memory.

    python benchmarks/serve.py --rows 200000 --clients 32 --seconds 20 --memory-requests 20000

The gallery is synthetic (clusters of unit vectors), the model untrained: neither changes the work. The two servers take
turns, so that whatever else the machine does falls on both.

Memory is measured after a long warm-up, in which fills what a server keeps: the pieces of words, rows that were looked
at, what encoding holds for batches of new sizes, the threads that read rows. Texts that are asked again and again and
texts that were never asked before take turns throughout. A line is fitted through the samples; twice its standard error
is added to its rise. Memory is flat if

- anonymous memory (what the process has allocated; the mapped gallery comes and goes with the kernel's file cache)
  rises by less than 0.25 % of itself: some 0.7 MiB, or 36 bytes a request, where an answer takes more than 10 kB, and
- the number of objects that Python holds rises by less than half an object a request: one that is forgotten in every
  request would show, however small.

Ends with status 1 if a promise is broken: an error, batching no gain, or memory that grows.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

_WORDS = ("river", "harbour", "forest", "houses", "planes", "desert", "bridge", "stadium", "field", "road")
_MOST_RISE = 0.0025
_MOST_OBJECTS = 0.5
_SAMPLES = 40
_REPEATED = 50


@dataclass
class Load:
    """What clients saw."""

    latencies: list[float] = field(default_factory=list)
    errors: int = 0
    seconds: float = 0.0

    def add(self, other: Load) -> None:
        self.latencies += other.latencies
        self.errors += other.errors
        self.seconds += other.seconds

    def report(self) -> dict[str, float]:
        milliseconds = 1e3 * np.array(self.latencies)
        return {
            "requests": len(self.latencies),
            "requests_per_second": len(self.latencies) / self.seconds,
            "p50_ms": float(np.percentile(milliseconds, 50)),
            "p99_ms": float(np.percentile(milliseconds, 99)),
            "errors": self.errors,
        }


@dataclass(frozen=True)
class Sample:
    """What the server held after so many requests."""

    requests: int
    resident: float
    anonymous: float
    objects: float


@dataclass(frozen=True)
class Server:
    port: int
    process: int


def main() -> int:
    options = _options()
    with tempfile.TemporaryDirectory() as folder:
        gallery = Path(folder) / "gallery"
        make_gallery(gallery, range(options.rows), options.dim)
        loads = {"batched": Load(), "single": Load()}
        texts = distinct_texts()
        with serving(gallery) as batched, serving(gallery, "--batch", "1", "--batch-wait", "0") as single:
            servers = {"batched": batched, "single": single}
            for server in servers.values():
                asyncio.run(ask(server.port, options.clients, texts, seconds=1.0))
            for _ in range(options.rounds):
                for name, server in servers.items():
                    seconds = options.seconds / options.rounds
                    loads[name].add(asyncio.run(ask(server.port, options.clients, texts, seconds=seconds)))
        with serving(gallery) as fresh:
            both = (repeated_texts(), texts)
            warm_load, warming = _watched(fresh, options.clients, both, options.warm_up)
            warm, samples = _watched(fresh, options.clients, both, options.memory_requests)
    ratio = loads["batched"].report()["requests_per_second"] / loads["single"].report()["requests_per_second"]
    report = {
        "rows": options.rows, "dim": options.dim, "clients": options.clients,
        "batched": loads["batched"].report(), "single": loads["single"].report(), "ratio": ratio,
        "memory": {
            "warm_up": {"requests": options.warm_up, "anonymous_mib": [round(s.anonymous, 1) for s in warming[::4]]},
            "after": trend(samples),
        },
    }  # fmt: skip
    print(json.dumps(report, indent=1))
    errors = sum(load.errors for load in (*loads.values(), warm_load, warm))
    flat = is_flat(samples)
    print(f"errors {errors}; batching {ratio:.1f} times the throughput; memory {'flat' if flat else 'GROWS'}")
    return 0 if errors == 0 and ratio > 1 and flat else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=20.0, help="of load on each of the two servers")
    parser.add_argument("--rounds", type=int, default=4, help="turns the two servers take")
    parser.add_argument("--warm-up", type=int, default=40_000, help="requests before memory is measured")
    parser.add_argument("--memory-requests", type=int, default=20_000, help="while it is measured")
    return parser.parse_args()


def distinct_texts() -> Iterator[str]:
    """Texts of which no two are alike, for a hundred million requests."""
    for number in itertools.count():
        words = f"{_WORDS[number % 10]} near a {_WORDS[number // 10 % 10]}"
        yield f"{words} {number // 100 % 1000} {number // 100_000 % 1000}"


def repeated_texts() -> Iterator[str]:
    """A few texts, over and over."""
    return itertools.cycle([f"{_WORDS[number % 10]} beside a {_WORDS[number // 10]}" for number in range(_REPEATED)])


def line_through(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Slope of the least-squares line, and its standard error."""
    slope, intercept = np.polyfit(x, y, 1)
    residuals = y - slope * x - intercept
    error = np.sqrt((residuals**2).sum() / max(len(x) - 2, 1) / ((x - x.mean()) ** 2).sum())
    return float(slope), float(error)


def trend(samples: list[Sample]) -> dict[str, float | list[float]]:
    """First, last and range of what was held, and the rise of the fitted line over all requests (MiB)."""
    requests = np.array([sample.requests for sample in samples], dtype=float)
    span = requests[-1] - requests[0]
    resident = np.array([sample.resident for sample in samples])
    anonymous = np.array([sample.anonymous for sample in samples])
    slope, error = line_through(requests, anonymous)
    objects, objects_error = line_through(requests, np.array([sample.objects for sample in samples]))
    return {
        "requests": span,
        "samples": len(samples),
        "resident_mib": [round(value, 1) for value in resident[:: max(len(samples) // 10, 1)]],
        "resident_range_mib": round(float(np.ptp(resident)), 2),
        "anonymous_first_mib": round(float(anonymous[0]), 2),
        "anonymous_last_mib": round(float(anonymous[-1]), 2),
        "anonymous_range_mib": round(float(np.ptp(anonymous)), 2),
        "rise_mib": round(slope * span, 3),
        "rise_standard_error_mib": round(error * span, 3),
        "rise_allowed_mib": round(_MOST_RISE * float(anonymous.mean()), 2),
        "objects_a_request": round(objects, 4),
        "objects_a_request_standard_error": round(objects_error, 4),
    }


def is_flat(samples: list[Sample]) -> bool:
    requests = np.array([sample.requests for sample in samples], dtype=float)
    slope, error = line_through(requests, np.array([sample.anonymous for sample in samples]))
    objects, objects_error = line_through(requests, np.array([sample.objects for sample in samples]))
    rise = (slope + 2 * error) * (requests[-1] - requests[0])
    allowed = _MOST_RISE * float(np.mean([sample.anonymous for sample in samples]))
    return bool(rise < allowed and objects + 2 * objects_error < _MOST_OBJECTS)


def make_gallery(path: Path, rows: range, dim: int) -> None:
    """Those of the rows; a row is the same in whatever gallery."""
    import torch

    from evidex.config import EncoderConfig
    from evidex.encoders.model import Model
    from evidex.encoders.towers import new_compact
    from evidex.retrieval.gallery import Gallery
    from evidex.retrieval.rows import Row, item_id

    torch.manual_seed(0)
    gallery = Gallery.create(path, Model(new_compact(EncoderConfig(image_size=32, dim=dim), _WORDS), 0.1))
    centres = np.random.default_rng(0).standard_normal((100, dim)).astype(np.float32)
    for first in range(rows.start, rows.stop, 20_000):
        count = min(20_000, rows.stop - first)
        rng = np.random.default_rng([1, first])
        vectors = centres[rng.integers(0, 100, count)] + rng.standard_normal((count, dim)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        names = [f"/synthetic/{number:07d}.tif" for number in range(first, first + count)]
        gallery.append([Row(item_id(name), name, "image", "0" * 64) for name in names], vectors)


@contextmanager
def serving(gallery: Path, *options: str) -> Iterator[Server]:
    code = "import typer; from evidex.cli import serve; typer.run(serve.command)"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "--gallery", str(gallery), "--port", "0", "--queue", "1000", *options],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    try:
        assert process.stdout is not None
        found = re.search(r":(\d+)/", process.stdout.readline())
        if found is None:
            raise SystemExit("the server did not start")
        port = int(found[1])
        while b"200" not in asyncio.run(once(port, "/ready")).split(b"\r\n")[0]:
            time.sleep(0.1)
        yield Server(port, process.pid)
    finally:
        process.terminate()
        process.wait(30)


async def ask(
    port: int, clients: int, texts: Iterator[str], *, seconds: float | None = None, requests: int | None = None
) -> Load:
    """Clients that ask one query after the other, for so long or so many in all."""
    load = Load()
    start = time.perf_counter()
    left = requests if requests is not None else 10**12

    async def client() -> None:
        nonlocal left
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while left > 0 and (seconds is None or time.perf_counter() - start < seconds):
            left -= 1
            body = json.dumps({"text": next(texts), "top": 10}).encode()
            kind = "Host: localhost\r\nContent-Type: application/json"
            head = f"POST /search HTTP/1.1\r\n{kind}\r\nContent-Length: {len(body)}"
            before = time.perf_counter()
            writer.write(head.encode() + b"\r\n\r\n" + body)
            answer = await _response(reader)
            load.latencies.append(time.perf_counter() - before)
            load.errors += not answer.startswith(b"HTTP/1.1 200")
        writer.close()

    await asyncio.gather(*(client() for _ in range(clients)))
    load.seconds = time.perf_counter() - start
    return load


def _watched(
    server: Server, clients: int, kinds: tuple[Iterator[str], ...], requests: int
) -> tuple[Load, list[Sample]]:
    """So many requests, the kinds of texts in turn, and what the server held on the way."""
    load, samples = Load(), [_sample(server, 0)]
    for number in range(1, _SAMPLES + 1):
        part = requests * number // _SAMPLES - requests * (number - 1) // _SAMPLES
        load.add(asyncio.run(ask(server.port, clients, kinds[number % len(kinds)], requests=part)))
        samples.append(_sample(server, len(load.latencies)))
    print(f"{requests} requests, {samples[0].resident:.1f} -> {samples[-1].resident:.1f} MiB", file=sys.stderr)
    return load, samples


async def _response(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    return head + await reader.readexactly(int(length[1]) if length else 0)


async def once(port: int, path: str) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    answer = await _response(reader)
    writer.close()
    return answer


def _sample(server: Server, requests: int) -> Sample:
    metrics = asyncio.run(once(server.port, "/metrics")).decode()
    objects = re.search(r"^evidex_python_blocks (\S+)", metrics, re.MULTILINE)
    status = Path(f"/proc/{server.process}/status").read_text()
    kibibytes = {name: int(value) for name, value in re.findall(r"^(\w+):\s+(\d+) kB", status, re.MULTILINE)}
    assert objects is not None
    return Sample(requests, kibibytes["VmRSS"] / 1024, kibibytes["RssAnon"] / 1024, float(objects[1]))


if __name__ == "__main__":
    sys.exit(main())
