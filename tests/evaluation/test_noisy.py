from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from evidex.data.datasets import Dataset, load_dataset
from evidex.degrade import Lexicon, degrade_image
from evidex.errors import InputError
from evidex.evaluation.noisy import NoisySplit, noisy_captions, noisy_half, noisy_image

CAPTION = "many boats are in a harbor near a bridge with green trees ."


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    rng = np.random.default_rng(0)
    images = []
    (tmp_path / "images").mkdir()
    for index in range(9):
        name = f"{index}.png"
        Image.fromarray(rng.integers(0, 256, (16, 20, 3), dtype=np.uint8)).save(tmp_path / "images" / name)
        captions = [CAPTION, CAPTION, f"xyzzy {index}"]
        images.append({"filename": name, "split": "test", "label": None, "captions": captions})
    (tmp_path / "captions.json").write_text(json.dumps({"dataset": "tiny", "images": images}))
    return load_dataset(tmp_path, "test")


@pytest.mark.parametrize("count", [0, 1, 2, 7, 1093, 1094])
def test_exactly_half_is_noisy(count: int) -> None:
    mask = noisy_half(count, 0)
    assert mask.shape == (count,)
    assert mask.dtype == np.bool_
    assert mask.sum() == count // 2


def test_the_split_is_a_function_of_the_seed() -> None:
    np.testing.assert_array_equal(noisy_half(100, 3), noisy_half(100, 3))
    assert not np.array_equal(noisy_half(100, 3), noisy_half(100, 4))
    assert noisy_half(12, 0).astype(int).tolist() == [0, 1, 1, 1, 0, 0, 1, 0, 1, 0, 0, 1]


def test_every_image_is_as_likely_as_the_others() -> None:
    chosen = np.sum([noisy_half(20, seed) for seed in range(1000)], axis=0)
    assert np.abs(chosen - 500).max() < 4.9 * np.sqrt(250)


def test_half_of_the_images_and_their_captions_change(dataset: Dataset) -> None:
    split = NoisySplit(dataset, seed=1)
    assert len(split) == 9
    assert split.noisy.sum() == 4
    assert len(split.captions) == len(dataset.captions)
    for index in range(9):
        same = np.array_equal(np.asarray(split.open_image(index)), np.asarray(dataset.open_image(index)))
        assert same == (not split.noisy[index])
    owners = split.image_of_caption
    assert not split.changed_captions[~split.noisy[owners]].any()
    assert split.changed_captions.any()
    unmatched = np.array(["xyzzy" in caption for caption in dataset.captions])
    assert not split.changed_captions[unmatched].any()


def test_items_do_not_depend_on_the_order_of_asking(dataset: Dataset) -> None:
    forward, backward = NoisySplit(dataset, seed=2), NoisySplit(dataset, seed=2)
    images = {index: np.asarray(forward.open_image(index)) for index in range(9)}
    captions = [forward.captions_of(index) for index in range(9)]
    for index in reversed(range(9)):
        np.testing.assert_array_equal(np.asarray(backward.open_image(index)), images[index])
        assert backward.captions_of(index) == captions[index]
    assert forward.captions == [caption for group in captions for caption in group]


def test_noisy_image_is_the_degraded_image_in_eight_bits(dataset: Dataset) -> None:
    picture = dataset.open_image(0)
    noisy = np.asarray(noisy_image(picture, 7, 5))
    rng = np.random.default_rng([1, 7, 5])
    expected = degrade_image(np.asarray(picture, dtype=np.float64) / 255, rng)
    assert np.abs(noisy - expected * 255).max() <= 0.5 + 1e-4
    assert not np.array_equal(noisy, np.asarray(noisy_image(picture, 7, 6)))
    assert not np.array_equal(noisy, np.asarray(noisy_image(picture, 8, 5)))
    np.testing.assert_array_equal(np.asarray(noisy_image(picture, 7, 5, severity=0.0)), np.asarray(picture))


def test_equal_captions_of_one_image_are_changed_independently() -> None:
    lexicon = Lexicon.load()
    pairs = [noisy_captions([CAPTION, CAPTION], 0, index, lexicon) for index in range(50)]
    assert sum(first != second for first, second in pairs) > 25
    changed = [text for pair in pairs for text in pair if text != CAPTION]
    assert 50 < len(changed) < 100  # seven matches at p = 0.3: 92 of 100 are expected to change


def test_negative_numbers_are_refused() -> None:
    with pytest.raises(InputError, match="seed"):
        noisy_half(10, -1)
    with pytest.raises(InputError, match="count"):
        noisy_half(-1, 0)
