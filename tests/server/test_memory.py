"""What a server holds does not grow with the questions it is asked."""

from __future__ import annotations

import gc
import os
import platform
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import httpx
import pytest

from evidex.server.schemas import BatchRequest, SearchRequest
from evidex.server.settings import Settings
from tests.server.places import asking

GLIBC = platform.libc_ver()[0] == "glibc"

# Threads that allocate at the same time, how many heaps the C library made for them, and whether a large block comes
# from the system.
HEAPS = """
import ctypes, sys, threading
from evidex.server.memory import steady_heap
taken = steady_heap() if sys.argv[1] == "one" else None
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
ready = threading.Barrier(8)
def work():
    ready.wait()
    for size in range(2000, 40000, 50):
        libc.malloc(ctypes.c_size_t(size))
    ready.wait()
threads = [threading.Thread(target=work) for _ in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
libc.fopen.restype = ctypes.c_void_p
stream = libc.fopen(sys.argv[2].encode(), b"w")
libc.malloc_info(0, ctypes.c_void_p(stream))
libc.fclose(ctypes.c_void_p(stream))
# A large block that comes and goes teaches the C library to take the next ones from the heap.
libc.free.argtypes = [ctypes.c_void_p]
libc.free(libc.malloc(ctypes.c_size_t(8 << 20)))
class Info(ctypes.Structure):
    _fields_ = [(f"field{n}", ctypes.c_size_t) for n in range(10)]
libc.mallinfo2.restype = Info
before = libc.mallinfo2().field3
libc.malloc(ctypes.c_size_t(1 << 20))
print(taken, libc.mallinfo2().field3 - before)
"""


# How many threads the table's reader has after a burst of reads, and what was asked of it.
READERS = """
import os, sys
from evidex.server.memory import few_readers
if sys.argv[1] == "few":
    few_readers()
import lance, numpy, pyarrow
table = pyarrow.table({f"c{n}": [str(i) * 5 for i in range(10000)] for n in range(12)})
for part in range(8):
    dataset = lance.write_dataset(table, sys.argv[2], mode="append" if part else "create")
rng = numpy.random.default_rng(0)
for _ in range(30):
    dataset.take(rng.choice(80000, 640).tolist())
names = [open(f"/proc/self/task/{task}/comm").read() for task in os.listdir("/proc/self/task")]
print(sum(name.startswith("lance") for name in names), os.environ.get("LANCE_IO_THREADS"))
"""


def _heaps(how: str, report: Path, **environment: str) -> tuple[str, int]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_TUNABLES"))}
    done = subprocess.run(
        [sys.executable, "-c", HEAPS, how, str(report)],
        capture_output=True, text=True, check=True, timeout=60, env=kept | environment,
    )  # fmt: skip
    return done.stdout.strip(), len(ET.parse(report).getroot().findall("heap"))


@pytest.mark.skipif(not GLIBC, reason="only glibc gives threads heaps of their own")
def test_threads_share_one_heap_and_large_blocks_go_back(tmp_path: Path) -> None:
    told, heaps = _heaps("many", tmp_path / "a")
    assert (told, heaps > 1) == ("None 0", True)
    assert _heaps("one", tmp_path / "b") == ("True 1", 1)
    told, heaps = _heaps("one", tmp_path / "c", MALLOC_ARENA_MAX="3")
    assert told == "False 0"
    assert 1 < heaps <= 3


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted in /proc")
def test_the_tables_reader_has_few_threads(tmp_path: Path) -> None:
    def readers(how: str, **environment: str) -> tuple[int, str]:
        kept = {name: value for name, value in os.environ.items() if name != "LANCE_IO_THREADS"}
        folder = tmp_path / f"{how}{len(environment)}"
        done = subprocess.run(
            [sys.executable, "-c", READERS, how, str(folder)],
            capture_output=True, text=True, check=True, timeout=60, env=kept | environment,
        )  # fmt: skip
        threads, asked = done.stdout.split()
        return int(threads), asked

    few, asked = readers("few")
    many, _ = readers("many")
    assert asked == "2"
    assert few < many
    assert readers("few", LANCE_IO_THREADS="3")[1] == "3"


@pytest.mark.parametrize(("model", "body"), [(SearchRequest, b'{"text": "%s"}'), (BatchRequest, b'{"texts": ["%s"]}')])
def test_texts_are_not_kept_by_the_parser(model: type[SearchRequest], body: bytes) -> None:
    def ask(first: int) -> int:
        for number in range(first, first + 3000):
            model.model_validate_json(body % f"a text like no other {number}".encode())
        gc.collect()
        return sys.getallocatedblocks()

    before = ask(0)
    assert ask(3000) - before < 300


def test_metrics_tell_what_python_holds(settings: Settings) -> None:
    async def ask(client: httpx.AsyncClient) -> str:
        return (await client.get("/metrics")).text

    line = next(line for line in asking(settings, ask).splitlines() if line.startswith("evidex_python_blocks "))
    assert float(line.split()[1]) == pytest.approx(sys.getallocatedblocks(), rel=0.5)
