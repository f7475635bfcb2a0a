"""How fast the compact model encodes beside CLIP ViT-B/32 (transformers, random weights), in one run.

``python benchmarks/encode.py [--threads 2] [--json]``: decoded 224-pixel pictures in batches of 32, preparation
included on both sides, and single text queries; medians over interleaved repeats.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
import torch
from PIL import Image
from transformers import CLIPConfig, CLIPModel

import evidex
from evidex.encoders.preprocess import CLIP_MEAN, CLIP_STD, normalise, resize_and_crop

PICTURES = 32
QUERY = "many planes are parked next to a long building in an airport ."
CLIP_CONTEXT = 77


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)

    rng = np.random.default_rng(0)
    pictures = [Image.fromarray(rng.integers(0, 256, (224, 224, 3), dtype=np.uint8)) for _ in range(PICTURES)]
    compact = evidex.load_model(device="cpu")
    clip = CLIPModel(CLIPConfig()).eval()
    tokens = torch.randint(0, 49000, (1, CLIP_CONTEXT))
    mean, std = torch.tensor(CLIP_MEAN), torch.tensor(CLIP_STD)

    def clip_images() -> None:
        pixels = torch.from_numpy(np.stack([resize_and_crop(picture, 224) for picture in pictures]))
        clip.vision_model(pixel_values=normalise(pixels, mean, std))

    def clip_text() -> None:
        clip.text_model(input_ids=tokens)

    with torch.inference_mode():
        images = medians([lambda: compact.encode_images(pictures), clip_images], arguments.repeats)
        texts = medians([lambda: compact.encode_texts([QUERY]), clip_text], 3 * arguments.repeats)
    result = {
        "image_ms": {"compact": images[0] / PICTURES, "clip": images[1] / PICTURES, "ratio": images[1] / images[0]},
        "text_ms": {"compact": texts[0], "clip": texts[1], "share": texts[0] / texts[1]},
    }
    if arguments.json:
        print(json.dumps(result))
        return 0
    compact_ms, clip_ms = images[0] / PICTURES, images[1] / PICTURES
    print(f"image: compact {compact_ms:.2f} ms, CLIP {clip_ms:.2f} ms: {clip_ms / compact_ms:.1f}×")
    print(f"text:  compact {texts[0]:.2f} ms, CLIP {texts[1]:.2f} ms: {100 * texts[0] / texts[1]:.0f} %")
    return 0


def medians(functions: list[Callable[[], object]], repeats: int) -> list[float]:
    """Return the median milliseconds of each, run in turns so that a busy moment hits all alike."""
    times: list[list[float]] = [[] for _ in functions]
    for function in functions:
        function()
    for _ in range(repeats):
        for function, taken in zip(functions, times, strict=True):
            begun = time.perf_counter()
            function()
            taken.append(1000 * (time.perf_counter() - begun))
    return [statistics.median(taken) for taken in times]


if __name__ == "__main__":
    sys.exit(main())
