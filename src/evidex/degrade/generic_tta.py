"""What one would do to a natural photograph and an everyday sentence: the generic augmentation of Section IV-G.

Colour jitter, random crop and horizontal flip; for texts the synonym replacement of EDA (Wei and Zou, 2019).
"""

from __future__ import annotations

import re
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from evidex.data.function_words import FUNCTION_WORDS
from evidex.degrade.image import FloatImage
from evidex.degrade.text import Replacement, replace

JITTER: Final = 0.4  # of brightness, contrast and saturation, as commonly set for natural images
SMALLEST_CROP: Final = 0.5  # of the area
REPLACED_SHARE: Final = 0.1  # of the words, at least one: EDA's alpha

_LUMA: Final = np.array([0.299, 0.587, 0.114], dtype=np.float32)
_WORD: Final = re.compile(r"[^\W\d_]+")


class Thesaurus(Protocol):
    """Where synonyms come from."""

    def synonyms(self, word: str) -> tuple[str, ...]: ...


def augment_image_generic(image: FloatImage, rng: np.random.Generator) -> FloatImage:
    """Colour jitter, random crop resized back and a horizontal flip half of the time."""
    changed = random_crop(jitter_colour(image, rng), rng)
    return changed[:, ::-1].copy() if rng.random() < 0.5 else changed


def augment_text_generic(text: str, rng: np.random.Generator, thesaurus: Thesaurus) -> str:
    """EDA's synonym replacement: a tenth of the distinct words, at least one, get a synonym wherever they stand.

    Function words stay, and words without a synonym are passed over.
    """
    found = list(_WORD.finditer(text))
    candidates = sorted({match.group().lower() for match in found} - FUNCTION_WORDS)
    wanted = max(1, int(REPLACED_SHARE * len(found)))
    chosen: dict[str, str] = {}
    for index in np.argsort(rng.random(len(candidates)), kind="stable"):
        synonyms = thesaurus.synonyms(candidates[index])
        if synonyms:
            chosen[candidates[index]] = synonyms[min(int(rng.random() * len(synonyms)), len(synonyms) - 1)]
        if len(chosen) == wanted:
            break
    return replace(
        text,
        [
            Replacement(match.start(), match.end(), chosen[match.group().lower()])
            for match in found
            if match.group().lower() in chosen
        ],
    )


def jitter_colour(image: FloatImage, rng: np.random.Generator) -> FloatImage:
    """Brightness, contrast and saturation, each scaled by a factor in [0.6, 1.4], clipped after each."""
    brightness, contrast, saturation = (1.0 + JITTER * (2.0 * rng.random(3) - 1.0)).astype(np.float32)
    work = np.clip(image * brightness, 0.0, 1.0)
    work = _blend(work, np.asarray(_grey(work).mean(), dtype=work.dtype), contrast)
    work = _blend(work, _grey(work)[..., None], saturation)
    return work.astype(image.dtype, copy=False)


def random_crop(image: FloatImage, rng: np.random.Generator) -> FloatImage:
    """A window of the same proportions with at least half of the area, resized back bilinearly."""
    height, width, _ = image.shape
    share = np.sqrt(SMALLEST_CROP + (1.0 - SMALLEST_CROP) * rng.random())
    top, left = (rng.random(2) * (1.0 - share)) * (height, width)
    y = top + (np.arange(height) + 0.5) * share - 0.5
    x = left + (np.arange(width) + 0.5) * share - 0.5
    return _resample(_resample(image, y, 0), x, 1)


def _resample(image: FloatImage, position: NDArray[np.float64], axis: int) -> FloatImage:
    """Linear interpolation along one axis; beyond the border the border counts."""
    last = image.shape[axis] - 1
    position = np.clip(position, 0, last)
    lower = np.floor(position).astype(np.int64)
    shape = [1, 1, 1]
    shape[axis] = -1
    weight = (position - lower).astype(image.dtype).reshape(shape)
    blended: NDArray[np.floating[Any]] = np.take(image, lower, axis) * (1 - weight)
    blended += np.take(image, np.minimum(lower + 1, last), axis) * weight
    return blended


def _grey(image: FloatImage) -> FloatImage:
    grey: FloatImage = image[..., 0] * _LUMA[0] + image[..., 1] * _LUMA[1] + image[..., 2] * _LUMA[2]
    return grey


def _blend(image: FloatImage, other: FloatImage, factor: np.float32) -> FloatImage:
    blended: FloatImage = np.clip(other + (image - other) * factor, 0.0, 1.0)
    return blended
