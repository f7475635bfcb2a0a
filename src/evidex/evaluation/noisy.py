"""The degraded split: half of the images and their captions as bad weather, sensors and other annotators make them.

Everything is a function of the seed and of an item's place in the split, never of the order in which it is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evidex.degrade.float_images import to_floats, to_picture
from evidex.degrade.image import Degradation, degradation_steps, degrade_image
from evidex.degrade.lexicon import Lexicon
from evidex.errors import InputError

if TYPE_CHECKING:
    from PIL.Image import Image

    from evidex.data.datasets import Dataset
    from evidex.data.records import Record

# First words of each generator's seed, so that split, images and captions never share random numbers.
_SPLIT, _IMAGE, _CAPTION = range(3)


def noisy_half(count: int, seed: int) -> NDArray[np.bool_]:
    """Which of ``count`` images are degraded: exactly half of them, rounded down."""
    if count < 0:
        raise InputError(f"count {count} is negative; give the number of images")
    order = np.argsort(_generator(_SPLIT, seed).random(count), kind="stable")
    mask = np.zeros(count, dtype=np.bool_)
    mask[order[: count // 2]] = True
    return mask


def noisy_image(
    picture: Image, seed: int, index: int, *, severity: float = 1.0, parameters: Degradation | None = None
) -> Image:
    """``picture`` degraded (Eqs. 21–24) as image ``index`` of the split with this ``seed``."""
    rng = _generator(_IMAGE, seed, index)
    return to_picture(degrade_image(to_floats(picture), rng, severity=severity, parameters=parameters or Degradation()))


def noisy_stages(picture: Image, seed: int, index: int, *, severity: float = 1.0) -> tuple[Image, ...]:
    """``picture`` clean and after each of the four steps; the last is what :func:`noisy_image` gives."""
    steps = degradation_steps(to_floats(picture), _generator(_IMAGE, seed, index), severity=severity)
    stages = (steps.clean, steps.hazy, steps.drifted, steps.noisy, steps.striped)
    return tuple(to_picture(stage) for stage in stages)


def noisy_captions(captions: Sequence[str], seed: int, index: int, lexicon: Lexicon) -> tuple[str, ...]:
    """The captions of image ``index`` with phrases exchanged (p = 0.30, at most three a caption)."""
    return tuple(
        lexicon.substitute(caption, _generator(_CAPTION, seed, index, position))
        for position, caption in enumerate(captions)
    )


@dataclass(frozen=True)
class NoisySplit:
    """A dataset of which half is degraded; read it like the dataset itself."""

    dataset: Dataset
    seed: int
    lexicon: Lexicon = field(default_factory=Lexicon.load)
    severity: float = 1.0
    parameters: Degradation = field(default_factory=Degradation)

    def __len__(self) -> int:
        return len(self.dataset.records)

    @property
    def name(self) -> str:
        return f"noisy {self.dataset.name}"

    @property
    def records(self) -> tuple[Record, ...]:
        """The records as they are without degradation."""
        return self.dataset.records

    @property
    def image_of_caption(self) -> NDArray[np.int64]:
        return self.dataset.image_of_caption

    @cached_property
    def noisy(self) -> NDArray[np.bool_]:
        """(images,) which ones are degraded."""
        return noisy_half(len(self), self.seed)

    @cached_property
    def captions(self) -> list[str]:
        """All captions in the dataset's order, those of degraded images with phrases exchanged."""
        return [caption for index in range(len(self)) for caption in self.captions_of(index)]

    @cached_property
    def changed_captions(self) -> NDArray[np.bool_]:
        """(captions,) which ones differ from the dataset's."""
        pairs = zip(self.captions, self.dataset.captions, strict=True)
        return np.array([noisy != clean for noisy, clean in pairs], dtype=np.bool_)

    def captions_of(self, index: int) -> tuple[str, ...]:
        captions = self.dataset.records[index].captions
        return noisy_captions(captions, self.seed, index, self.lexicon) if self.noisy[index] else captions

    def open_image(self, index: int) -> Image:
        picture = self.dataset.open_image(index)
        if not self.noisy[index]:
            return picture
        return noisy_image(picture, self.seed, index, severity=self.severity, parameters=self.parameters)


def _generator(purpose: int, seed: int, *place: int) -> np.random.Generator:
    if seed < 0:
        raise InputError(f"seed {seed} is negative; give a whole number of at least 0")
    return np.random.default_rng([purpose, seed, *place])
