"""The windows through which a scene is looked at: squares of several sizes, each size covering it with overlap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evidex.data.footprints import Window
from evidex.data.tiles import starts
from evidex.errors import ImageError, ImageTooLargeError, InputError

LARGEST = 512
"""Pixels of the largest window: that of the tiles of a gallery."""
SMALLEST = 64
LEAST_SIDE = 16
"""Of a scene, and of a window that is asked for."""
_SCALES = 3
_MOST_WINDOWS = 1_000_000


@dataclass(frozen=True)
class Scale:
    """All windows of one size, row by row; neighbours share half, and the last ones end at the edge."""

    size: int
    xs: tuple[int, ...]
    ys: tuple[int, ...]
    width: int
    height: int

    def __len__(self) -> int:
        return len(self.xs) * len(self.ys)

    def __iter__(self) -> Iterator[Window]:
        wide, high = min(self.size, self.width), min(self.size, self.height)
        return (Window(x, y, wide, high) for y in self.ys for x in self.xs)


def default_sizes(width: int, height: int) -> tuple[int, ...]:
    """A tile of a gallery or all of a smaller scene, then its halves as long as they show something."""
    largest = max(1, min(width, height, LARGEST))
    halves = [largest >> step for step in range(_SCALES)]
    return tuple(size for step, size in enumerate(halves) if step == 0 or size >= SMALLEST)


def scales_of(width: int, height: int, sizes: Sequence[int] | None = None) -> list[Scale]:
    """The windows over a scene, largest first; ``sizes`` in pixels, or those that suit it."""
    if min(width, height) < LEAST_SIDE:
        raise ImageError(f"{width}×{height} pixels show too little to look into; give at least {LEAST_SIDE} a side")
    chosen = sorted(set(default_sizes(width, height) if sizes is None else sizes), reverse=True)
    if not chosen or chosen[-1] < 1:
        raise InputError(f"window {chosen[-1] if chosen else ''} is no size; give pixels, e.g. 512,256,128")
    scales = [Scale(size, _starts(width, size), _starts(height, size), width, height) for size in chosen]
    count = sum(map(len, scales))
    if count > _MOST_WINDOWS:
        raise ImageTooLargeError(
            f"{width}×{height} pixels would take {count} windows of {chosen[-1]}; choose larger with --window"
        )
    return scales


def _starts(side: int, size: int) -> tuple[int, ...]:
    return tuple(starts(side, size, size // 2))
