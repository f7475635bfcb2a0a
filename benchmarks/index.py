"""Images per second: evidex index beside CLIP ViT-B/32 through transformers, on the same files, in one run.

    python benchmarks/index.py [--files 512] [--folder DIR]

Without a folder, JPEGs of 256×256 are made. CLIP has random weights: speed does not depend on them. Both sides decode
the files, prepare them and encode them in batches of 64; evidex also hashes them and commits the rows.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=512)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = options.folder or _written(Path(name) / "files", options.files)
        paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in (".jpg", ".png"))[: options.files]
        ours = _evidex(paths, Path(name) / "gallery")
        again = _evidex_again(paths, Path(name) / "gallery")
        clip = _clip(paths)
    print(f"{len(paths)} files")
    print(f"evidex index, compact encoder   {ours:8.1f} images/s")
    print(f"evidex index, nothing changed   {again:8.1f} images/s")
    print(f"CLIP ViT-B/32, transformers     {clip:8.1f} images/s")
    print(f"evidex / CLIP                   {ours / clip:8.2f}")


def _written(folder: Path, count: int) -> Path:
    folder.mkdir()
    rng = np.random.default_rng(0)
    for number in range(count):
        coarse = rng.integers(0, 256, (32, 32, 3), dtype=np.uint8)
        Image.fromarray(coarse).resize((256, 256), Image.Resampling.BICUBIC).save(
            folder / f"{number:05d}.jpg", quality=90
        )
    return folder


def _evidex(paths: list[Path], place: Path) -> float:
    import torch

    from evidex.config import EncoderConfig
    from evidex.encoders.model import SHIPPED, Model, load_model
    from evidex.encoders.towers import new_compact
    from evidex.retrieval.gallery import Gallery

    torch.manual_seed(0)
    model = load_model() if SHIPPED.is_file() else Model(new_compact(EncoderConfig(), ["a river"]), 0.1)
    model.encode_images(paths[:2])
    report = Gallery.create(place, model).add(paths)
    if report.added != len(paths):
        raise SystemExit(f"{len(report.skipped)} files skipped: {report.skipped[:3]}")
    return len(paths) / report.seconds


def _evidex_again(paths: list[Path], place: Path) -> float:
    from evidex.retrieval.gallery import Gallery

    return len(paths) / Gallery.open(place).add(paths).seconds


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
