"""Pictures brought to a model's size: whole as a square, or as CLIP does it: short side, centre crop, normalisation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evidex.errors import ImageError

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

CLIP_MEAN = (0.48145466, 0.4578275, 0.40821073)
CLIP_STD = (0.26862954, 0.26130258, 0.27577711)

# Longer strips than this many squares are cropped before they are resized.
_LONGEST_RESIZED_WHOLE = 64


def resize_to_square(image: Image, size: int) -> np.ndarray:
    """Return the whole of ``image`` (RGB) as uint8 (3, size, size): nothing of a scene is cropped away."""
    from PIL.Image import Resampling

    if image.size != (size, size):
        image = image.resize((size, size), Resampling.BICUBIC, reducing_gap=3.0)
    return np.ascontiguousarray(np.asarray(image, dtype=np.uint8).transpose(2, 0, 1))


def resize_and_crop(image: Image, size: int) -> np.ndarray:
    """Return ``image`` as uint8 (3, size, size): short side resized to ``size``, centre cropped."""
    from PIL.Image import Resampling

    width, height = image.size
    short, long = sorted(image.size)
    if short < 1:
        raise ImageError(f"an image of {width}×{height} pixels is empty; give one with at least one pixel")
    rgb = image if image.mode == "RGB" else image.convert("RGB")
    if long > _LONGEST_RESIZED_WHOLE * short:
        square = _middle_of_strip(rgb, size)
    else:
        resized = rgb.resize((size * width // short, size * height // short), Resampling.BICUBIC)
        left, top = (resized.width - size) // 2, (resized.height - size) // 2
        square = resized.crop((left, top, left + size, top + size))
    return np.ascontiguousarray(np.asarray(square, dtype=np.uint8).transpose(2, 0, 1))


def _middle_of_strip(image: Image, size: int) -> Image:
    """Resample only what the crop keeps: a strip one pixel high must not become a picture of gigabytes."""
    from PIL.Image import Resampling

    short = min(image.size)
    left, top = ((side - short) / 2 for side in image.size)
    return image.resize((size, size), Resampling.BICUBIC, box=(left, top, left + short, top + short))


def normalise(pixels: torch.Tensor, mean: torch.Tensor, std: torch.Tensor) -> torch.Tensor:
    """Bring (n, 3, h, w), uint8 or float in [0, 255], to zero mean and unit deviation.

    ``mean`` and ``std`` are (3,), of pixels in [0, 1].
    """
    scaled = pixels.to(mean.dtype) / 255.0
    return (scaled - mean.view(1, 3, 1, 1)) / std.view(1, 3, 1, 1)
