"""Which images make up the batches of an epoch, of one source and of several."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from evidex.config import Config
from evidex.data.datasets import Dataset, load_dataset
from evidex.errors import ConfigError, DataError
from evidex.training.batches import Batch, epoch_batches
from evidex.training.mix import Mix


def _batches_of_one_source(dataset: Dataset, size: int, pairings: int, seed: int, epoch: int) -> list[Batch]:
    """What runs of before there were several sources have seen, written out."""
    rng = np.random.default_rng([seed, epoch])
    order = rng.permutation(len(dataset))
    starts = np.searchsorted(dataset.image_of_caption, np.arange(len(dataset) + 1))
    steps = len(dataset) // size
    batches = []
    for index in range(steps):
        images = order[index * size : (index + 1) * size]
        counts = starts[images + 1] - starts[images]
        first = (rng.random(size) * counts).astype(np.int64)
        offsets = (first[None] + np.arange(pairings)[:, None]) % counts
        batches.append(Batch(epoch * steps + index, images, starts[images] + offsets))
    return batches


@pytest.mark.parametrize("one_source", [False, True])
def test_a_single_source_gives_the_batches_it_always_gave(config: Config, one_source: bool) -> None:
    dataset = load_dataset(Path(config.data.path), "train")
    mix = Mix((len(dataset),), one_source=one_source)
    for epoch in (0, 3):
        expected = _batches_of_one_source(dataset, 8, 2, 5, epoch)
        found = list(epoch_batches(dataset, batch_size=8, pairings=2, seed=5, epoch=epoch, mix=mix))
        assert len(found) == len(expected)
        for ours, theirs in zip(found, expected, strict=True):
            assert ours.step == theirs.step
            np.testing.assert_array_equal(ours.images, theirs.images)
            np.testing.assert_array_equal(ours.captions, theirs.captions)


def _source(rows: np.ndarray, mix: Mix) -> np.ndarray:
    return np.searchsorted(np.cumsum(mix.counts), rows, side="right")


@pytest.mark.parametrize("seed", range(4))
def test_an_image_is_shown_as_often_as_its_source_weighs(seed: int) -> None:
    mix = Mix((40, 24, 10), (1.0, 2.5, 0.5))
    assert mix.shown == (40, 60, 5)
    assert mix.repeats
    shown = Counter(mix.batches(5, np.random.default_rng(seed)).ravel().tolist())
    assert sum(shown.values()) == 105
    assert {shown[row] for row in range(40)} == {1}
    assert sorted(shown[row] for row in range(40, 64)) == [2] * 12 + [3] * 12
    assert sorted(shown[row] for row in range(64, 74)) == [0] * 5 + [1] * 5
    other = Counter(mix.batches(5, np.random.default_rng(seed + 10)).ravel().tolist())
    assert other != shown, "who is shown once more changes from epoch to epoch"
    assert not Mix((40, 24), (1.0, 0.5)).repeats


def test_mixed_batches_hold_all_sources_and_those_of_one_source_one() -> None:
    counts = (300, 200)
    mixed, apart = (
        Mix(counts, (1.0, 1.0), one_source).batches(20, np.random.default_rng(0)) for one_source in (False, True)
    )
    assert mixed.shape == apart.shape == (25, 20)
    mix = Mix(counts, (1.0, 1.0))
    assert all(len(set(_source(batch, mix).tolist())) == 2 for batch in mixed)
    of_batch = [set(_source(batch, mix).tolist()) for batch in apart]
    assert all(len(sources) == 1 for sources in of_batch)
    assert all({source} in of_batch[:8] for source in (0, 1)), "the sources take turns at random"
    assert len(set(apart.ravel().tolist())) == 500


def test_a_source_that_fills_no_batch_is_refused_where_batches_are_of_one_source() -> None:
    with pytest.raises(ConfigError, match="source 2 shows 30 images in an epoch, fewer than batch_size = 64"):
        Mix((300, 30), (1.0, 1.0), True).steps(64)
    assert Mix((300, 30), (1.0, 1.0)).steps(64) == 5
    with pytest.raises(DataError, match="shows 30 images, fewer than batch_size = 64"):
        Mix((30,)).steps(64)
