"""Images per second: evidex index beside CLIP ViT-B/32 through transformers, on the same files, in one run.

    python benchmarks/index.py [--files 512] [--folder DIR] [--sides 256,768,2048]

Without a folder, JPEGs of these sides are made. CLIP has random weights: speed does not depend on them. Both decode the
files, prepare them and encode them; evidex also hashes them and commits the rows. What bounds an index run is said
beside it: the rates of reading and decoding alone (at full size too, without the reduced decoding of large JPEGs) and
of encoding alone, each on all cores.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

import evidex
from evidex.data.images import ENOUGH_TO_ENCODE, decode_image
from evidex.encoders.model import Model
from evidex.encoders.preprocess import resize_to_square
from evidex.retrieval.gallery import Gallery


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=512)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--sides", type=lambda text: [int(side) for side in text.split(",")], default=[256, 768, 2048])
    options = parser.parse_args()
    model = evidex.load_model(device="cpu")
    with tempfile.TemporaryDirectory() as name:
        if options.folder is not None:
            _report(model, options.folder, str(options.folder), options.files, Path(name))
            return
        for side in options.sides:
            folder = _written(Path(name) / f"{side}", options.files, side)
            _report(model, folder, f"JPEGs of {side} × {side}", options.files, Path(name) / f"of {side}")


def _report(model: Model, folder: Path, what: str, most: int, place: Path) -> None:
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in (".jpg", ".png"))[:most]
    model.encode_images(paths[:2])
    size = model.encoder.image_size
    pictures = [decode_image(path, at_least=ENOUGH_TO_ENCODE).resize((size, size)) for path in paths]
    rates = {
        "evidex index": len(paths) / _indexed(model, paths, place / "gallery"),
        "nothing changed": len(paths) / Gallery.open(place / "gallery").add(paths).seconds,
        "decoding alone": _rate(partial(_decode, size=size, at_least=ENOUGH_TO_ENCODE), paths),
        "at full size": _rate(partial(_decode, size=size, at_least=None), paths),
        "encoding alone": _timed(lambda: model.encode_images(pictures), len(paths)),
        "CLIP ViT-B/32": _clip(paths),
    }
    bound = "decoding" if rates["decoding alone"] < rates["encoding alone"] else "the model"
    print(f"{what}, {len(paths)} files, images/s:")
    print("  " + ", ".join(f"{label} {rate:.0f}" for label, rate in rates.items()))
    print(
        f"  {rates['evidex index'] / rates['CLIP ViT-B/32']:.2f} times CLIP; bound by {bound}: encoding alone is "
        f"{rates['encoding alone'] / rates['decoding alone']:.2f} times as fast as decoding alone"
    )


def _written(folder: Path, count: int, side: int) -> Path:
    folder.mkdir()
    rng = np.random.default_rng(0)
    for number in range(count):
        coarse = rng.integers(0, 256, (side // 8, side // 8, 3), dtype=np.uint8)
        Image.fromarray(coarse).resize((side, side), Image.Resampling.BICUBIC).save(
            folder / f"{number:05d}.jpg", quality=90
        )
    return folder


def _indexed(model: Model, paths: list[Path], place: Path) -> float:
    report = Gallery.create(place, model).add(paths)
    if report.added != len(paths):
        raise SystemExit(f"{len(report.skipped)} files skipped: {report.skipped[:3]}")
    return report.seconds


def _decode(path: Path, size: int, at_least: int | None) -> None:
    """What a decoding process does with a file: hash, decode, bring to the encoder's size."""
    content = path.read_bytes()
    hashlib.sha256(content).hexdigest()
    resize_to_square(decode_image(content, at_least=at_least), size)


def _rate(work: partial[None], paths: list[Path]) -> float:
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # Pillow decodes without the interpreter's lock
        return _timed(lambda: list(pool.map(work, paths)), len(paths))


def _timed(work: Callable[[], object], count: int) -> float:
    begun = time.perf_counter()
    work()
    return count / (time.perf_counter() - begun)


def _clip(paths: list[Path]) -> float:
    import torch
    from transformers import CLIPConfig, CLIPModel
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    model = CLIPModel(CLIPConfig()).eval()
    processor = CLIPImageProcessorPil()
    with torch.inference_mode():
        start = time.perf_counter()
        for first in range(0, len(paths), 64):
            images = [Image.open(path).convert("RGB") for path in paths[first : first + 64]]
            model.get_image_features(**processor(images=images, return_tensors="pt"))
        return len(paths) / (time.perf_counter() - start)


if __name__ == "__main__":
    main()
