"""Houses, blocks, halls, domes, tanks and pools."""

from __future__ import annotations

from evidex.scenes.canvas import Canvas, blob, capsule, oval, rectangle
from evidex.scenes.materials import (
    POOL,
    RGB,
    ROOF,
    SOIL,
    roof,
    scaled,
    varied,
)


def house(canvas: Canvas, centre: complex, length: float, width: float, axis: complex, colour: str) -> None:
    """Draw a small house with a hipped or gabled roof."""
    dice = canvas.dice
    tiles = roof(colour, dice)
    outline = rectangle(centre, length, width, axis)
    canvas.cast(outline, dice.between(4.0, 6.5))
    inset = axis * (length / 2.0 - (width / 2.0 if dice.chance(0.6) else 0.0))
    left, right = centre - inset, centre + inset
    a, b, c, d = outline
    canvas.polygon((a, b, right, left), tiles.lit(canvas.sunlit(-1j * axis)))
    canvas.polygon((d, c, right, left), tiles.lit(canvas.sunlit(1j * axis)))
    canvas.polygon((b, c, right), tiles.lit(canvas.sunlit(axis)))
    canvas.polygon((a, d, left), tiles.lit(canvas.sunlit(-axis)))
    if width > 9 and dice.chance(0.35):
        wing = centre + axis * dice.between(-0.2, 0.2) * length + axis * 1j * width * dice.pick((-0.55, 0.55))
        canvas.polygon(rectangle(wing, width * 0.6, width * 0.5, axis), tiles.lit(canvas.sunlit(axis)))


def block(
    canvas: Canvas, centre: complex, length: float, width: float, axis: complex, colour: str, height: float
) -> None:
    """Draw a flat-roofed building with a parapet and machines on its roof."""
    dice = canvas.dice
    top = roof(colour, dice)
    outline = rectangle(centre, length, width, axis)
    canvas.cast(outline, height)
    if height > 14:  # the camera never looks straight down: a tall block shows a wall
        lean = 0.18 * height * canvas.light.away * canvas.turn.conjugate()
        canvas.polygon([p + lean for p in outline], top.lit(0.55))
        for i in range(4):
            canvas.polygon((outline[i - 1], outline[i], outline[i] + lean, outline[i - 1] + lean), top.lit(0.62))
    canvas.polygon(outline, top.lit(1.12))
    canvas.polygon(rectangle(centre, length - 1.6, width - 1.6, axis), top)
    for _ in range(dice.whole(1, 4) if min(length, width) > 11 else 0):
        spot = centre + axis * complex(dice.between(-0.35, 0.35) * length, dice.between(-0.35, 0.35) * width)
        box = rectangle(spot, dice.between(2, 5), dice.between(2, 4), axis)
        canvas.cast(box, 2.5)
        canvas.polygon(box, top.lit(dice.between(0.75, 1.15)))


def hall(canvas: Canvas, centre: complex, length: float, width: float, axis: complex, colour: str) -> None:
    """Draw a long low hall with a ribbed metal roof, as works and terminals have."""
    dice = canvas.dice
    top = roof(colour, dice)
    outline = rectangle(centre, length, width, axis)
    canvas.cast(outline, dice.between(7.0, 11.0))
    half = axis * 1j * width / 4.0
    canvas.polygon(rectangle(centre - half, length, width / 2.0, axis), top.lit(canvas.sunlit(-1j * axis)))
    canvas.polygon(rectangle(centre + half, length, width / 2.0, axis), top.lit(canvas.sunlit(1j * axis)))
    ribs = max(2, int(length / dice.between(5.0, 9.0)))
    rib = top.lit(0.86)
    for i in range(1, ribs):
        at = centre + axis * length * (i / ribs - 0.5)
        canvas.line((at - 2 * half, at + 2 * half), 0.5, rib)


def tank(canvas: Canvas, centre: complex, radius: float, colour: str) -> None:
    """Draw a cylindrical tank with a rim, a lit roof and stairs."""
    dice = canvas.dice
    top = varied(ROOF.tinted(roof(colour, dice).rgb), dice, 0.03)
    rim = oval(centre, 2 * radius, 2 * radius, corners=20)
    canvas.mark("storage tank", rim)
    canvas.cast(rim, radius * dice.between(0.6, 0.9))
    canvas.disc(centre, radius, top.lit(0.84))
    sun = -canvas.light.away * canvas.turn.conjugate()
    canvas.disc(centre, radius * 0.93, top)
    canvas.disc(centre + sun * radius * 0.18, radius * 0.66, top.lit(1.05))
    canvas.disc(centre, radius * 0.12, top.lit(0.8))
    spoke = dice.direction()
    canvas.line((centre + spoke * radius * 0.2, centre + spoke * radius * 0.98), 0.6, top.lit(0.7))


def pool(canvas: Canvas, centre: complex, length: float, axis: complex, round_shape: bool = False) -> None:
    """Draw a swimming pool with its paved edge."""
    edge = SOIL.tinted((206, 200, 188))._replace(solid=True, grain=30, mottle=20)
    if round_shape:
        outline = blob(centre, length / 2.0, canvas.dice, 0.3, 24)
        canvas.polygon([centre + (p - centre) * 1.25 for p in outline], edge)
    else:
        outline = capsule(centre, length, length * 0.5, axis, 6)
        canvas.polygon(rectangle(centre, length + 5, length * 0.5 + 5, axis), edge)
    canvas.polygon(outline, POOL)
    canvas.mark("swimming pool", outline)


def shaded_disc(canvas: Canvas, centre: complex, radius: float, height: float, rgb: RGB) -> None:
    """Draw a domed round roof, lighter towards the sun."""
    canvas.cast(oval(centre, 2 * radius, 2 * radius, corners=24), height)
    sun = -canvas.light.away * canvas.turn.conjugate()
    for i in range(6):
        share = i / 6.0
        material = ROOF.tinted(scaled(rgb, 0.78 + 0.42 * share))
        canvas.disc(centre + sun * radius * 0.35 * share, radius * (1.0 - 0.75 * share), material)
