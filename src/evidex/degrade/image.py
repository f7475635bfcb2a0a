"""What weather and sensor do to an optical image: haze, radiometric drift, readout noise, striping (Eqs. 21–24).

Images are float arrays (height, width, 3) in [0, 1]. Every function draws from the generator it is given and yields
the same bits on every machine: sums whose order a library may choose are taken over whole numbers, which are exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from evidex.degrade.noise import NORMAL_STEP, standard_normal, uniform
from evidex.errors import InputError

FloatImage = NDArray[np.floating[Any]]
_Image = NDArray[np.float32]

_WEIGHT_LEVELS: Final = 2.0**15
_REACH: Final = 4  # standard deviations after which a kernel weight rounds to nothing that shows
_TOLERANCE: Final = 1e-4
_MOST_SEVERE: Final = 1e6  # all is black or white long before


@dataclass(frozen=True)
class Degradation:
    """The constants of Section IV-A."""

    airlight: float = 0.85
    transmission: tuple[float, float] = (0.55, 0.80)
    gain: tuple[float, float] = (0.90, 1.10)
    bias: tuple[float, float] = (-0.03, 0.03)
    readout_sigma: float = 0.02
    stripe_sigma: float = 0.025
    # Standard deviation of the kernel that smooths the haze, as a part of the longer side.
    haze_scale: float = 0.125

    def __post_init__(self) -> None:
        for name in ("transmission", "gain", "bias"):
            low, high = getattr(self, name)
            if not (math.isfinite(low) and math.isfinite(high) and low <= high):
                raise InputError(f"{name} ({low}, {high}) is no range; give two finite numbers, the lower first")
        if not 0.0 <= self.transmission[0] <= self.transmission[1] <= 1.0:
            raise InputError(f"transmission {self.transmission} leaves [0, 1]; transmission is a share of light")
        if not 0.0 <= self.airlight <= 1.0:
            raise InputError(f"airlight {self.airlight} is not between 0 and 1")
        for name in ("readout_sigma", "stripe_sigma"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0.0):
                raise InputError(f"{name} {value} is no standard deviation; give a finite number of at least 0")
        if not 0.01 <= self.haze_scale <= 10.0:
            raise InputError(f"haze_scale {self.haze_scale} is not between 0.01 and 10 times the longer side")

    def scaled(self, severity: float) -> Degradation:
        """The same chain, ``severity`` times as strong: 0 changes nothing, 1 are these constants."""
        if not 0.0 <= severity <= _MOST_SEVERE:
            raise InputError(f"severity {severity} is no strength; give 0 to {_MOST_SEVERE:g}")
        return replace(
            self,
            transmission=_map(self.transmission, lambda t: max(0.0, 1.0 - severity * (1.0 - t))),
            gain=_map(self.gain, lambda g: max(0.0, 1.0 + severity * (g - 1.0))),
            bias=_map(self.bias, lambda b: severity * b),
            readout_sigma=severity * self.readout_sigma,
            stripe_sigma=severity * self.stripe_sigma,
        )


@dataclass(frozen=True)
class DegradationSteps:
    """An image on its way through the chain, each stage clipped to [0, 1] for display; ``striped`` is the result."""

    clean: FloatImage
    hazy: FloatImage
    drifted: FloatImage
    noisy: FloatImage
    striped: FloatImage


_DEFAULT: Final = Degradation()


def degrade_image(
    image: FloatImage, rng: np.random.Generator, *, severity: float = 1.0, parameters: Degradation = _DEFAULT
) -> FloatImage:
    """Haze, drift, readout noise and stripes in that order, then clip to [0, 1].

    The result has the shape and type of ``image``, which is left as it is.
    """
    scaled = parameters.scaled(severity)
    work = _checked_copy(image)
    if severity > 0.0:
        for step in _CHAIN:
            step(work, rng, scaled)
    return _clipped(work, image)


def degradation_steps(
    image: FloatImage, rng: np.random.Generator, *, severity: float = 1.0, parameters: Degradation = _DEFAULT
) -> DegradationSteps:
    """The stages of :func:`degrade_image`, for the same generator the same result."""
    scaled = parameters.scaled(severity)
    work = _checked_copy(image)
    stages = [_clipped(work.copy(), image)]
    for step in _CHAIN:
        if severity > 0.0:
            step(work, rng, scaled)
        stages.append(_clipped(work.copy(), image))
    return DegradationSteps(*stages)


def haze(image: FloatImage, rng: np.random.Generator, parameters: Degradation = _DEFAULT) -> FloatImage:
    """Cloud and haze of uneven density (Eq. 21)."""
    return _alone(_add_haze, image, rng, parameters)


def radiometric(image: FloatImage, rng: np.random.Generator, parameters: Degradation = _DEFAULT) -> FloatImage:
    """A gain and a bias for each channel (Eq. 22); not clipped."""
    return _alone(_add_drift, image, rng, parameters)


def readout_noise(image: FloatImage, rng: np.random.Generator, parameters: Degradation = _DEFAULT) -> FloatImage:
    """Independent Gaussian noise on every value (Eq. 23); not clipped."""
    return _alone(_add_readout_noise, image, rng, parameters)


def striping(image: FloatImage, rng: np.random.Generator, parameters: Degradation = _DEFAULT) -> FloatImage:
    """One Gaussian offset for each row, shared by its columns and channels (Eq. 24); not clipped."""
    return _alone(_add_stripes, image, rng, parameters)


def transmission_map(
    height: int, width: int, rng: np.random.Generator, parameters: Degradation = _DEFAULT
) -> NDArray[np.float32]:
    """t(x) of Eq. 21: white noise smoothed by a Gaussian kernel, stretched to the whole transmission range.

    The noise lies on a lattice as fine as the kernel is wide, which the kernel cannot tell from noise on every pixel.
    """
    if height < 1 or width < 1:
        raise InputError(f"an image of {height} by {width} pixels has no transmission; give at least 1 by 1")
    sigma = parameters.haze_scale * max(height, width)
    rows, columns = _kernel(height, sigma), _kernel(width, sigma)
    lattice = standard_normal(rng, rows.shape[1] * columns.shape[1]).astype(np.float64) / NORMAL_STEP
    # All factors are whole numbers and the sums stay below 2**53: exact, in whatever order they are added.
    smooth = np.einsum("ij,kj->ik", lattice.reshape(rows.shape[1], columns.shape[1]), columns)
    field: NDArray[np.float64] = np.einsum("ij,jk->ik", rows, smooth)
    low, high = parameters.transmission
    lightest, densest = field.max(), field.min()
    if lightest == densest:
        return np.full((height, width), (low + high) / 2, dtype=np.float32)
    field -= densest
    field *= (high - low) / (lightest - densest)
    field += low
    return field.astype(np.float32)


def _kernel(length: int, sigma: float) -> NDArray[np.float64]:
    """Gaussian weights (pixels, lattice points) in whole numbers; lattice points are one sigma apart."""
    pixels = np.arange(length) / sigma
    points = np.arange(-_REACH, math.floor(pixels[-1]) + _REACH + 1)
    return np.rint(_WEIGHT_LEVELS * np.exp(-0.5 * (pixels[:, None] - points) ** 2))


# The steps work in place on (height, 3 · width): long contiguous rows are what NumPy is fast at.


def _add_haze(work: _Image, rng: np.random.Generator, parameters: Degradation) -> None:
    height, values = work.shape
    transmission = np.repeat(transmission_map(height, values // 3, rng, parameters), 3, axis=1)
    airlight = np.float32(parameters.airlight)
    work -= airlight  # Eq. 21 as A + t (J - A)
    work *= transmission
    work += airlight


def _add_drift(work: _Image, rng: np.random.Generator, parameters: Degradation) -> None:
    pixels = work.shape[1] // 3
    work *= np.tile(uniform(rng, *parameters.gain, 3), pixels)
    work += np.tile(uniform(rng, *parameters.bias, 3), pixels)


def _add_readout_noise(work: _Image, rng: np.random.Generator, parameters: Degradation) -> None:
    noise = standard_normal(rng, work.size).reshape(work.shape)
    noise *= np.float32(parameters.readout_sigma)
    work += noise


def _add_stripes(work: _Image, rng: np.random.Generator, parameters: Degradation) -> None:
    work += np.float32(parameters.stripe_sigma) * standard_normal(rng, work.shape[0])[:, None]


_Step = Callable[[_Image, np.random.Generator, Degradation], None]
_CHAIN: Final[tuple[_Step, ...]] = (_add_haze, _add_drift, _add_readout_noise, _add_stripes)


def _alone(step: _Step, image: FloatImage, rng: np.random.Generator, parameters: Degradation) -> FloatImage:
    work = _checked_copy(image)
    step(work, rng, parameters)
    return work.reshape(image.shape).astype(image.dtype, copy=False)


def _checked_copy(image: FloatImage) -> _Image:
    """A float32 copy as (height, 3 · width)."""
    if not isinstance(image, np.ndarray) or not np.issubdtype(image.dtype, np.floating):
        kind = getattr(image, "dtype", type(image).__name__)
        raise InputError(f"an image of {kind} cannot be degraded; give a float array in [0, 1] (divide bytes by 255)")
    if image.ndim != 3 or image.shape[2] != 3 or image.size == 0:
        raise InputError(f"an image of shape {image.shape} cannot be degraded; give (height, width, 3)")
    low, high = float(image.min()), float(image.max())
    if not (low >= -_TOLERANCE and high <= 1.0 + _TOLERANCE):
        raise InputError(f"image values from {low:g} to {high:g} leave [0, 1]; scale the image first")
    height, width, _ = image.shape
    return np.array(image, dtype=np.float32, order="C").reshape(height, 3 * width)


def _clipped(work: _Image, like: FloatImage) -> FloatImage:
    return np.clip(work, 0.0, 1.0, out=work).reshape(like.shape).astype(like.dtype, copy=False)


def _map(pair: tuple[float, float], change: Callable[[float], float]) -> tuple[float, float]:
    return change(pair[0]), change(pair[1])
