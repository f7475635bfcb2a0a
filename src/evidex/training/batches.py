"""Which pairs make up a step: a function of the seed, the epoch and the step, and of nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from evidex.data.datasets import Dataset
from evidex.training.mix import Mix


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


def epoch_batches(
    dataset: Dataset,
    *,
    batch_size: int,
    pairings: int,
    seed: int,
    epoch: int,
    mix: Mix | None = None,
    each: bool = False,
) -> Iterator[Batch]:
    """Yield the batches of ``epoch``: each image once, or as ``mix`` says, with ``pairings`` of its captions.

    The captions of an image in one batch are distinct if they can be. With ``each``, an image that is shown again comes
    with its next caption, so that a ``mix`` that shows it as often as it has captions shows every pair once.
    """
    rng = np.random.default_rng([seed, epoch])
    batches = (mix or Mix((len(dataset),))).batches(batch_size, rng)
    starts = np.searchsorted(dataset.image_of_caption, np.arange(len(dataset) + 1))
    counts = starts[1:] - starts[:-1]
    turn = (rng.random(len(dataset)) * counts).astype(np.int64) if each else None
    for index, images in enumerate(batches):
        drawn = rng.random(batch_size) * counts[images]
        first = drawn.astype(np.int64) if turn is None else _turns(images, turn)
        offsets = (first[None] + np.arange(pairings)[:, None]) % counts[images]
        yield Batch(epoch * len(batches) + index, images, starts[images] + offsets)


def _turns(images: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """The next caption of each of ``images``, so that an image that is shown again comes with another one."""
    first = np.empty(len(images), dtype=np.int64)
    for place, image in enumerate(images):
        first[place] = turn[image]
        turn[image] += 1
    return first


def step_generator(seed: int, step: int) -> torch.Generator:
    """Return the generator of everything random inside ``step``."""
    return torch.Generator().manual_seed(int(np.random.SeedSequence([seed, step]).generate_state(1, np.uint64)[0] >> 1))
