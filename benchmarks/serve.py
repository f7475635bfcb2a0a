"""A server under load: 32 clients at once on a gallery of 200,000 rows, with and without micro-batching.

    python benchmarks/serve.py --rows 200000 --clients 32 --seconds 20 --memory-requests 20000

The gallery is synthetic (clusters of unit vectors), the model untrained: neither changes the work. The two servers take
turns, so that whatever else the machine does falls on both. Ends with status 1 if a promise is broken: an error,
batching no gain, or memory that grows.
"""

from __future__ import annotations

import argparse
import asyncio
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
_MOST_GROWTH = 1.05


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


def main() -> int:
    options = _options()
    with tempfile.TemporaryDirectory() as folder:
        gallery = Path(folder) / "gallery"
        _make_gallery(gallery, options.rows, options.dim)
        loads = {"batched": Load(), "single": Load()}
        with _server(gallery) as batched, _server(gallery, "--batch", "1", "--batch-wait", "0") as single:
            ports = {"batched": batched, "single": single}
            for port in ports.values():
                asyncio.run(_ask(port, options.clients, seconds=1.0))
            for _ in range(options.rounds):
                for name, port in ports.items():
                    loads[name].add(asyncio.run(_ask(port, options.clients, seconds=options.seconds / options.rounds)))
            rounds = 5
            memory = []
            for _ in range(rounds):
                flow = asyncio.run(_ask(batched, options.clients, requests=options.memory_requests // rounds))
                loads["batched"].errors += flow.errors
                memory.append(_memory(batched) / 2**20)
    report = {
        "rows": options.rows, "dim": options.dim, "clients": options.clients,
        "batched": loads["batched"].report(), "single": loads["single"].report(),
        "ratio": loads["batched"].report()["requests_per_second"] / loads["single"].report()["requests_per_second"],
        "memory_requests": options.memory_requests, "memory_mib": [round(value, 1) for value in memory],
        "memory_growth": memory[-1] / memory[0],
    }  # fmt: skip
    print(json.dumps(report, indent=1))
    errors = loads["batched"].errors + loads["single"].errors
    return 0 if errors == 0 and report["ratio"] > 1 and report["memory_growth"] < _MOST_GROWTH else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=20.0, help="of load on each of the two servers")
    parser.add_argument("--rounds", type=int, default=4, help="turns the two servers take")
    parser.add_argument("--memory-requests", type=int, default=20_000)
    return parser.parse_args()


def _make_gallery(path: Path, rows: int, dim: int) -> None:
    import torch

    from evidex.config import EncoderConfig
    from evidex.encoders.model import Model
    from evidex.encoders.towers import new_compact
    from evidex.retrieval.gallery import Gallery
    from evidex.retrieval.rows import Row, item_id

    torch.manual_seed(0)
    gallery = Gallery.create(path, Model(new_compact(EncoderConfig(image_size=32, dim=dim), _WORDS), 0.1))
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((100, dim)).astype(np.float32)
    for first in range(0, rows, 20_000):
        count = min(20_000, rows - first)
        vectors = centres[rng.integers(0, 100, count)] + rng.standard_normal((count, dim)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        names = [f"/synthetic/{number:07d}.tif" for number in range(first, first + count)]
        gallery.append([Row(item_id(name), name, "image", "0" * 64) for name in names], vectors)


@contextmanager
def _server(gallery: Path, *options: str) -> Iterator[int]:
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
        while (
            b"200" not in asyncio.run(_once(port, b"GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n")).split(b"\r\n")[0]
        ):
            time.sleep(0.1)
        yield port
    finally:
        process.terminate()
        process.wait(30)


async def _ask(port: int, clients: int, *, seconds: float | None = None, requests: int | None = None) -> Load:
    """Clients that ask one query after the other, for so long or so many in all."""
    load = Load()
    start = time.perf_counter()
    left = requests if requests is not None else 10**12

    async def client(number: int) -> None:
        nonlocal left
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        asked = 0
        while left > 0 and (seconds is None or time.perf_counter() - start < seconds):
            left -= 1
            asked += 1
            text = f"{_WORDS[(number + asked) % 10]} near a {_WORDS[asked % 7]} {number} {asked}"
            body = json.dumps({"text": text, "top": 10}).encode()
            kind = "Host: localhost\r\nContent-Type: application/json"
            head = f"POST /search HTTP/1.1\r\n{kind}\r\nContent-Length: {len(body)}"
            before = time.perf_counter()
            writer.write(head.encode() + b"\r\n\r\n" + body)
            answer = await _response(reader)
            load.latencies.append(time.perf_counter() - before)
            load.errors += not answer.startswith(b"HTTP/1.1 200")
        writer.close()

    await asyncio.gather(*(client(number) for number in range(clients)))
    load.seconds = time.perf_counter() - start
    return load


async def _response(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    return head + await reader.readexactly(int(length[1]) if length else 0)


async def _once(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    answer = await _response(reader)
    writer.close()
    return answer


def _memory(port: int) -> float:
    text = asyncio.run(_once(port, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")).decode()
    found = re.search(r"^process_resident_memory_bytes (\S+)", text, re.MULTILINE)
    assert found is not None
    return float(found[1])


if __name__ == "__main__":
    sys.exit(main())
