"""Marked grounds that several kinds share: pitches, tracks, diamonds and courts."""

from __future__ import annotations

import cmath
import math

from evidex.scenes.canvas import Canvas, capsule, oval, rectangle
from evidex.scenes.materials import (
    CLAY,
    LAWN,
    PAINT,
    Material,
    varied,
)

TRACK = CLAY.tinted((164, 84, 68))


def pitch(canvas: Canvas, centre: complex, length: float, width: float, axis: complex) -> None:
    """Draw a football pitch: mown stripes and white lines."""
    dice = canvas.dice
    turf = varied(LAWN, dice, 0.12)._replace(solid=True, mottle=35)
    stripes = dice.whole(7, 12)
    for i in range(stripes):
        at = centre + axis * length * ((i + 0.5) / stripes - 0.5)
        canvas.polygon(rectangle(at, length / stripes + 0.2, width, axis), turf.lit(1.0 + 0.08 * (i % 2)))
    canvas.mark("soccer ball field", rectangle(centre, length, width, axis))
    frame = rectangle(centre, length * 0.92, width * 0.9, axis)
    outline(canvas, frame, 0.6)
    canvas.line((centre - axis * 0.45j * width, centre + axis * 0.45j * width), 0.6, PAINT)
    outline(canvas, oval(centre, width * 0.3, width * 0.3, corners=16), 0.5)
    for end in (-1.0, 1.0):
        box = centre + axis * end * length * 0.4
        outline(canvas, rectangle(box, length * 0.12, width * 0.45, axis), 0.5)


def outline(canvas: Canvas, points: list[complex], width: float, paint: Material = PAINT) -> None:
    canvas.line([*points, points[0]], width, paint)


def running_track(canvas: Canvas, length: float, width: float, surface: Material, lanes: int = 5) -> None:
    canvas.mark("ground track field", capsule(0j, length, width))
    canvas.polygon(capsule(0j, length, width), surface)
    for i in range(1, lanes):
        shrink = 2.4 * i
        outline(canvas, capsule(0j, length - shrink * 2, width - shrink * 2), 0.35, surface.lit(1.3))
    canvas.polygon(
        capsule(0j, length - lanes * 4.8, width - lanes * 4.8), varied(LAWN, canvas.dice, 0.08)._replace(solid=True)
    )


def diamond(canvas: Canvas, home: complex, towards: complex, radius: float, clay: Material) -> None:
    """Draw one baseball field: a quarter circle of grass, the clay infield, bases and foul lines."""
    dice = canvas.dice

    def fan(r: float, spread: float = math.pi / 4) -> list[complex]:
        steps = 18
        return [home, *(home + towards * cmath.rect(r, -spread + 2 * spread * i / steps) for i in range(steps + 1))]

    turf = varied(LAWN, dice, 0.1)._replace(solid=True)
    canvas.mark("baseball diamond", fan(radius))
    canvas.polygon(fan(radius, math.pi / 4 + 0.06), clay)
    canvas.polygon([home + (p - home) * 0.94 for p in fan(radius)], turf)
    bases = radius * 0.36
    canvas.polygon([home - towards * 3, *fan(bases * 1.45)[1:]], clay)
    square = [home + towards * cmath.rect(bases * k, a) for k, a in ((0.2, 0), (0.82, -0.72), (1.24, 0), (0.82, 0.72))]
    canvas.polygon(square, turf.lit(1.05))
    canvas.disc(home + towards * bases * 0.72, radius * 0.035, clay)
    canvas.disc(home, radius * 0.07, clay)
    for side in (-1, 1):
        canvas.line((home, home + towards * cmath.rect(radius * 0.94, side * math.pi / 4)), 0.6, PAINT)


def court(
    canvas: Canvas, centre: complex, length: float, width: float, axis: complex, colour: str, basketball: bool = False
) -> None:
    """Draw a tennis or basketball court with its run-off and lines."""
    surfaces = {"green": (70, 112, 84), "blue": (62, 98, 146), "red": (158, 88, 68)}
    play = Material(surfaces[colour], grain=20, mottle=30)
    rim = Material((64, 104, 70) if colour != "green" else (146, 92, 72), grain=20, mottle=30)
    canvas.polygon(rectangle(centre, length * 1.22, width * 1.4, axis), rim)
    canvas.polygon(rectangle(centre, length, width, axis), play)
    canvas.mark("basketball court" if basketball else "tennis court", rectangle(centre, length, width, axis))
    outline(canvas, rectangle(centre, length, width, axis), 0.6)
    canvas.line((centre - axis * 0.5j * width, centre + axis * 0.5j * width), 0.5, PAINT)
    if basketball:
        outline(canvas, oval(centre, width * 0.35, width * 0.35, corners=12), 0.4)
        return
    canvas.cast_line((centre - axis * 0.58j * width, centre + axis * 0.58j * width), 0.4, 1.5)
    outline(canvas, rectangle(centre, length, width * 0.76, axis), 0.45)
    outline(canvas, rectangle(centre, length * 0.54, width * 0.76, axis), 0.45)
    canvas.line((centre - axis * 0.27 * length, centre + axis * 0.27 * length), 0.45, PAINT)
