from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage, stats

from evidex.degrade import Lexicon, augment_image, augment_text, perturb_radiometry, rotate


@given(st.floats(-180, 180), st.integers(1, 30), st.integers(1, 30), st.integers(0, 999))
@settings(max_examples=80, deadline=None)
def test_rotation_agrees_with_scipy(degrees: float, height: int, width: int, seed: int) -> None:
    image = np.random.default_rng(seed).random((height, width, 3))
    angle = np.deg2rad(degrees)
    matrix = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    centre = (np.array([height, width]) - 1) / 2
    expected = np.stack(
        [
            ndimage.affine_transform(image[..., c], matrix, centre - matrix @ centre, order=1, mode="mirror")
            for c in range(3)
        ],
        axis=-1,
    )
    np.testing.assert_allclose(rotate(image, degrees), expected, atol=1e-9)


def test_rotation_of_large_images_in_blocks_is_seamless() -> None:
    image = np.random.default_rng(0).random((700, 500, 3)).astype(np.float32)
    whole = ndimage.rotate(image, 11.0, axes=(1, 0), reshape=False, order=1, mode="mirror")
    turned = min(np.abs(rotate(image, sign * 11.0) - whole).max() for sign in (-1, 1))
    assert turned < 1e-4


def test_a_quarter_turn_is_counter_clockwise() -> None:
    image = np.random.default_rng(0).random((9, 9, 3))
    np.testing.assert_allclose(rotate(image, 90.0), np.rot90(image), atol=1e-12)
    np.testing.assert_array_equal(rotate(image, 0.0), image)


def test_radiometric_change_has_the_ranges_of_the_paper() -> None:
    image = np.random.default_rng(0).uniform(0.2, 0.8, (8, 8, 3))
    fits = []
    for seed in range(400):
        changed = perturb_radiometry(image, np.random.default_rng(seed))
        fits += [np.polyfit(image[..., c].ravel(), changed[..., c].ravel(), 1) for c in range(3)]
    gains, biases = np.array(fits).T
    assert stats.kstest(gains, stats.uniform(0.95, 0.10).cdf).pvalue > 1e-6
    assert stats.kstest(biases, stats.uniform(-0.02, 0.04).cdf).pvalue > 1e-6
    assert np.abs(gains - 1).max() <= 0.05 + 1e-4
    assert np.abs(biases).max() <= 0.02 + 1e-4


def test_angles_are_uniform_within_fifteen_degrees() -> None:
    """The angle is read off a ramp: rotation turns its gradient."""
    rows = np.arange(41) / 100 + 0.3
    ramp = np.repeat(np.broadcast_to(rows[:, None], (41, 41))[..., None], 3, axis=2).copy()
    angles = []
    for seed in range(400):
        middle = augment_image(ramp, np.random.default_rng(seed))[15:26, 15:26, 0]
        down, right = np.gradient(middle)
        angles.append(np.degrees(np.arctan2(right.mean(), down.mean())))
    assert np.abs(angles).max() <= 15.1
    assert stats.kstest(angles, stats.uniform(-15, 30).cdf).pvalue > 1e-6


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (50, 2), (64, 64)])
def test_augmented_images_keep_shape_type_and_range(shape: tuple[int, int]) -> None:
    image = np.random.default_rng(1).random((*shape, 3), dtype=np.float32)
    result = augment_image(image, np.random.default_rng(2))
    assert result.shape == image.shape
    assert result.dtype == np.float32
    assert 0 <= result.min() <= result.max() <= 1
    np.testing.assert_array_equal(result, augment_image(image, np.random.default_rng(2)))


def test_texts_change_by_the_lexicon() -> None:
    lexicon = Lexicon.load()
    caption = "many boats are in a harbor near a bridge ."
    texts = {augment_text(caption, np.random.default_rng(seed), lexicon) for seed in range(200)}
    assert len(texts) > 20
    assert "many boats are in a dock near a bridge ." in texts
    assert augment_text("xyzzy", np.random.default_rng(0), lexicon) == "xyzzy"
