"""Open ground and what grows on it: trees in clumps, rows and scattered, and the traces time leaves."""

from __future__ import annotations

from evidex.scenes.canvas import Canvas, blob
from evidex.scenes.materials import (
    RGB,
    SOIL,
    Material,
    mixed,
    scaled,
)


def grove(canvas: Canvas, outline_centre: complex, radius: float, spacing: float, size: float = 3.6) -> int:
    """Plant a clump of trees and return how many."""
    dice = canvas.dice
    before = len(canvas.trees)
    for _ in range(int((radius / spacing) ** 2 * 3.0)):
        z = outline_centre + dice.direction() * radius * dice.random() ** 0.6
        canvas.tree(z, size * dice.between(0.65, 1.3))
    return len(canvas.trees) - before


def avenue(canvas: Canvas, start: complex, end: complex, spacing: float, size: float = 3.0) -> None:
    """Plant a row of trees."""
    dice = canvas.dice
    steps = max(1, int(abs(end - start) / spacing))
    for i in range(steps + 1):
        jitter = complex(dice.between(-0.8, 0.8), dice.between(-0.8, 0.8))
        if dice.chance(0.9):
            canvas.tree(start + (end - start) * i / steps + jitter, size * dice.between(0.75, 1.25))


def scatter(canvas: Canvas, count: int, size: float = 3.4, rgb: RGB | None = None) -> None:
    """Plant trees anywhere that is free, in loose clumps."""
    dice = canvas.dice
    left = count
    while left > 0:
        heart = complex(dice.between(-150, 150), dice.between(-150, 150))
        for _ in range(min(left, dice.whole(1, 9))):
            left -= 1
            spread = complex(dice.between(-16, 16), dice.between(-16, 16))
            canvas.tree(heart + spread, size * dice.between(0.6, 1.35), rgb)


def lay(canvas: Canvas, ground: Material, *, trails: bool = True) -> None:
    """Cover everything with ``ground`` and, where it is open land, with what time leaves on it."""
    canvas.fill(ground)
    if not ground.solid:
        _wear(canvas, ground, trails)


def _wear(canvas: Canvas, ground: Material, trails: bool) -> None:
    """Give open ground the traces that real ground has: bare patches, trodden trails, shrubs."""
    dice = canvas.dice
    for _ in range(dice.whole(2, 6)):
        spot = complex(dice.between(-120, 120), dice.between(-120, 120))
        other = mixed(ground.rgb, dice.pick((SOIL.rgb, (70, 84, 50), (140, 134, 100))), dice.between(0.08, 0.3))
        canvas.polygon(blob(spot, dice.between(12, 50), dice, 0.6), ground.tinted(other))
    for _ in range(dice.whole(0, 2) if trails else 0):
        axis, bow = dice.direction(), dice.between(-30, 30)
        start = axis * 1j * dice.between(-90, 90)
        trail = [start + axis * complex(x, bow * (x / 160) ** 2) for x in range(-160, 161, 32)]
        canvas.line(trail, dice.between(0.8, 2.2), ground.tinted(mixed(ground.rgb, SOIL.rgb, 0.55)))
    leaf = mixed(canvas.season.crown, ground.rgb, 0.3)
    for _ in range(dice.whole(2, 12)):
        heart = complex(dice.between(-120, 120), dice.between(-120, 120))
        spread = dice.between(6, 26)
        for _ in range(dice.whole(3, 12)):
            spot = heart + complex(dice.between(-spread, spread), dice.between(-spread, spread))
            canvas.disc(spot, dice.between(0.5, 1.3), ground.tinted(scaled(leaf, dice.between(0.7, 1.1))))
