"""How the images of several sources share the batches of an epoch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evidex.errors import ConfigError, DataError


@dataclass(frozen=True)
class Mix:
    """Sources one after another in a dataset: how many images each has, and how often an epoch shows each of them."""

    counts: tuple[int, ...]
    weights: tuple[float, ...] = (1.0,)
    one_source: bool = False
    """Whether a batch holds images of one source alone, so that nothing is learned by telling sources apart."""

    @property
    def shown(self) -> tuple[int, ...]:
        """How many images of each source an epoch shows."""
        return tuple(round(count * weight) for count, weight in zip(self.counts, self.weights, strict=True))

    @property
    def repeats(self) -> bool:
        """Whether a batch may hold an image twice."""
        return any(weight > 1 for weight in self.weights)

    def steps(self, batch_size: int) -> int:
        """How many whole batches an epoch has; K stays the same in each, the rest waits for the next shuffle."""
        shown = self.shown
        if self.one_source and (few := [place for place, count in enumerate(shown) if count < batch_size]):
            raise ConfigError(
                f"source {few[0] + 1} shows {shown[few[0]]} images in an epoch, fewer than batch_size = {batch_size}; "
                'raise its weight, lower the batch or set data.batches = "mixed"'
            )
        steps = sum(count // batch_size for count in shown) if self.one_source else sum(shown) // batch_size
        if steps == 0:
            raise DataError(f"an epoch shows {sum(shown)} images, fewer than batch_size = {batch_size}; lower it")
        return steps

    def batches(self, batch_size: int, rng: np.random.Generator) -> np.ndarray:
        """The rows (steps, K) of an epoch's batches."""
        steps = self.steps(batch_size)
        if not self.one_source:
            return _cut(self.order(rng), batch_size)
        batches = np.concatenate([_cut(rows[rng.permutation(len(rows))], batch_size) for rows in self._rows(rng)])
        return batches if len(self.counts) == 1 else batches[rng.permutation(steps)]

    def order(self, rng: np.random.Generator) -> np.ndarray:
        """All rows that an epoch shows, shuffled."""
        rows = np.concatenate(self._rows(rng))
        return rows[rng.permutation(len(rows))]

    def _rows(self, rng: np.random.Generator) -> list[np.ndarray]:
        """Of each source, every row as often as its weight says; who is shown once more for a part of 1 is drawn."""
        starts = np.cumsum((0, *self.counts))
        rows = []
        for start, count, shown in zip(starts, self.counts, self.shown, strict=False):
            whole, part = divmod(shown, count)
            drawn = rng.permutation(count)[:part] if part else np.arange(0)
            rows.append(start + np.concatenate([np.tile(np.arange(count), whole), drawn]))
        return rows


def _cut(order: np.ndarray, batch_size: int) -> np.ndarray:
    """``order`` as whole batches (steps, K)."""
    steps = len(order) // batch_size
    return order[: steps * batch_size].reshape(steps, batch_size)
