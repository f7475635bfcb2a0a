from __future__ import annotations

import numpy as np
import pytest

from evidex.degrade.generic_tta import (
    augment_image_generic,
    augment_text_generic,
    jitter_colour,
    random_crop,
)


class Words:
    """A thesaurus of two entries."""

    def synonyms(self, word: str) -> tuple[str, ...]:
        return {"harbor": ("nurse", "haven"), "old": ("ancient",)}.get(word, ())


def test_synonyms_replace_content_words_alone() -> None:
    texts = {
        augment_text_generic("the harbor is an old harbor .", np.random.default_rng(seed), Words())
        for seed in range(100)
    }
    assert texts == {
        "the nurse is an old nurse .",
        "the haven is an old haven .",
        "the harbor is an ancient harbor .",
    }


def test_a_tenth_of_the_words_is_replaced() -> None:
    class Numbered:
        def synonyms(self, word: str) -> tuple[str, ...]:
            return (word.upper(),)

    text = " ".join(f"word{chr(97 + i)}" for i in range(26))
    result = augment_text_generic(text, np.random.default_rng(0), Numbered())
    assert sum(word.isupper() for word in result.split()) == 2


def test_a_text_without_synonyms_stays() -> None:
    assert augment_text_generic("is it ? 12", np.random.default_rng(0), Words()) == "is it ? 12"
    assert augment_text_generic("", np.random.default_rng(0), Words()) == ""


def test_jitter_of_grey_moves_brightness_only() -> None:
    grey = np.full((6, 6, 3), 0.5)
    values = []
    for seed in range(300):
        result = jitter_colour(grey, np.random.default_rng(seed))
        np.testing.assert_allclose(result, result[0, 0, 0], atol=1e-6)
        values.append(result[0, 0, 0] / 0.5)
    assert 0.6 <= min(values) < 0.63
    assert 1.37 < max(values) <= 1.4 + 1e-6


def test_crop_shows_a_window_at_least_half_as_large() -> None:
    y, x = np.mgrid[0:64, 0:96].astype(np.float64)
    image = np.stack([y / 63, x / 95, np.zeros_like(x)], axis=-1)
    shares = []
    for seed in range(200):
        result = random_crop(image, np.random.default_rng(seed))
        assert result.shape == image.shape
        inner = result[8:-8, 8:-8]
        steps_y, steps_x = np.diff(inner[..., 0], axis=0) * 63, np.diff(inner[..., 1], axis=1) * 95
        np.testing.assert_allclose(steps_y, steps_y[0, 0], atol=1e-9)  # a straight, even enlargement
        np.testing.assert_allclose(steps_x, steps_y[0, 0], atol=1e-9)
        shares.append(steps_y[0, 0] ** 2)
    assert 0.5 <= min(shares) < 0.55
    assert 0.95 < max(shares) <= 1.0


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (50, 2), (40, 40)])
def test_augmented_images_keep_shape_type_and_range(shape: tuple[int, int]) -> None:
    image = np.random.default_rng(1).random((*shape, 3), dtype=np.float32)
    for seed in range(10):
        result = augment_image_generic(image, np.random.default_rng(seed))
        assert result.shape == image.shape
        assert result.dtype == np.float32
        assert 0 <= result.min() <= result.max() <= 1


def test_half_of_the_images_are_flipped() -> None:
    ramp = np.repeat(np.linspace(0.2, 0.8, 40)[None, :, None], 20, axis=0).repeat(3, axis=2)
    flipped = [
        augment_image_generic(ramp, np.random.default_rng(seed))[10, 30, 0]
        < augment_image_generic(ramp, np.random.default_rng(seed))[10, 10, 0]
        for seed in range(200)
    ]
    assert 60 < sum(flipped) < 140
