"""How long a 224×224 image takes to degrade, against decoding it from JPEG and blurring it.

The yardstick is Pillow's JPEG decoder followed by Pillow's GaussianBlur of radius 2 on the same picture, 8-bit
throughout. SciPy's gaussian_filter (sigma 2, float32) is shown beside it. Everything is timed in turn in one run, and
medians are compared. Run: python benchmarks/degrade.py
"""

from __future__ import annotations

import io
import statistics
import time
from collections.abc import Callable

import numpy as np
from PIL import Image, ImageFilter
from scipy.ndimage import gaussian_filter

from evidex.degrade import degrade_image

SIZE = 224
ROUNDS = 300
LIMIT = 1.5


def scene() -> Image.Image:
    """Blocks, roads and texture: about as hard for a JPEG decoder as an aerial image."""
    rng = np.random.default_rng(0)
    image = np.kron(rng.uniform(40, 220, (14, 14, 3)), np.ones((16, 16, 1)))
    image[::48] = 200
    image += rng.normal(0, 12, image.shape)
    return Image.fromarray(np.clip(image, 0, 255).astype(np.uint8), "RGB")


def medians(tasks: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Median seconds of each task, the tasks taking turns so that all see the same machine."""
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(ROUNDS):
        for name, task in tasks.items():
            start = time.perf_counter()
            task()
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(values[ROUNDS // 10 :]) for name, values in seconds.items()}


def main() -> None:
    picture = scene()
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", quality=80)
    content = buffer.getvalue()
    pixels = np.asarray(picture, dtype=np.float32) / np.float32(255)
    blur = ImageFilter.GaussianBlur(2)
    rng = np.random.default_rng(0)

    took = medians(
        {
            "degrade_image": lambda: degrade_image(pixels, rng),
            "JPEG decode": lambda: Image.open(io.BytesIO(content)).convert("RGB"),
            "Pillow GaussianBlur": lambda: picture.filter(blur),
            "SciPy gaussian_filter": lambda: gaussian_filter(pixels, (2, 2, 0)),
        }
    )
    for name, seconds in took.items():
        print(f"{name:<22} {1e3 * seconds:7.3f} ms")
    for name in ("Pillow GaussianBlur", "SciPy gaussian_filter"):
        ratio = took["degrade_image"] / (took["JPEG decode"] + took[name])
        print(f"degrade / (JPEG decode + {name}): {ratio:.2f} (at most {LIMIT})")


if __name__ == "__main__":
    main()
