"""What a picture looks like in 64 bits: nearly the same after it was encoded again or resized."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from PIL.Image import Image

_SIDE = 32
BITS = 64


def perceptual_hash(picture: Image) -> int:
    """Which of the 64 lowest frequencies of the picture in grey lie above their median, its mean brightness left out.

    Frequencies are those of the discrete cosine transform of 32 x 32 pixels, the lowest bit for the lowest of them. All
    of one grey has none: there a digest of its colours stands for them, alike for the same ones only.
    """
    from PIL.Image import Resampling

    grey = np.asarray(picture.convert("L").resize((_SIDE, _SIDE), Resampling.LANCZOS), np.float64)
    if grey.min() == grey.max():
        return _digest(picture.convert("RGB").resize((_SIDE, _SIDE), Resampling.LANCZOS))
    waves, (down, across) = _cosines(), _lowest()
    strengths = (waves @ grey @ waves.T)[down, across]
    above = strengths > np.median(strengths)
    return int.from_bytes(np.packbits(above, bitorder="little").tobytes(), "little")


def _digest(picture: Image) -> int:
    return int.from_bytes(hashlib.blake2b(picture.tobytes(), digest_size=BITS // 8).digest(), "little")


@cache
def _cosines() -> NDArray[np.float64]:
    """(frequencies, pixels), without the scale that no comparison needs."""
    frequency, pixel = np.arange(_SIDE)[:, None], np.arange(_SIDE)
    return np.asarray(np.cos(np.pi * frequency * (2 * pixel + 1) / (2 * _SIDE)))


@cache
def _lowest() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first `BITS` frequencies after the mean, by how many waves they count down and across together."""
    places = sorted((i + j, i, j) for i in range(_SIDE) for j in range(_SIDE))[1 : BITS + 1]
    return np.array([i for _, i, _ in places]), np.array([j for _, _, j in places])
