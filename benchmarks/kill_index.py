"""Kill an index at random moments and see what is left: every acknowledged row once, and a last run that completes it.

    python benchmarks/kill_index.py [--files 2000] [--kills 50] [--seed 0]

Exits with an error if a row is lost, doubled or torn.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

INDEXER = """
import os, sys
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.indexing import IndexOptions
notes = os.open(sys.argv[3], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
note = lambda ids: os.write(notes, ("".join(i + "\\n" for i in ids)).encode())
gallery = Gallery.open(sys.argv[2])
gallery.add(sys.argv[1], options=IndexOptions(batch_size=16, rows_a_commit=16, committed=note))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        _write_files(root / "files", options.files, rng)
        _new_gallery(root / "gallery")
        killed, during = 0, 0
        for number in range(options.kills):
            # Ever more is there already; the later kills must not all come when nothing is left to do.
            if _rows(root) == options.files:
                _new_gallery(root / "gallery")
                (root / "notes").unlink()
            process = _start(root)
            died, was_committing = _kill(process, root / "notes", rng)
            killed += died
            during += was_committing
            rows = _check(root)
            print(f"kill {number + 1:3d}: {rows:5d} rows, all acknowledged ones there once", flush=True)
        assert _start(root).wait() == 0
        rows = _check(root)
        print(f"{killed} of {options.kills} runs killed, {during} after their first commit; at the end {rows} rows")
        if rows != options.files:
            sys.exit(f"expected {options.files} rows")


def _write_files(folder: Path, count: int, rng: np.random.Generator) -> None:
    folder.mkdir()
    for number in range(count):
        coarse = rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)
        Image.fromarray(coarse).resize((96, 96), Image.Resampling.BICUBIC).save(
            folder / f"{number:05d}.jpg", quality=80
        )


def _new_gallery(path: Path) -> None:
    import shutil

    import torch

    from evidex.config import EncoderConfig
    from evidex.encoders.model import Model
    from evidex.encoders.towers import new_compact
    from evidex.retrieval.gallery import Gallery

    shutil.rmtree(path, ignore_errors=True)
    torch.manual_seed(0)
    Gallery.create(path, Model(new_compact(EncoderConfig(image_size=32, dim=64), ["a river"]), 0.1))


def _start(root: Path) -> subprocess.Popen[bytes]:
    arguments = [str(root / part) for part in ("files", "gallery", "notes")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, "-c", INDEXER, *arguments], env=environment)


def _kill(process: subprocess.Popen[bytes], notes: Path, rng: np.random.Generator) -> tuple[bool, bool]:
    """Kill within the start-up for one run in five, otherwise some commits after the first."""
    before = notes.stat().st_size if notes.exists() else 0
    early = rng.random() < 0.2
    commits = int(rng.integers(1, 6))
    deadline = time.monotonic() + (float(rng.uniform(0, 3)) if early else 120.0)
    while process.poll() is None and time.monotonic() < deadline:
        if not early and notes.exists() and notes.stat().st_size - before >= commits * 16 * 25:
            time.sleep(float(rng.uniform(0, 0.1)))
            break
        time.sleep(0.002)
    alive = process.poll() is None
    process.kill()
    process.wait()
    return alive, notes.exists() and notes.stat().st_size > before


def _rows(root: Path) -> int:
    from evidex.retrieval.gallery import Gallery

    return len(Gallery.open(root / "gallery"))


def _check(root: Path) -> int:
    from evidex.retrieval.gallery import Gallery

    gallery = Gallery.open(root / "gallery")
    ids = [row.id for row in gallery.rows(range(len(gallery)))]
    notes = root / "notes"
    acknowledged = set(notes.read_text().split()) if notes.exists() else set()
    if len(set(ids)) != len(ids):
        sys.exit(f"{len(ids) - len(set(ids))} rows are there twice")
    if not acknowledged <= set(ids):
        sys.exit(f"{len(acknowledged - set(ids))} acknowledged rows are lost")
    if not np.allclose(np.linalg.norm(gallery.vectors, axis=1), 1.0, atol=1e-4):
        sys.exit("a vector is torn")
    return len(ids)


if __name__ == "__main__":
    main()
