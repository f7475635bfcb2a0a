"""Cars, trucks, planes, ships and trains, and the rows cars are parked in."""

from __future__ import annotations

from evidex.scenes.canvas import Canvas, rectangle
from evidex.scenes.materials import (
    ASPHALT,
    CAR_COLOURS,
    GLASS,
    HULL,
    PAINT,
    ROOF,
    Material,
    mixed,
    roof,
    varied,
)


def car(canvas: Canvas, centre: complex, axis: complex, scale: float = 1.0) -> None:
    paint = ROOF._replace(rgb=canvas.dice.pick(CAR_COLOURS), grain=8, mottle=0)
    body = rectangle(centre, 4.6 * scale, 2.1 * scale, axis)
    canvas.mark("small vehicle", body)
    canvas.cast(body, 1.3)
    canvas.polygon(body, paint)
    canvas.polygon(rectangle(centre + 0.7 * scale * axis, 0.9 * scale, 1.7 * scale, axis), GLASS)


def truck(canvas: Canvas, centre: complex, axis: complex) -> None:
    dice = canvas.dice
    body = rectangle(centre, 9.0, 2.6, axis)
    canvas.mark("large vehicle", body)
    canvas.cast(body, 3.0)
    canvas.polygon(body, roof(dice.pick(("white", "white", "gray", "blue")), dice))
    canvas.polygon(rectangle(centre + 5.2 * axis, 1.8, 2.4, axis), GLASS.lit(1.5))


def plane(canvas: Canvas, centre: complex, nose: complex, length: float, colour: str) -> None:
    """Draw an airliner from above: swept wings, engines, tail."""
    body = HULL.tinted(varied(roof(colour, canvas.dice), canvas.dice, 0.04).rgb) if colour != "white" else HULL
    k = length * nose

    def at(x: float, y: float) -> complex:
        return centre + k * complex(x, y)

    shapes: list[list[complex]] = []
    for side in (1.0, -1.0):
        shapes.append(
            [at(0.14, 0.03 * side), at(-0.12, 0.47 * side), at(-0.19, 0.47 * side), at(-0.06, 0.03 * side)],
        )
        shapes.append(
            [at(-0.36, 0.02 * side), at(-0.46, 0.17 * side), at(-0.51, 0.17 * side), at(-0.46, 0.02 * side)],
        )
    fuselage = [at(0.5, 0.0), at(0.45, 0.04), at(0.36, 0.055), at(-0.3, 0.055), at(-0.5, 0.012)]
    fuselage += [at(-0.5, -0.012), at(-0.3, -0.055), at(0.36, -0.055), at(0.45, -0.04)]
    canvas.mark("plane", [point for shape in (*shapes, fuselage) for point in shape])
    for shape in (*shapes, fuselage):
        canvas.cast(shape, 0.16 * length)
    for shape in shapes:
        canvas.polygon(shape, body.lit(0.88))
    for side in (1.0, -1.0):
        canvas.polygon(rectangle(at(0.08, 0.17 * side), 0.1 * length, 0.045 * length, nose), GLASS.lit(1.7))
    canvas.polygon(fuselage, body)
    tail = canvas.dice.pick(((170, 52, 48), (48, 74, 140), (214, 214, 212), (206, 160, 60)))
    canvas.line((at(-0.36, 0.0), at(-0.5, 0.0)), 0.03 * length, body.tinted(tail))


def ship(canvas: Canvas, centre: complex, bow: complex, length: float, colour: str) -> None:
    """Draw a vessel; long ones carry hatches and a bridge, small ones a cabin."""
    dice = canvas.dice
    width = length * dice.between(0.2, 0.3)
    hull = HULL.tinted(varied(roof(colour, dice), dice, 0.05).rgb)

    def at(x: float, y: float) -> complex:
        return centre + bow * complex(x * length, y * width)

    outline = [at(0.5, 0), at(0.3, 0.42), at(0.1, 0.5), at(-0.46, 0.46), at(-0.5, 0.3)]
    outline += [at(-0.5, -0.3), at(-0.46, -0.46), at(0.1, -0.5), at(0.3, -0.42)]
    canvas.mark("ship", outline)
    canvas.cast(outline, 2.0 + 0.05 * length)
    canvas.polygon(outline, hull)
    if length > 24:
        deck = rectangle(at(0.0, 0.0), 0.74 * length, 0.72 * width, bow)
        canvas.polygon(deck, hull.lit(0.8))
        for i in range(5):
            box = rectangle(at(-0.2 + 0.12 * i, 0.0), 0.1 * length, 0.56 * width, bow)
            canvas.polygon(box, hull.tinted(dice.pick(((150, 74, 60), (82, 108, 140), (150, 146, 138), (96, 122, 96)))))
        bridge = rectangle(at(-0.39, 0.0), 0.09 * length, 0.8 * width, bow)
        canvas.cast(bridge, 6.0)
        canvas.polygon(bridge, HULL)
    else:
        canvas.polygon(rectangle(at(-0.12, 0.0), 0.34 * length, 0.55 * width, bow), hull.lit(0.72))
        canvas.polygon(rectangle(at(0.07, 0.0), 0.07 * length, 0.5 * width, bow), GLASS)


def train(canvas: Canvas, start: complex, axis: complex, cars: int, colour: str) -> None:
    top = roof(colour, canvas.dice)
    for i in range(cars):
        middle = start + axis * (11.6 * i)
        if canvas.near_view(middle):
            body = rectangle(middle, 11.0, 3.0, axis)
            canvas.cast(body, 3.0)
            canvas.polygon(body, top.lit(1.0 + 0.06 * (i % 2)))
            canvas.line((middle - 4.5 * axis, middle + 4.5 * axis), 0.7, top.lit(0.82))


def parked_rows(
    canvas: Canvas,
    centre: complex,
    length: float,
    depth: float,
    axis: complex,
    occupancy: float,
    surface: Material = ASPHALT,
) -> int:
    """Draw a car park of marked stalls and return the number of cars whose middle is in the image."""
    dice = canvas.dice
    canvas.polygon(rectangle(centre, length, depth, axis), surface)
    line = PAINT.tinted(mixed(surface.rgb, PAINT.rgb, 0.6))
    across = axis * 1j
    stall, bay = 3.2, 6.2
    rows = max(1, int(depth / 16.5))
    cars = 0
    for row in range(rows):
        middle = centre + across * ((row + 0.5) / rows - 0.5) * depth
        for side in (-1.0, 1.0):
            heart = middle + across * side * (bay / 2.0)
            stalls = int((length - 6.0) / stall)
            for i in range(stalls + 1):
                at = heart + axis * (i - stalls / 2.0) * stall
                if not canvas.near_view(at, 6.0):
                    continue
                canvas.line((at - across * bay / 2.0, at + across * bay / 2.0), 0.35, line)
                if i < stalls and dice.chance(occupancy):
                    spot = at + axis * stall / 2.0
                    car(canvas, spot, across * dice.pick((1.0, -1.0)))
                    cars += canvas.in_view(spot)
    return cars
