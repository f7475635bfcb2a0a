"""Which pairs make up a step: a function of the seed, the epoch and the step, and of nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from evidex.data.datasets import Dataset
from evidex.errors import DataError


@dataclass(frozen=True)
class Batch:
    """One step's pairs: image rows (K,), and for each of the m pairings the captions' rows (m, K)."""

    step: int
    images: np.ndarray
    captions: np.ndarray


@dataclass(frozen=True)
class Sentences:
    """The distinct sentences of a split, and which one each caption is."""

    texts: list[str]
    of_caption: np.ndarray

    @staticmethod
    def of(captions: list[str]) -> Sentences:
        index: dict[str, int] = {}
        of_caption = np.array([index.setdefault(text, len(index)) for text in captions], dtype=np.int64)
        return Sentences(list(index), of_caption)


def spread(count: int, wanted: int) -> np.ndarray:
    """Return up to ``wanted`` places, evenly spread over ``count``."""
    return np.unique(np.linspace(0, count - 1, min(wanted, count)).astype(np.int64))


def steps_per_epoch(dataset: Dataset, batch_size: int) -> int:
    """Return how many whole batches an epoch has; K stays the same in each, the rest waits for the next shuffle."""
    steps = len(dataset) // batch_size
    if steps == 0:
        raise DataError(
            f"split '{dataset.split}' has {len(dataset)} images, fewer than batch_size = {batch_size}; lower it"
        )
    return steps


def epoch_batches(dataset: Dataset, *, batch_size: int, pairings: int, seed: int, epoch: int) -> Iterator[Batch]:
    """Yield the batches of ``epoch``: each image once, with ``pairings`` of its captions, distinct if it can."""
    rng = np.random.default_rng([seed, epoch])
    order = rng.permutation(len(dataset))
    starts = np.searchsorted(dataset.image_of_caption, np.arange(len(dataset) + 1))
    steps = steps_per_epoch(dataset, batch_size)
    for index in range(steps):
        images = order[index * batch_size : (index + 1) * batch_size]
        counts = starts[images + 1] - starts[images]
        first = (rng.random(batch_size) * counts).astype(np.int64)
        offsets = (first[None] + np.arange(pairings)[:, None]) % counts
        yield Batch(epoch * steps + index, images, starts[images] + offsets)


def step_generator(seed: int, step: int) -> torch.Generator:
    """Return the generator of everything random inside ``step``."""
    return torch.Generator().manual_seed(int(np.random.SeedSequence([seed, step]).generate_state(1, np.uint64)[0] >> 1))
