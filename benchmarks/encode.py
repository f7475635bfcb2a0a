"""How fast the compact model encodes beside CLIP ViT-B/32 (transformers, random weights), in one run.

``python benchmarks/encode.py [--model FILE] [--threads 2] [--json]``: decoded 224-pixel pictures, 32 at once and one
alone, preparation included on both sides, and single text queries; medians over interleaved repeats. The compact model
runs by ONNX Runtime, as ``evidex.load_model`` gives it, and by torch; CLIP by torch, in float32 and in bfloat16. Needs
idle cores: two threads that wait for each other on a busy machine measure its scheduler. Exit status 1 where a target
is missed: against CLIP in float32 12 times as fast for 32 images, 14 times for one, 3 % of the time for a text.
"""

from __future__ import annotations

import argparse
import copy
import json
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import numpy as np
import torch
from PIL import Image
from transformers import CLIPConfig, CLIPModel

import evidex
from evidex.encoders.preprocess import CLIP_MEAN, CLIP_STD, normalise, resize_and_crop

PICTURES = 32
QUERY = "many planes are parked next to a long building in an airport ."
CLIP_CONTEXT = 77

PAUSE = 0.05
"""Seconds before each measured call: the threads of the engine before it stay awake for a while, on all cores."""

TARGETS = {"32 images": 12.0, "one image": 14.0, "one text": 100 / 3}
"""How many times as fast as CLIP in float32."""

Item = TypeVar("Item")
Figures = dict[str, dict[str, float]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="instead of the compact model")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)

    rng = np.random.default_rng(0)
    pictures = [Image.fromarray(rng.integers(0, 256, (224, 224, 3), dtype=np.uint8)) for _ in range(PICTURES)]
    compact = evidex.load_model(arguments.model, device="cpu")
    plain = evidex.load_model(arguments.model, device="cpu", engine="torch")
    clip = CLIPModel(CLIPConfig()).eval()
    low_clip = copy.deepcopy(clip).bfloat16()
    image_encoders: dict[str, Callable[[list[Image.Image]], object]] = {
        "compact": compact.encode_images,
        "compact, torch": plain.encode_images,
        "CLIP float32": partial(clip_images, clip),
        "CLIP bfloat16": partial(clip_images, low_clip),
    }
    text_encoders: dict[str, Callable[[list[str]], object]] = {
        "compact": compact.encode_texts,
        "compact, torch": plain.encode_texts,
        "CLIP float32": partial(clip_text, clip),
        "CLIP bfloat16": partial(clip_text, low_clip),
    }
    with torch.inference_mode():
        result = {
            "32 images": compared(image_encoders, pictures, arguments.repeats),
            "one image": compared(image_encoders, pictures[:1], 3 * arguments.repeats),
            "one text": compared(text_encoders, [QUERY], 3 * arguments.repeats),
        }
    missed = [task for task, least in TARGETS.items() if result[task]["times_as_fast_as"]["CLIP float32"] < least]
    if arguments.json:
        print(json.dumps({**result, "missed": missed}))
        return 1 if missed else 0
    for task, figures in result.items():
        times = ", ".join(f"{name} {ms:.2f} ms" for name, ms in figures["ms_each"].items())
        print(f"{task}: {times}")
        for name, ratio in figures["times_as_fast_as"].items():
            if name != "compact":
                print(f"  compact against {name}: {ratio:.1f}× as fast, {100 / ratio:.1f} % of the time")
        print(f"  at least {TARGETS[task]:.1f}× CLIP float32{': MISSED' if task in missed else ''}")
    return 1 if missed else 0


def clip_images(clip: CLIPModel, pictures: list[Image.Image]) -> None:
    pixels = torch.from_numpy(np.stack([resize_and_crop(picture, 224) for picture in pictures]))
    clip.vision_model(pixel_values=normalise(pixels, torch.tensor(CLIP_MEAN), torch.tensor(CLIP_STD)).to(clip.dtype))


def clip_text(clip: CLIPModel, texts: list[str]) -> None:
    """Run CLIP's text tower on full contexts, as CLIP pads every text; its tokenizer is not counted."""
    clip.text_model(input_ids=torch.ones((len(texts), CLIP_CONTEXT), dtype=torch.int64))


def compared(encoders: dict[str, Callable[[list[Item]], object]], work: list[Item], repeats: int) -> Figures:
    """Return the milliseconds that each encoder takes for a piece of ``work`` and what the compact model saves."""
    taken = medians([partial(encoder, work) for encoder in encoders.values()], repeats)
    times = {name: ms / len(work) for name, ms in zip(encoders, taken, strict=True)}
    return {"ms_each": times, "times_as_fast_as": {name: ms / times["compact"] for name, ms in times.items()}}


def medians(functions: list[Callable[[], object]], repeats: int) -> list[float]:
    """Return the median milliseconds of each, run in turns so that a busy moment hits all alike."""
    times: list[list[float]] = [[] for _ in functions]
    for function in functions:
        function()
    for _ in range(repeats):
        for function, taken in zip(functions, times, strict=True):
            time.sleep(PAUSE)
            begun = time.perf_counter()
            function()
            taken.append(1000 * (time.perf_counter() - begun))
    return [statistics.median(taken) for taken in times]


if __name__ == "__main__":
    sys.exit(main())
