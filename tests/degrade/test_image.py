"""Each operator against its formula, with bounds that come from sampling theory."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from evidex.degrade import (
    Degradation,
    degradation_steps,
    degrade_image,
    haze,
    radiometric,
    readout_noise,
    striping,
    transmission_map,
)
from evidex.errors import InputError

SHAPES = [(1, 1), (1, 7), (9, 1), (2, 2), (3, 500), (640, 2), (224, 224), (61, 97)]


def picture(height: int, width: int, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).random((height, width, 3), dtype=np.float32)


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def within_chi_square(sample: NDArray[Any], sigma: float) -> bool:
    """Whether the spread of independent normal values is that of ``sigma``; wrong once in a million."""
    ratio = sample.size * float(np.mean(sample.astype(np.float64) ** 2)) / sigma**2
    return bool(stats.chi2.ppf(5e-7, sample.size) < ratio < stats.chi2.ppf(1 - 5e-7, sample.size))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_size_and_float_type_comes_back_in_range(shape: tuple[int, int], dtype: type[np.floating[Any]]) -> None:
    image = picture(*shape).astype(dtype)
    before = image.copy()
    result = degrade_image(image, generator())
    assert result.shape == image.shape
    assert result.dtype == dtype
    assert result.min() >= 0.0
    assert result.max() <= 1.0
    assert not np.array_equal(result, image)
    np.testing.assert_array_equal(image, before)


def test_both_float_types_get_the_same_degradation() -> None:
    image = picture(40, 30)
    single = degrade_image(image, generator(5))
    np.testing.assert_array_equal(degrade_image(image.astype(np.float64), generator(5)), single.astype(np.float64))


def test_views_and_transposed_memory_are_read_as_what_they_show() -> None:
    image = np.asfortranarray(picture(20, 33))
    np.testing.assert_array_equal(
        degrade_image(image[::-1], generator(1)), degrade_image(np.ascontiguousarray(image[::-1]), generator(1))
    )


def test_the_bytes_are_pinned() -> None:
    """The split of the benchmark is the same everywhere: a changed digest is a changed benchmark."""
    image = ((np.arange(37 * 53 * 3) * 7919) % 256).reshape(37, 53, 3).astype(np.float32) / np.float32(255)
    digest = hashlib.sha256(degrade_image(image, generator(2024)).astype("<f4").tobytes()).hexdigest()
    assert digest == "d4a1945b98595d55761eaf506f70bed9725eed9f9c16e4c68ee78acbf3a58ea4"


@pytest.mark.parametrize("shape", [(224, 224), (30, 400), (500, 3), (2, 2)])
def test_transmission_spans_its_range(shape: tuple[int, int]) -> None:
    for seed in range(10):
        field = transmission_map(*shape, generator(seed))
        assert field.shape == shape
        assert field.min() == pytest.approx(0.55, abs=1e-6)
        assert field.max() == pytest.approx(0.80, abs=1e-6)


def test_mean_transmission_is_in_the_middle_on_average() -> None:
    means = [float(transmission_map(64, 64, generator(seed)).mean()) for seed in range(400)]
    # Light and dense haze are alike: the field is symmetric about the middle of its range.
    assert abs(np.mean(means) - 0.675) < 4.9 * np.std(means) / np.sqrt(len(means))
    assert all(0.58 < mean < 0.77 for mean in means)


def test_transmission_is_smooth_and_not_constant() -> None:
    field = transmission_map(224, 224, generator(3)).astype(np.float64)
    steps = np.concatenate([np.abs(np.diff(field, axis=0)).ravel(), np.abs(np.diff(field, axis=1)).ravel()])
    # White noise would step by a third of the range on average; the kernel is 28 pixels wide.
    assert steps.max() < 0.25 / 28 * 1.5
    curvature = np.abs(np.diff(field, n=2, axis=0))
    assert curvature.max() < 0.25 / 28
    assert field.std() > 0.02


def test_correlation_of_haze_falls_like_a_gaussian() -> None:
    """Noise smoothed by a kernel of width s has the correlation exp(-d² / 4 s²)."""
    size, count = 96, 600
    fields = np.stack([transmission_map(size, size, generator(seed)) for seed in range(count)]).astype(np.float64)
    sigma = Degradation().haze_scale * size
    fields -= fields.mean(axis=(1, 2), keepdims=True)
    spread = fields.std(axis=(1, 2), keepdims=True)
    fields /= spread
    near = np.mean([np.corrcoef(fields[:, 40, 40], fields[:, 40, 40 + d])[0, 1] for d in (6, 12)])
    expected = np.mean([np.exp(-(d**2) / (4 * sigma**2)) for d in (6, 12)])
    # Taking out each field's own mean lowers the correlation a little.
    assert near == pytest.approx(expected, abs=0.1)


def test_a_single_pixel_gets_the_middle_of_the_range() -> None:
    np.testing.assert_allclose(transmission_map(1, 1, generator()), [[0.675]], rtol=1e-6)


def test_haze_is_the_scattering_formula() -> None:
    image = picture(50, 70).astype(np.float64)
    transmission = transmission_map(50, 70, generator(8)).astype(np.float64)[..., None]
    expected = transmission * image + (1 - transmission) * 0.85  # Eq. 21
    np.testing.assert_allclose(haze(image, generator(8)), expected, atol=1e-6)


def test_gain_and_bias_are_recovered_by_regression() -> None:
    image = picture(16, 16)
    gains, biases = [], []
    for seed in range(400):
        changed = radiometric(image, generator(seed)).astype(np.float64)
        for channel in range(3):
            gain, bias = np.polyfit(image[..., channel].ravel(), changed[..., channel].ravel(), 1)
            np.testing.assert_allclose(changed[..., channel], gain * image[..., channel] + bias, atol=1e-5)
            gains.append(gain)
            biases.append(bias)
    assert stats.kstest(gains, stats.uniform(0.90, 0.20).cdf).pvalue > 1e-6
    assert stats.kstest(biases, stats.uniform(-0.03, 0.06).cdf).pvalue > 1e-6
    assert min(gains) >= 0.90 - 1e-5
    assert max(gains) <= 1.10 + 1e-5
    assert max(map(abs, biases)) <= 0.03 + 1e-5
    by_channel = np.array(gains).reshape(-1, 3)
    assert abs(np.corrcoef(by_channel[:, 0], by_channel[:, 1])[0, 1]) < 0.25  # independent across channels


def test_readout_noise_is_white_with_its_sigma() -> None:
    noise = readout_noise(np.full((200, 150, 3), 0.5), generator(1)) - 0.5
    assert within_chi_square(noise, 0.02)
    assert abs(noise.mean()) < 4.9 * 0.02 / np.sqrt(noise.size)
    assert stats.kstest(noise.ravel() / 0.02, "norm").pvalue > 1e-6
    for shifted in (np.roll(noise, 1, axis=0), np.roll(noise, 1, axis=1), np.roll(noise, 1, axis=2)):
        assert abs(np.corrcoef(noise.ravel(), shifted.ravel())[0, 1]) < 4.9 / np.sqrt(noise.size)


def test_stripes_are_constant_along_rows_and_differ_between_them() -> None:
    offsets = striping(np.full((4000, 5, 3), 0.5), generator(2)) - 0.5
    np.testing.assert_allclose(offsets, np.broadcast_to(offsets[:, :1, :1], offsets.shape), atol=1e-7)
    rows = offsets[:, 0, 0]
    assert within_chi_square(rows, 0.025)
    assert stats.kstest(rows / 0.025, "norm").pvalue > 1e-6
    assert np.mean(np.diff(rows) == 0) < 0.01


def test_steps_are_the_chain_and_end_in_the_result() -> None:
    image = picture(30, 20)
    steps = degradation_steps(image, generator(4))
    np.testing.assert_array_equal(steps.clean, image)
    np.testing.assert_array_equal(steps.striped, degrade_image(image, generator(4)))
    rng = generator(4)
    hazy = haze(image, rng)
    np.testing.assert_array_equal(steps.hazy, np.clip(hazy, 0, 1))
    drifted = radiometric(hazy, rng)
    np.testing.assert_array_equal(steps.drifted, np.clip(drifted, 0, 1))
    assert len({step.tobytes() for step in (steps.clean, steps.hazy, steps.drifted, steps.noisy, steps.striped)}) == 5


def test_severity_zero_changes_nothing_and_more_is_worse() -> None:
    image = picture(64, 64)
    np.testing.assert_array_equal(degrade_image(image, generator(), severity=0), image)
    errors = [float(np.mean((degrade_image(image, generator(7), severity=s) - image) ** 2)) for s in (0.25, 0.5, 1, 2)]
    assert errors == sorted(errors)
    assert errors[0] > 0


def test_severity_one_is_the_paper() -> None:
    assert Degradation().scaled(1.0) == Degradation()


@given(st.floats(0, 1e6), st.integers(1, 40), st.integers(1, 40), st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_any_severity_stays_in_range(severity: float, height: int, width: int, seed: int) -> None:
    result = degrade_image(picture(height, width), generator(seed), severity=severity)
    assert np.isfinite(result).all()
    assert result.min() >= 0
    assert result.max() <= 1


@pytest.mark.parametrize(
    ("image", "words"),
    [
        (np.zeros((4, 4, 3), np.uint8), "uint8"),
        (np.zeros((4, 4)), "shape"),
        (np.zeros((4, 4, 4)), "shape"),
        (np.zeros((0, 4, 3)), "shape"),
        (np.full((4, 4, 3), 2.0), "leave"),
        (np.full((4, 4, 3), np.nan), "leave"),
    ],
)
def test_what_is_no_image_is_refused(image: NDArray[Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        degrade_image(image, generator())


@pytest.mark.parametrize("severity", [-1.0, float("nan"), float("inf")])
def test_what_is_no_severity_is_refused(severity: float) -> None:
    with pytest.raises(InputError, match="severity"):
        degrade_image(picture(2, 2), generator(), severity=severity)


@pytest.mark.parametrize(
    "arguments",
    [
        {"transmission": (0.8, 0.5)},
        {"transmission": (0.5, 1.5)},
        {"airlight": 2.0},
        {"readout_sigma": -0.1},
        {"gain": (1.0, float("nan"))},
        {"haze_scale": 0.0},
    ],
)
def test_parameters_that_make_no_sense_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(arguments))):
        Degradation(**arguments)
