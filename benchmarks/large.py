"""How fast the large model encodes pictures beside the compact one and CLIP ViT-B/32, in one run.

``python benchmarks/large.py [--model large] [--threads 2] [--json]``: decoded 224-pixel pictures, preparation included.
The large model runs as ``evidex.load_model`` gives it (its products in bytes), by ONNX Runtime in float32, and by torch
in float32 and bfloat16. Medians over interleaved repeats of the seconds a picture takes, and of the processor's
seconds, which a busy machine changes less.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from encode import clip_images
from PIL import Image
from transformers import CLIPConfig, CLIPModel

import evidex
from evidex.encoders.model import Model
from evidex.encoders.onnx_encoder import OnnxEncoder

Pictures = list[Image.Image]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="large")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--pictures", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(arguments.threads)
    torch.set_num_threads(arguments.threads)

    rng = np.random.default_rng(0)
    size = (224, 224, 3)
    pictures = [Image.fromarray(rng.integers(0, 256, size, dtype=np.uint8)) for _ in range(arguments.pictures)]
    with torch.inference_mode():
        figures = compared(encoders(arguments.model), pictures, arguments.repeats)
    if arguments.json:
        print(json.dumps(figures))
        return 0
    slowest = figures["large, torch float32"]
    for name, (seconds, processor) in figures.items():
        print(
            f"{name}: {1 / seconds:.1f} pictures/s; {1000 * seconds:.0f} ms each, {1000 * processor:.0f} of processor"
        )
        clock, busy = slowest[0] / seconds, slowest[1] / processor
        print(f"  {clock:.2f}× as fast as large in torch's float32, {busy:.2f}× by the processor's time")
    return 0


def encoders(name: str) -> dict[str, Callable[[Pictures], object]]:
    """What is compared, each from pictures to rows."""
    large = evidex.load_model(name, device="cpu")
    exact = Model(OnnxEncoder(large.encoder.spec(), large.encoder.weights()), large.temperature)
    torchs = evidex.load_model(name, device="cpu", engine="torch")
    clip = CLIPModel(CLIPConfig()).eval()
    return {
        "large": large.encode_images,
        "large, ONNX Runtime float32": exact.encode_images,
        "large, torch float32": torchs.encode_images,
        "large, torch bfloat16": partial(_low_precision, copy.deepcopy(torchs.encoder)),
        "compact": evidex.load_model("compact", device="cpu").encode_images,
        "CLIP ViT-B/32, torch float32": partial(clip_images, clip),
        "CLIP ViT-B/32, torch bfloat16": partial(clip_images, copy.deepcopy(clip).bfloat16()),
    }


def _low_precision(encoder: Any, pictures: Pictures) -> object:
    pixels = torch.from_numpy(np.stack([encoder.prepare_image(picture) for picture in pictures]))
    tower = encoder.image_tower.bfloat16()
    return encoder.image_head(tower(tower.normalise(pixels).bfloat16()).float())


def compared(
    run: dict[str, Callable[[Pictures], object]], pictures: Pictures, repeats: int
) -> dict[str, tuple[float, float]]:
    """Return the seconds that a picture takes, by the clock and of the processor; in turns, so that a busy moment
    hits all alike."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in run}
    for encode in run.values():
        encode(pictures[:1])
    for _ in range(repeats):
        for name, encode in run.items():
            begun = time.perf_counter(), time.process_time()
            encode(pictures)
            taken[name].append((time.perf_counter() - begun[0], time.process_time() - begun[1]))
    return {
        name: (
            statistics.median(each[0] for each in times) / len(pictures),
            statistics.median(each[1] for each in times) / len(pictures),
        )
        for name, times in taken.items()
    }


if __name__ == "__main__":
    sys.exit(main())
