"""What augmentation draws, measured on plain pictures; degradation has the constants of the benchmark's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from evidex.degrade.image import Degradation, degrade_image
from evidex.training.augment import FREE, SLIGHT, Variation, augment, degrade

COUNT, SIZE, DARK, BRIGHT = 200, 48, 0.2, 0.6
Pictures = NDArray[np.float64]


@dataclass(frozen=True)
class _Measured:
    """The constants of Eqs. 21–24, as found in what came out."""

    airlight: float
    least_over_most: Pictures
    """Of the transmission, for each picture and channel."""
    gain: Pictures
    bias: Pictures
    readout_sigma: float
    stripe_sigma: float


def _measure(dark: Pictures, bright: Pictures) -> _Measured:
    """From flat pictures (n, 3, s, s) of two brightnesses and the same draws: all but gain · t cancels out."""
    through = (bright - dark) / (BRIGHT - DARK)  # gain · t
    gain = through.max((2, 3)) / Degradation().transmission[1]
    veil = gain[:, :, None, None] - through  # gain · (1 - t)
    rest = dark - through * DARK  # veil · airlight + bias + noise + stripes
    level = veil - veil.mean((2, 3), keepdims=True)
    airlight = (level * rest).sum() / (level**2).sum()
    bias = (rest - airlight * veil).mean((2, 3))
    left = rest - airlight * veil - bias[:, :, None, None]
    stripes = left.mean((1, 3), keepdims=True)
    least = through.min((2, 3)) / through.max((2, 3))
    return _Measured(airlight, least, gain, bias, (left - stripes).std(), stripes.std())


def _of_training() -> _Measured:
    def flat(value: float) -> Pictures:
        pictures = torch.full((COUNT, 3, SIZE, SIZE), 255 * value)
        return np.asarray(degrade(pictures, 1.0, torch.Generator().manual_seed(0)).numpy() / 255, np.float64)

    return _measure(flat(DARK), flat(BRIGHT))


def _of_benchmark() -> _Measured:
    def flat(value: float) -> Pictures:
        picture = np.full((SIZE, SIZE, 3), value)
        made = [degrade_image(picture, np.random.default_rng(seed)) for seed in range(COUNT)]
        return np.asarray(np.stack(made).transpose(0, 3, 1, 2), np.float64)

    return _measure(flat(DARK), flat(BRIGHT))


@pytest.mark.parametrize("measured", [_of_training, _of_benchmark], ids=["training", "benchmark"])
def test_degradation_in_training_has_the_constants_of_the_benchmark(measured: Callable[[], _Measured]) -> None:
    found, constants = measured(), Degradation()
    assert found.airlight == pytest.approx(constants.airlight, abs=0.01)
    np.testing.assert_allclose(found.least_over_most, constants.transmission[0] / constants.transmission[1], rtol=1e-3)
    _check_range(found.gain, constants.gain, slack=1e-3)
    _check_range(found.bias, constants.bias, slack=4 * constants.stripe_sigma / SIZE**0.5)
    assert found.readout_sigma == pytest.approx(constants.readout_sigma, rel=0.02)
    assert found.stripe_sigma == pytest.approx(constants.stripe_sigma, rel=0.04)


def _check_range(values: Pictures, limits: tuple[float, float], slack: float) -> None:
    """Uniform within ``limits``, give or take ``slack``."""
    low, high = limits
    assert low - slack <= values.min() < low + 0.1 * (high - low)
    assert high - 0.1 * (high - low) < values.max() <= high + slack
    assert values.mean() == pytest.approx((low + high) / 2, abs=0.1 * (high - low))


def test_colours_vary_by_a_fifth_and_a_little_of_full_scale() -> None:
    dark, bright = (
        augment(torch.full((COUNT, 3, 4, 4), value), torch.Generator().manual_seed(0)).double().numpy()[:, :, 0, 0]
        for value in (80.0, 160.0)
    )
    gain = (bright - dark) / 80
    _check_range(gain, (0.8, 1.2), slack=1e-5)
    _check_range((dark - 80 * gain) / 255, (-0.08, 0.08), slack=1e-5)


def _axes(variation: Variation = FREE, count: int = 400, size: int = 33) -> tuple[Pictures, Pictures]:
    """How fast a pixel's column and row (n, 2), which two channels hold, change along a line and down it."""
    columns = torch.linspace(50, 150, size).expand(size, size)
    picture = torch.stack([columns, columns.T, columns]).expand(count, 3, size, size)
    middle = augment(picture, torch.Generator().manual_seed(0), variation).double().numpy()[:, :2, 14:19, 14:19]
    return np.diff(middle, axis=3).mean((2, 3)), np.diff(middle, axis=2).mean((2, 3))


def test_three_quarters_of_a_side_are_seen_at_least() -> None:
    across, down = _axes(replace(FREE, gain=0.0))
    step = 100 / 32
    _check_range(np.hypot(across[:, 0], down[:, 0]) / step, (0.75, 1.0), slack=1e-3)


def test_pictures_turn_by_quarters_and_a_little_more_and_half_are_mirrored() -> None:
    across, down = _axes()
    count = len(across)
    angle = np.degrees(np.arctan2(-down[:, 0], across[:, 0]))
    quarter = np.rint(angle / 90)
    beside = angle - 90 * quarter
    assert 14 < np.abs(beside).max() <= 15 + 1e-2
    assert np.abs(beside).mean() == pytest.approx(7.5, abs=0.7)
    assert np.bincount(quarter.astype(int) % 4, minlength=4) / count == pytest.approx([0.25] * 4, abs=0.07)
    mirrored = across[:, 0] * down[:, 1] < across[:, 1] * down[:, 0]
    assert mirrored.mean() == pytest.approx(0.5, abs=0.08)


def test_slight_variation_keeps_the_side_that_is_up_and_nearly_all_of_it() -> None:
    across, down = _axes(replace(SLIGHT, gain=0.0))
    angle = np.degrees(np.arctan2(-down[:, 0], across[:, 0]))
    _check_range(angle, (-15.0, 15.0), slack=1e-2)
    assert (across[:, 0] * down[:, 1] > across[:, 1] * down[:, 0]).all()
    _check_range(np.hypot(across[:, 0], down[:, 0]) / (100 / 32), (0.95, 1.0), slack=1e-3)


def test_slight_variation_of_colour_is_half_of_the_free_one() -> None:
    dark, bright = (
        augment(torch.full((COUNT, 3, 4, 4), value), torch.Generator().manual_seed(0), SLIGHT).double().numpy()
        for value in (80.0, 160.0)
    )
    gain = ((bright - dark) / 80)[:, :, 0, 0]
    _check_range(gain, (0.9, 1.1), slack=1e-5)
    _check_range((dark[:, :, 0, 0] - 80 * gain) / 255, (-0.04, 0.04), slack=1e-5)
