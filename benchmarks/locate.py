"""What `evidex locate` finds and costs: ``python benchmarks/locate.py quality --rsicd RSICD``, ``speed``, ``picture``.

``quality`` asks mosaics of RSICD val's pictures and of rendered scenes for every kind of scene by its name, those that
are there and those that are not, and writes docs/results/locate.csv. ``speed`` looks for one thing in a scene of 10,000
× 10,000 pixels that is written for it, in a process of its own, and prints windows a second and the most memory that
process ever held, beside what the scene itself would take; ``--window`` as the command has it. ``picture`` draws
docs/images/locate.png.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np

from evidex.data.datasets import load_dataset
from evidex.data.labels import as_typed
from evidex.encoders.model import load_model
from evidex.evaluation.mosaics import draw_mosaics, measure
from evidex.files import write_atomic
from evidex.progress import progress_bar
from evidex.scenes.archive import render_archive

TARGET = Path(__file__).resolve().parents[1] / "docs" / "results" / "locate.csv"
DRAWN = TARGET.parents[1] / "images" / "locate.png"
PICTURE = (
    ("forest", "port", "farmland"),
    ("meadow", "denseresidential", "storagetanks"),
    ("desert", "airport", "river"),
)
QUESTIONS = ("storage tanks", "a port", "a stadium")
WORDS = ("bare", "baseball", "dense", "medium", "railway", "sparse", "storage", "tennis")
"""With which the names of rendered kinds begin that are written in one."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("quality", "speed", "once", "picture"))
    parser.add_argument("--rsicd", type=Path)
    parser.add_argument("--mosaics", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--side", type=int, default=10_000)
    parser.add_argument("--scene", type=Path)
    parser.add_argument("--window", default="512,256,128")
    arguments = parser.parse_args()
    if arguments.what == "quality":
        return quality(arguments.rsicd, arguments.mosaics, arguments.seed)
    if arguments.what == "once":
        return once(arguments.scene, arguments.window)
    return speed(arguments.side, arguments.window) if arguments.what == "speed" else draw()


def quality(rsicd: Path | None, count: int, seed: int) -> int:
    model = load_model("compact")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        sets = {} if rsicd is None else {"RSICD val": load_dataset(rsicd, "val")}
        render_archive(Path(folder) / "rendered", count=310)
        sets["rendered"] = load_dataset(Path(folder) / "rendered", "train")
        for name, data in sets.items():
            labels = sorted({record.label for record in data.records if record.label is not None})
            mosaics = list(draw_mosaics(data, count, seed))
            with progress_bar(name) as progress:
                found = measure(model, mosaics, {label: spelt(label) for label in labels}, progress=progress)
            rows += [{"mosaics_of": name, "mosaics": count, **asdict(figures)} for figures in found]
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: _rounded(value) for key, value in row.items()} for row in rows)
    write_atomic(TARGET, stream.getvalue())
    print(stream.getvalue())
    return 0


def draw() -> int:
    """A rendered scene under the maps of two questions, side by side."""
    from PIL import Image, ImageDraw, ImageFont

    from evidex.locating.asked import ask
    from evidex.locating.locate import locate
    from evidex.locating.view import view_of_picture
    from evidex.locating.writing import overlay
    from evidex.scenes.scene import render_scene

    side, gap, head = 224, 12, 34
    rows = [
        np.concatenate(
            [render_scene(kind, np.random.default_rng([y, x]), side).image for x, kind in enumerate(row)], axis=1
        )
        for y, row in enumerate(PICTURE)
    ]
    view = view_of_picture(Image.fromarray(np.concatenate(rows)), "scene")
    model = load_model("compact")
    sheet = Image.new("RGB", (len(QUESTIONS) * (view.width + gap) - gap, view.height + head), "white")
    pen = ImageDraw.Draw(sheet)
    for place, question in enumerate(QUESTIONS):
        found = locate(model, view, ask(model, question, "text"))
        x = place * (view.width + gap)
        pen.text((x, 4), found.headline, "black", font=ImageFont.load_default(20))
        sheet.paste(overlay(found, view), (x, head))
    sheet.thumbnail((1200, 1200))
    sheet.quantize(256).save(DRAWN, optimize=True)
    return 0


def spelt(label: str) -> str:
    """A label as somebody would type it: ``storagetanks`` in two words."""
    first = next((word for word in WORDS if label.startswith(word) and " " not in label and word != label), None)
    return as_typed(label if first is None else f"{first} {label.removeprefix(first)}")


def _rounded(value: object) -> object:
    return f"{value:.3f}" if isinstance(value, float) else value


def speed(side: int, window: str) -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scene.tif"
        _write_scene(path, side)
        done = subprocess.run(
            [sys.executable, __file__, "once", "--scene", str(path), "--window", window],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    found = json.loads(done.stdout)
    found["scene_mb"] = 3 * side * side / 1e6
    print(json.dumps(found, indent=1))
    return 0


def _write_scene(path: Path, side: int) -> None:
    """Coarse noise, row of blocks by row of blocks."""
    import rasterio
    from rasterio.transform import from_origin
    from rasterio.windows import Window

    rng = np.random.default_rng(0)
    profile = {"driver": "GTiff", "width": side, "height": side, "count": 3, "dtype": "uint8", "tiled": True}
    place = {"crs": "EPSG:32630", "transform": from_origin(640_000.0, 4_400_000.0, 0.5, 0.5), "compress": "deflate"}
    with rasterio.open(path, "w", **profile, **place) as target:
        for y in range(0, side, 256):
            height = min(256, side - y)
            coarse = rng.integers(0, 256, (3, -(-height // 8), -(-side // 8)), dtype=np.uint8)
            band = coarse.repeat(8, axis=1).repeat(8, axis=2)[:, :height, :side]
            target.write(band, window=Window(0, y, side, height))


def once(path: Path, window: str) -> int:
    from evidex.locating.asked import ask
    from evidex.locating.locate import LocateOptions, locate
    from evidex.locating.view import view_of_file
    from evidex.locating.writing import write_located

    model = load_model("compact")
    asked = ask(model, "storage tanks", "text")
    model.encode_images([])
    before = _peak_mb()
    start, worked = time.perf_counter(), time.process_time()
    with view_of_file(str(path)) as view:
        found = locate(model, view, asked, LocateOptions(tuple(map(int, window.split(",")))))
        looked, worked = time.perf_counter() - start, time.process_time() - worked
        write_located(path.with_name("heat.tif"), found, view)
    wrote = time.perf_counter() - start - looked
    size = path.with_name("heat.tif").stat().st_size / 1e6
    figures = {"windows": found.windows, "seconds": looked, "windows_per_second": found.windows / looked}
    figures["windows_per_core_second"] = found.windows / worked
    memory = {"peak_mb_before": before, "peak_mb": _peak_mb(), "write_seconds": wrote, "heat_mb": size}
    print(json.dumps({**figures, **memory}))
    return 0


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


if __name__ == "__main__":
    sys.exit(main())
