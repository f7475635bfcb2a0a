from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import CLIPImageProcessorPil

from evidex.encoders.preprocess import CLIP_MEAN, CLIP_STD, normalise, resize_and_crop

SIZES = [(256, 256), (224, 224), (500, 375), (375, 501), (97, 640), (33, 32), (1, 7), (7, 1), (600, 13), (225, 224)]


def random_image(width: int, height: int, seed: int = 0) -> Image.Image:
    """Noise over a gradient: every pixel matters, and a shift by one pixel shows."""
    generator = np.random.default_rng([seed, width, height])
    ramp = np.linspace(0, 180, width)[None, :, None] + np.linspace(0, 40, height)[:, None, None]
    noise = generator.integers(0, 36, (height, width, 3))
    return Image.fromarray((ramp + noise).astype(np.uint8))


def reference(image: Image.Image, size: int, *, normalised: bool) -> np.ndarray:
    processor = CLIPImageProcessorPil(
        size={"shortest_edge": size},
        crop_size={"height": size, "width": size},
        do_rescale=normalised,
        do_normalize=normalised,
    )
    return np.asarray(processor(images=[image], return_tensors="np")["pixel_values"][0])


@pytest.mark.parametrize("size", [224, 32])
@pytest.mark.parametrize(("width", "height"), SIZES)
def test_pixels_equal_transformers(width: int, height: int, size: int) -> None:
    image = random_image(width, height)
    ours = resize_and_crop(image, size)
    theirs = reference(image, size, normalised=False)
    assert ours.dtype == np.uint8
    assert ours.shape == (3, size, size)
    assert np.array_equal(ours, theirs)


def test_normalised_pixels_equal_transformers() -> None:
    image = random_image(300, 260)
    pixels = torch.from_numpy(resize_and_crop(image, 224)).unsqueeze(0)
    ours = normalise(pixels, torch.tensor(CLIP_MEAN), torch.tensor(CLIP_STD))[0].numpy()
    np.testing.assert_allclose(ours, reference(image, 224, normalised=True), atol=1e-6, rtol=0)


def test_float_pixels_are_normalised_like_bytes() -> None:
    pixels = torch.randint(0, 256, (2, 3, 8, 8), dtype=torch.uint8)
    mean, std = torch.tensor(CLIP_MEAN), torch.tensor(CLIP_STD)
    assert torch.equal(normalise(pixels, mean, std), normalise(pixels.float(), mean, std))


def test_grey_and_transparent_images_become_rgb() -> None:
    grey = random_image(50, 40).convert("L")
    assert np.array_equal(resize_and_crop(grey, 32), resize_and_crop(grey.convert("RGB"), 32))
    clear = random_image(50, 40).convert("RGBA")
    assert np.array_equal(resize_and_crop(clear, 32), resize_and_crop(random_image(50, 40), 32))


def test_a_long_strip_stays_small() -> None:
    # Resized whole, this strip would be 224 × 13,440,000 pixels.
    strip = Image.new("RGB", (60_000, 1), (10, 200, 30))
    pixels = resize_and_crop(strip, 224)
    assert pixels.shape == (3, 224, 224)
    assert (pixels == np.array([10, 200, 30], dtype=np.uint8)[:, None, None]).all()


def test_a_long_strip_shows_its_middle() -> None:
    strip = np.zeros((2, 200, 3), dtype=np.uint8)
    strip[:, 100:] = 255
    pixels = resize_and_crop(Image.fromarray(strip), 32)
    assert (pixels[:, :, :4] < 40).all()
    assert (pixels[:, :, -4:] > 215).all()
