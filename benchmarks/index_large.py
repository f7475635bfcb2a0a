"""Index one very large sparse GeoTIFF and print the most memory that all processes together held.

python benchmarks/index_large.py [--side 20000] [--limit-gib 2]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", type=int, default=20_000)
    parser.add_argument("--limit-gib", type=float, default=2.0)
    options = parser.parse_args()

    import torch

    from evidex.config import EncoderConfig
    from evidex.encoders.model import Model
    from evidex.encoders.towers import new_compact
    from evidex.retrieval.gallery import Gallery

    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "scene.tif"
        _write(path, options.side)
        print(f"{options.side}×{options.side}, 3 bands of 16 bits, {path.stat().st_size / 2**20:.0f} MiB on disk")
        torch.manual_seed(0)
        gallery = Gallery.create(Path(name) / "gallery", Model(new_compact(EncoderConfig(), ["a river"]), 0.1))
        with _Watch() as watch:
            report = gallery.add(path)
    print(
        f"{report.rows} tiles in {report.seconds:.0f} s; most memory, all processes: {watch.most / 2**30:.2f} GiB "
        f"(whole raster: {options.side**2 * 6 / 2**30:.1f} GiB)"
    )
    if report.skipped or watch.most > options.limit_gib * 2**30:
        sys.exit(f"over {options.limit_gib} GiB, or skipped: {report.skipped}")


def _write(path: Path, side: int) -> None:
    """Data in a fifth of the blocks, spread over the scene; the rest is never written."""
    import rasterio
    from rasterio.transform import from_origin
    from rasterio.windows import Window

    rng = np.random.default_rng(0)
    profile = {"driver": "GTiff", "width": side, "height": side, "count": 3, "dtype": "uint16", "nodata": 0,
               "crs": "EPSG:32633", "transform": from_origin(300_000, 5_900_000, 1, 1), "tiled": True,
               "blockxsize": 512, "blockysize": 512, "compress": "deflate", "zlevel": 1, "SPARSE_OK": True}  # fmt: skip
    with rasterio.open(path, "w", **profile) as target:
        for y in range(0, side, 512):
            for x in range(0, side, 512):
                if rng.random() < 0.2:
                    height, width = min(512, side - y), min(512, side - x)
                    coarse = rng.integers(200, 6000, (3, 8, 8)).astype(np.uint16)
                    block = coarse.repeat(64, axis=1).repeat(64, axis=2)[:, :height, :width]
                    target.write(block, window=Window(x, y, width, height))


class _Watch:
    """Samples the resident memory of this process and its children; shared pages count for each."""

    def __init__(self) -> None:
        self.most = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> _Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        import os

        while not self._stop.is_set():
            children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
            threads = Path(f"/proc/{os.getpid()}/task").iterdir()
            children += [pid for task in threads for pid in _read(task / "children").split()]
            self.most = max(self.most, sum(_resident(pid) for pid in {str(os.getpid()), *children}))
            time.sleep(0.1)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _resident(pid: str) -> int:
    for line in _read(Path(f"/proc/{pid}/status")).splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


if __name__ == "__main__":
    main()
