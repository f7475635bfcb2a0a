"""The places that stand out in a map of likeness."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evidex.data.footprints import Window
from evidex.locating.heat import Heat

_HALF = 0.5
_LEVEL = 0.99
"""Of its height: ground that is as high as a top, but for what one window more or less says of it."""


@dataclass(frozen=True)
class Spot:
    """A place where the map is higher than around it, in pixels of the scene."""

    x: float
    y: float
    score: float
    """Likeness there."""
    box: Window
    """As far as it reaches to each side without falling to half of that."""


def spots_of(heat: Heat, *, least: float, apart: int, most: int) -> list[Spot]:
    """The highest places first: at least ``least`` and half of the best.

    They lie ``apart`` pixels from each other, and none in the box of a higher one: one place is told once.
    """
    values = np.nan_to_num(heat.values, nan=0.0)
    bar = max(least, _HALF * float(values.max(initial=0.0)))
    left = np.where(_tops(values) & (values >= bar) & (values > 0), values, 0.0)
    radius = max(1, apart // heat.cell)
    spots: list[Spot] = []
    while len(spots) < most and left.max(initial=0.0) > 0:
        row, column = (int(place) for place in np.unravel_index(int(left.argmax()), left.shape))
        spot = replace(_spot(heat, values, *_middle(values, row, column)), score=float(values[row, column]))
        spots.append(spot)
        left[_cells(spot.box.y, spot.box.height, heat.cell), _cells(spot.box.x, spot.box.width, heat.cell)] = 0.0
        left[max(0, row - radius + 1) : row + radius, max(0, column - radius + 1) : column + radius] = 0.0
    return spots


def _tops(values: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Cells that none of their eight neighbours is above."""
    framed = np.pad(values, 1, constant_values=-1.0)
    rows, columns = values.shape
    top = np.ones(values.shape, np.bool_)
    for down in range(3):
        for across in range(3):
            top &= values >= framed[down : down + rows, across : across + columns]
    return top


def _middle(values: NDArray[np.float32], row: int, column: int) -> tuple[int, int]:
    """The middle of the level ground that a top is part of: at the edges of a scene few windows say all of it."""
    level = _LEVEL * float(values[row, column])
    for _ in range(2):
        x0, x1 = _reach(values[row], column, level)
        column = (x0 + x1 - 1) // 2
        y0, y1 = _reach(values[:, column], row, level)
        row = (y0 + y1 - 1) // 2
    return row, column


def _spot(heat: Heat, values: NDArray[np.float32], row: int, column: int) -> Spot:
    score, cell = float(values[row, column]), heat.cell
    x0, x1 = _reach(values[row], column, _HALF * score)
    y0, y1 = _reach(values[:, column], row, _HALF * score)
    x, y = x0 * cell, y0 * cell
    box = Window(x, y, min(x1 * cell, heat.width) - x, min(y1 * cell, heat.height) - y)
    middle_x, middle_y = (column + 0.5) * cell, (row + 0.5) * cell
    return Spot(min(middle_x, heat.width - 0.5), min(middle_y, heat.height - 0.5), score, box)


def _cells(start: int, length: int, cell: int) -> slice:
    return slice(start // cell, -(-(start + length) // cell))


def _reach(line: NDArray[np.float32], place: int, level: float) -> tuple[int, int]:
    """The cells around ``place``, from the first to behind the last, down to ``level``."""
    low = np.flatnonzero(line[:place] < level)
    high = np.flatnonzero(line[place:] < level)
    return (int(low[-1]) + 1 if len(low) else 0), (place + int(high[0]) if len(high) else len(line))
