"""A map of likeness: what many windows say about each place, blended.

Within one size a place takes the mean of the windows over it, weighted towards their middles; over the sizes the plain
mean. A window that shows nothing alike says 0 and pulls the mean down as one that does pulls it up: so what is absent
counts, and a single window that is wrong makes no place.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evidex.data.footprints import Window

_CELLS_IN_WINDOW = 8
_MOST_CELLS = 2048
_LEAST_WEIGHT = 1e-3
_STEPS = 1024
"""Likeness is given out in steps of one in so many: finer ones mean nothing, and would fill disks."""

Values = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Heat:
    """Likeness in [0, 1] for squares of ``cell`` pixels; NaN where no window had anything to see."""

    values: Values
    """(rows, columns)"""
    cell: int
    width: int
    height: int

    @property
    def peak(self) -> float:
        """The largest value; 0 where there is none."""
        return float(np.nanmax(self.values)) if np.isfinite(self.values).any() else 0.0

    def flattened(self) -> Heat:
        """The same where nothing is: 0 wherever there was something to see."""
        return replace(self, values=np.where(np.isfinite(self.values), np.float32(0), self.values))

    def block(self, window: Window) -> Values:
        """(height, width) of ``window`` at the scene's own pixels, drawn smoothly between the cells' middles."""
        rows = _between(window.y, window.height, self.cell, self.values.shape[0])
        columns = _between(window.x, window.width, self.cell, self.values.shape[1])
        upper, lower = self.values[rows.low], self.values[rows.high]
        lines = upper + (lower - upper) * rows.share[:, None]
        left, right = lines[:, columns.low], lines[:, columns.high]
        drawn = left + (right - left) * columns.share[None, :]
        return np.asarray(np.rint(drawn * _STEPS) / _STEPS, np.float32)


class Blend:
    """Takes windows of one size after another; holds a few numbers a cell, whatever the size of the scene."""

    def __init__(self, width: int, height: int, smallest: int) -> None:
        self.cell = max(1, smallest // _CELLS_IN_WINDOW, -(-max(width, height) // _MOST_CELLS))
        self._width, self._height = width, height
        shape = -(-height // self.cell), -(-width // self.cell)
        self._total, self._sizes = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
        self._sum, self._weight = np.zeros(shape, np.float32), np.zeros(shape, np.float32)

    def add(self, windows: Iterable[Window], likeness: NDArray[np.floating]) -> None:
        """Take windows of the present size."""
        for window, value in zip(windows, likeness.tolist(), strict=True):
            rows, down = _weights(window.y, window.height, self.cell, self._height)
            columns, across = _weights(window.x, window.width, self.cell, self._width)
            weight = down[:, None] * across[None, :]
            self._weight[rows, columns] += weight
            self._sum[rows, columns] += value * weight

    def end_size(self) -> None:
        """The windows of one size are all there; what follows is of another."""
        seen = self._weight > 0
        self._total[seen] += self._sum[seen] / self._weight[seen]
        self._sizes[seen] += 1
        self._sum[:], self._weight[:] = 0, 0

    def heat(self) -> Heat:
        with np.errstate(invalid="ignore"):
            values = np.where(self._sizes > 0, self._total / np.maximum(self._sizes, 1), np.nan)
        return Heat(values.astype(np.float32), self.cell, self._width, self._height)


def _weights(start: int, length: int, cell: int, side: int) -> tuple[slice, Values]:
    """The cells along one side whose middles lie in a window, and how much it says about each: most in its middle.

    The last cell may stand out over the edge, middle and all; it belongs to the windows that end there.
    """
    first = max(0, -(-(2 * start - cell) // (2 * cell)))
    last = max(first + 1, -(-(2 * (start + length) - cell) // (2 * cell)))
    if start + length >= side:
        last = -(-side // cell)
    middles = (np.arange(first, last) + 0.5) * cell
    inside = np.clip((middles - start) / length, 0.0, 1.0)
    return slice(first, last), np.maximum(np.sin(np.pi * inside) ** 2, _LEAST_WEIGHT).astype(np.float32)


@dataclass(frozen=True, eq=False)
class _Between:
    low: NDArray[np.intp]
    high: NDArray[np.intp]
    share: Values


def _between(start: int, length: int, cell: int, cells: int) -> _Between:
    """For each pixel along one side the cells whose middles it lies between, and how far from the first."""
    place = np.clip((np.arange(start, start + length) + 0.5) / cell - 0.5, 0, cells - 1)
    low = np.floor(place).astype(np.intp)
    return _Between(low, np.minimum(low + 1, cells - 1), (place - low).astype(np.float32))
