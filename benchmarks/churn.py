"""Work in an archive while it is indexed, kill the indexer, and compare what a quiet run leaves with a fresh index.

    python benchmarks/churn.py [--operations 1000] [--rounds 50] [--files 40] [--seed 0]

Files are copied over others, swapped, renamed, renumbered, touched, rewritten and deleted, much of it while an index
runs. In every second round that index is killed (kill -9) at a random moment. Ends with status 1 if after the quiet run
any row differs from a fresh index in any column.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

INDEXER = """
import os, sys
sys.path.insert(0, sys.argv[1])
from evidex.retrieval.gallery import Gallery
from tests.retrieval.indexing.churning import options
gallery = Gallery.open(sys.argv[3])
gallery.model
notes = os.open(sys.argv[4], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
os.write(1, b"ready\\n")
sys.stdin.readline()
gallery.add(sys.argv[2], options=options(committed=lambda ids: os.write(notes, b".")))
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operations", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--files", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    from evidex.retrieval.gallery import Gallery
    from tests.retrieval.archive import tiny_model
    from tests.retrieval.indexing.churning import Archive, differences, fresh_rows, options, rows_of

    rng = np.random.default_rng(arguments.seed)
    done: Counter[str] = Counter()
    killed: Counter[str] = Counter()
    compared = wrong = 0
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        archive = Archive(root / "archive", rng, arguments.files)
        Gallery.create(root / "gallery", tiny_model()).add(archive.folder, options=options())
        indexer = _started(root)
        for number in range(arguments.rounds):
            share = arguments.operations * (number + 1) // arguments.rounds - done.total()
            # A run that is to be killed must not come to its end while we work.
            meanwhile = int(rng.integers(share // 4 + 1)) if number % 2 else share // 2
            done.update(archive.churn() for _ in range(share - meanwhile))
            _begin(indexer)
            for _ in range(meanwhile):
                done[archive.churn()] += 1
                time.sleep(float(rng.exponential(0.02)))
            how = _killed(indexer, root / "notes", rng) if number % 2 else _finished(indexer)
            killed[how] += 1
            if number + 1 < arguments.rounds:
                indexer = _started(root)  # it loads while we compare
            gallery = Gallery.open(root / "gallery", tiny_model())
            gallery.add(archive.folder, options=options())
            expected = fresh_rows(archive, tiny_model(), root / "fresh")
            found = differences(rows_of(gallery), expected)
            compared, wrong = compared + len(expected), wrong + len(found)
            print(f"round {number + 1:2d}: {how}; {len(expected)} rows, {len(found)} differ", flush=True)
            for line in found[:5]:
                print(f"  {line}")
    print(", ".join(f"{count} {name}" for name, count in sorted(done.items())))
    print(", ".join(f"{count} {how}" for how, count in sorted(killed.items())))
    print(
        f"{done.total()} operations in {arguments.rounds} rounds, {time.monotonic() - started:.0f} s: "
        f"{compared} rows compared with a fresh index, {wrong} differ"
    )
    return 1 if wrong else 0


def _started(root: Path) -> subprocess.Popen[bytes]:
    """An indexer that has loaded what it needs and waits for the word."""
    places = [str(Path(__file__).resolve().parents[1]), *(str(root / name) for name in ("archive", "gallery", "notes"))]
    return subprocess.Popen(
        [sys.executable, "-c", INDEXER, *places],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def _begin(indexer: subprocess.Popen[bytes]) -> None:
    assert indexer.stdin is not None
    assert indexer.stdout is not None
    if indexer.stdout.readline() != b"ready\n":
        sys.exit("the indexer did not start")
    indexer.stdin.write(b"go\n")
    indexer.stdin.flush()


def _finished(indexer: subprocess.Popen[bytes]) -> str:
    if indexer.wait(timeout=120):
        sys.exit(f"the indexer ended with status {indexer.returncode}")
    return "run to its end"


def _killed(indexer: subprocess.Popen[bytes], notes: Path, rng: np.random.Generator) -> str:
    """Kill some commits after the first, at any moment between two."""
    commits = int(rng.integers(0, 4))
    deadline = time.monotonic() + float(rng.uniform(0.1, 3.0))
    while indexer.poll() is None and time.monotonic() < deadline and notes.stat().st_size < commits:
        time.sleep(0.002)
    time.sleep(float(rng.uniform(0, 0.05)))
    alive = indexer.poll() is None
    indexer.kill()
    indexer.wait()
    if not alive:
        return "at its end before the kill"
    return "killed between commits" if notes.stat().st_size else "killed before its first commit"


if __name__ == "__main__":
    sys.exit(main())
