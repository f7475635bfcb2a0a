"""Changes that leave a remote-sensing query what it is: small radiometric drift, small rotation, words of the field."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from evidex.degrade.image import Degradation, FloatImage, radiometric
from evidex.degrade.lexicon import Lexicon

# Eq. 20: the drift between two acquisitions, half of what a degraded image gets.
CALIBRATION_DRIFT: Final = Degradation(gain=(0.95, 1.05), bias=(-0.02, 0.02))
LARGEST_ANGLE: Final = 15.0
_PIXELS_AT_ONCE: Final = 1 << 18


def augment_image(image: FloatImage, rng: np.random.Generator) -> FloatImage:
    """A radiometric change and a rotation by at most 15 degrees; ``image`` is (height, width, 3) in [0, 1]."""
    drifted = perturb_radiometry(image, rng)
    return rotate(drifted, LARGEST_ANGLE * (2.0 * rng.random() - 1.0))


def augment_text(text: str, rng: np.random.Generator, lexicon: Lexicon) -> str:
    """Phrases of the lexicon exchanged as in the degraded captions."""
    return lexicon.substitute(text, rng)


def perturb_radiometry(image: FloatImage, rng: np.random.Generator) -> FloatImage:
    """A gain in [0.95, 1.05] and a bias of at most 0.02 for each channel (Eq. 20), clipped to [0, 1]."""
    return np.clip(radiometric(image, rng, CALIBRATION_DRIFT), 0.0, 1.0)


def rotate(image: FloatImage, degrees: float) -> FloatImage:
    """Rotate about the centre, keeping the size: bilinear, what lies outside is the reflection of the inside.

    The reflection does not repeat the border pixel. Positive angles turn counter-clockwise.
    """
    height, width, channels = image.shape
    result = np.empty_like(image)
    centre_y, centre_x = (height - 1) / 2, (width - 1) / 2
    cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    columns = np.arange(width) - centre_x
    block = max(1, _PIXELS_AT_ONCE // width)
    pixels = image.reshape(-1, channels)
    for top in range(0, height, block):
        rows = np.arange(top, min(top + block, height))[:, None] - centre_y
        y = cosine * rows + sine * columns + centre_y
        x = -sine * rows + cosine * columns + centre_x
        result[top : top + block] = _bilinear(pixels, y, x, height, width).astype(image.dtype, copy=False)
    return result


def _bilinear(
    pixels: FloatImage, y: NDArray[np.float64], x: NDArray[np.float64], height: int, width: int
) -> NDArray[np.floating[Any]]:
    above, left = np.floor(y), np.floor(x)
    down, right = (y - above)[..., None].astype(pixels.dtype), (x - left)[..., None].astype(pixels.dtype)
    y0, x0 = above.astype(np.int64), left.astype(np.int64)
    row0, row1 = _reflected(y0, height) * width, _reflected(y0 + 1, height) * width
    column0, column1 = _reflected(x0, width), _reflected(x0 + 1, width)
    upper = pixels[row0 + column0] * (1 - right) + pixels[row0 + column1] * right
    lower = pixels[row1 + column0] * (1 - right) + pixels[row1 + column1] * right
    blended: NDArray[np.floating[Any]] = upper * (1 - down) + lower * down
    return blended


def _reflected(index: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    """Fold any index into [0, length): ... 2 1 [0 1 2 ... n-1] n-2 n-3 ..."""
    if length == 1:
        return np.zeros_like(index)
    period = 2 * (length - 1)
    folded = index % period
    return np.minimum(folded, period - folded)
