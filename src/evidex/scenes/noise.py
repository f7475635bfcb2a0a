"""Random textures, cut from periodic fields that are made once for a process.

A fresh multi-octave field for every image would cost more than drawing the scene. The fields come from a fixed seed,
so an image depends on where it cuts them and on nothing else.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from evidex.scenes.dice import Dice

Field = NDArray[np.float32]

EDGE = 224
"""Scene units along an image's edge: textures keep their scale at any size in pixels."""

_PERIOD = 1024


@lru_cache(maxsize=8)
def _periodic(slope: float, shortest: float, longest: float) -> Field:
    """Return unit-variance noise with power falling as frequency^-slope between two wavelengths in units."""
    white = np.random.default_rng(20_240_229).standard_normal((_PERIOD, _PERIOD))
    fy = np.fft.fftfreq(_PERIOD)[:, None]
    fx = np.fft.rfftfreq(_PERIOD)[None, :]
    frequency = np.hypot(fx, fy)
    frequency[0, 0] = 1.0
    gain = frequency ** (-slope / 2.0)
    gain *= np.exp(-((frequency * shortest) ** 2)) * (1.0 - np.exp(-((frequency * longest) ** 2)))
    gain[0, 0] = 0.0
    field = np.fft.irfft2(np.fft.rfft2(white) * gain, s=(_PERIOD, _PERIOD))
    return np.asarray(field / field.std(), dtype=np.float32)


def _cut(field: Field, dice: Dice, edge: int) -> Field:
    rows = (np.arange(edge) + dice.whole(0, _PERIOD - 1)) % _PERIOD
    columns = (np.arange(edge) + dice.whole(0, _PERIOD - 1)) % _PERIOD
    piece = field[rows[:, None], columns[None, :]]
    if dice.chance(0.5):
        piece = piece.T
    if dice.chance(0.5):
        piece = piece[::-1]
    return piece[:, ::-1] if dice.chance(0.5) else piece


def stretch(field: Field, size: int) -> Field:
    """Resample a square field to ``size`` pixels."""
    if field.shape == (size, size):
        return np.ascontiguousarray(field)
    image = Image.fromarray(np.ascontiguousarray(field))
    return np.asarray(image.resize((size, size), Image.Resampling.BICUBIC), dtype=np.float32)


def grain(dice: Dice, size: int) -> Field:
    """Return pixel-sized roughness; it follows the pixels, as a sensor's does."""
    return _cut(_periodic(0.6, 0.7, 30.0), dice, size)


def mottle(dice: Dice, size: int) -> Field:
    """Return patches of a few to a hundred units: soil, wear, moisture."""
    return stretch(_cut(_periodic(2.2, 2.0, 160.0), dice, EDGE), size)


def patches(dice: Dice, size: int) -> Field:
    """Return blotches with edges, a few units to tens of units wide: bare spots, weeds, stains."""
    smooth = stretch(_cut(_periodic(1.6, 2.6, 60.0), dice, EDGE), size)
    return np.asarray(np.tanh(1.8 * smooth), dtype=np.float32)


def relief(dice: Dice, size: int) -> Field:
    """Return rolling terrain with detail at every scale."""
    return stretch(_cut(_periodic(4.0, 1.5, 260.0), dice, EDGE), size)


def massif(dice: Dice, size: int) -> Field:
    """Return terrain with broad slopes; its absolute value has sharp crests, as mountain ranges do."""
    return stretch(_cut(_periodic(4.2, 6.0, 110.0), dice, EDGE), size)


def swell(dice: Dice, size: int) -> Field:
    """Return smooth undulation without detail, to bend lines and mix colours."""
    return stretch(_cut(_periodic(3.0, 24.0, 200.0), dice, EDGE), size)
