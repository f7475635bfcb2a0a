"""The 64 bits of a picture survive encoding and resizing, and tell pictures apart."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

from evidex.data.perceptual_hash import BITS, perceptual_hash
from tests.retrieval.archive import picture


def _differ(one: int, other: int) -> int:
    return (one ^ other).bit_count()


def test_it_stays_nearly_the_same_after_encoding_and_resizing() -> None:
    for seed in range(5):
        original = picture(seed, (96, 80))
        stream = io.BytesIO()
        original.save(stream, "JPEG", quality=50)
        again = [Image.open(stream).convert("RGB"), original.resize((48, 40)), original.resize((200, 160))]
        assert max(_differ(perceptual_hash(original), perceptual_hash(one)) for one in again) <= 4


def test_different_pictures_differ_in_many_bits() -> None:
    hashes = [perceptual_hash(picture(seed)) for seed in range(20)]
    assert min(_differ(a, b) for i, a in enumerate(hashes) for b in hashes[:i]) > 12


def test_it_is_the_cosine_transform_by_its_definition() -> None:
    grey = np.random.default_rng(0).integers(0, 256, (32, 32), dtype=np.uint8)
    strength = {}
    for i in range(12):
        for j in range(12):
            y, x = np.cos(np.pi * i * (2 * np.arange(32) + 1) / 64), np.cos(np.pi * j * (2 * np.arange(32) + 1) / 64)
            strength[i + j, i, j] = float((grey * y[:, None] * x).sum())
    lowest = [strength[place] for place in sorted(strength)[1 : BITS + 1]]
    expected = sum(1 << bit for bit, value in enumerate(lowest) if value > np.median(lowest))
    assert perceptual_hash(Image.fromarray(grey)) == expected


def test_pictures_without_anything_on_them_are_told_apart_by_their_colour() -> None:
    colours = ["navy", "white", "black", "pink", "#14285a", "#14285b"]
    hashes = [perceptual_hash(Image.new("RGB", (7, 3), colour)) for colour in colours]
    assert all(found.bit_length() <= BITS for found in hashes)
    assert min(_differ(a, b) for i, a in enumerate(hashes) for b in hashes[:i]) > 12
    assert perceptual_hash(Image.new("RGB", (90, 40), "navy")) == hashes[0]
