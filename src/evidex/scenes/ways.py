"""Roads, rails, rivers and shores: what is longer than the image."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from evidex.scenes.canvas import REACH, Canvas, blob
from evidex.scenes.materials import (
    ASPHALT,
    BALLAST,
    PAINT,
    PATH,
    RAIL,
    SOIL,
    WATER,
    WATER_COLOURS,
    YELLOW_PAINT,
    Material,
    mixed,
    varied,
)
from evidex.scenes.vehicles import car, truck


def road(canvas: Canvas, points: Sequence[complex], width: float, traffic: float = 0.3, kerb: bool = True) -> int:
    """Draw a road with lane marks and traffic; return the number of cars whose middle is in the image."""
    dice = canvas.dice
    surface = varied(ASPHALT, dice, 0.14)
    if kerb:
        canvas.line(points, width + 3.0, varied(PATH, dice, 0.08))
    canvas.line(points, width, surface)
    faded = PAINT.tinted(mixed(surface.rgb, PAINT.rgb, 0.7))
    lanes = 2 if width < 13 else 4
    _dashes(canvas, points, 0.0, faded if lanes == 2 else YELLOW_PAINT, solid=lanes == 4)
    if lanes == 4:
        _dashes(canvas, points, width / 4.0, faded)
        _dashes(canvas, points, -width / 4.0, faded)
    cars = 0
    for lane in range(lanes):
        offset = ((lane + 0.5) / lanes - 0.5) * width
        forward = 1.0 if lane < lanes / 2 else -1.0
        for at, axis in stations(points, 13.0):
            if dice.chance(traffic * 0.55) and canvas.near_view(at, 8.0):
                spot = at + axis * 1j * offset + axis * dice.between(-3, 3)
                if dice.chance(0.12):
                    truck(canvas, spot, axis * forward)
                else:
                    car(canvas, spot, axis * forward)
                cars += canvas.in_view(spot)
    return cars


def stations(points: Sequence[complex], spacing: float) -> list[tuple[complex, complex]]:
    """Return places along a polyline, ``spacing`` apart, each with the direction of travel."""
    found = []
    rest = spacing / 2.0
    for a, b in itertools.pairwise(points):
        length = abs(b - a)
        if length == 0.0:
            continue
        axis = (b - a) / length
        while rest <= length:
            found.append((a + axis * rest, axis))
            rest += spacing
        rest -= length
    return found


def _dashes(canvas: Canvas, points: Sequence[complex], offset: float, paint: Material, solid: bool = False) -> None:
    for at, axis in stations(points, 3.0 if solid else 7.0):
        if canvas.near_view(at, 6.0):
            middle = at + axis * 1j * offset
            canvas.line((middle - axis * 1.6, middle + axis * 1.6), 0.45, paint)


def straight(through: complex, axis: complex) -> list[complex]:
    """Return a line through a point that leaves the image on both sides."""
    return [through - axis * 2 * REACH, through + axis * 2 * REACH]


def winding(canvas: Canvas, through: complex, axis: complex, bend: float, steps: int = 40) -> list[complex]:
    """Return a curved line along ``axis`` that swings up to about ``bend`` units to either side."""
    dice = canvas.dice
    waves = [(dice.between(0.006, 0.016) * k, dice.between(0.0, 6.3), bend / k) for k in (1, 2)]
    base = sum(a * math.sin(p) for _, p, a in waves)
    points = []
    for i in range(steps + 1):
        along = (i / steps * 2.0 - 1.0) * 1.15 * REACH
        swing = sum(a * math.sin(f * along + p) for f, p, a in waves) - base
        points.append(through + axis * complex(along, swing))
    return points


def railway(canvas: Canvas, points: Sequence[complex], ballast: bool = True) -> None:
    """Draw one track: ballast, sleepers, two rails."""
    if ballast:
        canvas.line(points, 6.0, varied(BALLAST, canvas.dice, 0.06))
    sleeper = BALLAST.lit(0.72)
    for at, axis in stations(points, 2.2):
        if canvas.near_view(at, 4.0):
            canvas.line((at - axis * 1.6j, at + axis * 1.6j), 0.7, sleeper)
    for offset in (-0.85, 0.85):
        canvas.line([p + 1j * offset * _normal(points, i) for i, p in enumerate(points)], 0.45, RAIL.lit(1.25))


def _normal(points: Sequence[complex], i: int) -> complex:
    a, b = points[max(0, i - 1)], points[min(len(points) - 1, i + 1)]
    return (b - a) / (abs(b - a) or 1.0)


def water(canvas: Canvas, colour: str) -> Material:
    return varied(WATER.tinted(WATER_COLOURS[colour]), canvas.dice, 0.12)


def river(canvas: Canvas, points: Sequence[complex], width: float, colour: str) -> None:
    """Draw a river with a bank of soil, shallows and deeper middle."""
    dice = canvas.dice
    deep = water(canvas, colour)
    bank = varied(SOIL, dice, 0.12)._replace(solid=True)
    left, right = [], []
    for i, p in enumerate(points):
        normal = 1j * _normal(points, i)
        left.append(p + normal * width * dice.between(0.46, 0.54))
        right.append(p - normal * width * dice.between(0.46, 0.54))
    outline = left + right[::-1]
    canvas.line(points, width + dice.between(3.0, 9.0), bank)
    canvas.polygon(outline, deep.tinted(mixed(deep.rgb, bank.rgb, 0.25)))
    canvas.line(points, width * 0.86, deep)


def pond(canvas: Canvas, centre: complex, radius: float, colour: str, roughness: float = 0.3) -> list[complex]:
    """Draw a pond with a muddy edge and return its outline."""
    dice = canvas.dice
    deep = water(canvas, colour)
    outline = blob(centre, radius, dice, roughness)
    edge = mixed(canvas.season.ground.rgb, SOIL.rgb, dice.random())
    canvas.polygon([centre + (p - centre) * 1.09 for p in outline], SOIL.tinted(edge)._replace(solid=True))
    canvas.polygon(outline, deep.tinted(mixed(deep.rgb, edge, 0.2)))
    canvas.polygon([centre + (p - centre) * 0.93 for p in outline], deep)
    return outline
