"""Fast scalar draws: a scene asks for thousands of single numbers, each from the one generator it was given."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")
_BLOCK = 2048


class Dice:
    """Uniform numbers fetched from a generator in blocks, because a scalar call to numpy costs a microsecond."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._pool: list[float] = []

    def random(self) -> float:
        if not self._pool:
            self._pool = self._rng.random(_BLOCK).tolist()
        return self._pool.pop()

    def between(self, low: float, high: float) -> float:
        return low + (high - low) * self.random()

    def whole(self, low: int, high: int) -> int:
        """Return an integer from ``low`` to ``high``, both included."""
        return low + int(self.random() * (high - low + 1))

    def chance(self, probability: float) -> bool:
        return self.random() < probability

    def pick(self, options: Sequence[T]) -> T:
        return options[int(self.random() * len(options))]

    def sample(self, options: Sequence[T], count: int) -> list[T]:
        """Return ``count`` different places of ``options``, in random order."""
        rest = list(options)
        return [rest.pop(int(self.random() * len(rest))) for _ in range(min(count, len(rest)))]

    def direction(self) -> complex:
        angle = self.between(0.0, 2.0 * math.pi)
        return complex(math.cos(angle), math.sin(angle))

    def normals(self, shape: tuple[int, ...]) -> np.ndarray:
        return self._rng.standard_normal(shape, dtype=np.float32)
