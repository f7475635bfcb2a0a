"""What lies around the main thing of a scene. The same neighbours turn up beside every kind, as they do in reality."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from evidex.scenes.buildings import block, house
from evidex.scenes.canvas import REACH, Canvas, rectangle
from evidex.scenes.captions import SEVERAL, Facts, Phrase, counted
from evidex.scenes.materials import ROOF_COLOURS, SOIL, WATER_COLOURS, Material, mixed, varied
from evidex.scenes.planting import avenue, scatter
from evidex.scenes.vehicles import parked_rows
from evidex.scenes.ways import pond, river, road, straight, winding

SOME_TREES, MANY_TREES = 4, 40
"""From these numbers of crowns in the image on, captions say "some" and "many" trees."""

BUILT = ("road", "road", "buildings", "houses", "parking", "trees")
MIXED = (*BUILT, "bareland", "pond", "river")

_FARTHEST = 96.0
"""A neighbour that begins here still shows in the image at every turn."""

Strip = Callable[[Canvas, Facts, complex, float], None]


def surround(
    canvas: Canvas,
    facts: Facts,
    start: complex,
    *,
    options: Sequence[str] = MIXED,
    sides: tuple[int, int] = (1, 3),
    directions: Sequence[complex] = (1 + 0j, 1j, -1 + 0j, -1j),
    trees: int = 0,
) -> None:
    """Put neighbours on some sides, beyond ``start.real`` units along x and ``start.imag`` along y; scatter trees."""
    dice = canvas.dice
    outward = dice.sample(directions, dice.whole(*sides))
    chosen: list[str] = []
    for _ in outward:
        rest = [name for name in options if name not in chosen]
        if rest:
            chosen.append(dice.pick(rest))
    for name in sorted(chosen, key=_ORDER.index):
        out = outward.pop()
        _STRIPS[name](canvas, facts, out, min(_FARTHEST, start.real if out.real else start.imag))
    scatter(canvas, trees)


def plant(canvas: Canvas, facts: Facts, count: int) -> None:
    """Scatter trees and say how green the scene has become."""
    scatter(canvas, count)
    describe_trees(canvas, facts)


def visible_trees(canvas: Canvas) -> int:
    size = canvas.size
    return sum(0 <= tree.x < size and 0 <= tree.y < size for tree in canvas.trees)


def describe_trees(canvas: Canvas, facts: Facts) -> None:
    """Put the trees that show among the neighbours; call it once, when all are planted."""
    visible = visible_trees(canvas)
    facts.attributes["trees"] = visible
    if visible >= MANY_TREES:
        facts.around.append(Phrase(canvas.dice.pick(("many green trees", "many trees", "many green plants"))))
    elif visible >= SOME_TREES:
        word = "several" if visible in SEVERAL and canvas.dice.chance(0.5) else "some"
        facts.around.append(Phrase(f"{word} {canvas.dice.pick(('green trees', 'trees'))}"))


def _road(canvas: Canvas, facts: Facts, out: complex, start: float) -> None:
    dice = canvas.dice
    width = dice.pick((9.0, 11.0, 17.0))
    cars = road(canvas, straight(out * (start + width / 2 + 2), out * 1j), width, dice.pick((0.1, 0.3, 0.6)))
    facts.note({"side_roads": 1, "side_road_cars": cars})
    traffic = f" with {counted(cars, 'car', dice).text}" if cars >= 3 and dice.chance(0.6) else ""
    facts.around.append(Phrase(f"a road{traffic}", False))
    if dice.chance(0.4):
        offset = out * (start + width + 8)
        avenue(canvas, offset - out * 1j * REACH, offset + out * 1j * REACH, 9.0)


def _buildings(canvas: Canvas, facts: Facts, out: complex, start: float) -> None:
    dice = canvas.dice
    colour = dice.pick(tuple(ROOF_COLOURS))
    along = out * 1j
    depth, height = dice.between(16, 30), dice.pick((8.0, 12.0, 20.0))
    place, drawn = -REACH, 0
    while place < REACH:
        length = dice.between(18, 46)
        centre = out * (start + 6 + depth / 2) + along * (place + length / 2)
        corners = rectangle(centre, length, depth, along)
        if canvas.near_view(centre, 10.0) and canvas.is_free(centre, *corners):
            block(canvas, centre, length, depth, along, colour, height)
            drawn += canvas.in_view(centre)
        place += length + dice.between(8, 22)
    facts.note({"buildings": drawn})
    if drawn:
        noun = dice.pick(("building", f"{colour} building"))
        facts.around.append(counted(drawn, noun, dice, exact=0.35))


def _houses(canvas: Canvas, facts: Facts, out: complex, start: float) -> None:
    dice = canvas.dice
    colour = dice.pick(("red", "red", "gray", "brown", "white"))
    along = out * 1j
    drawn = 0
    for row in range(dice.whole(1, 3)):
        place = -REACH + dice.between(0, 10)
        while place < REACH:
            length = dice.between(11, 16)
            centre = out * (start + 10 + 20 * row) + along * place
            if canvas.near_view(centre, 10.0) and canvas.is_free(centre, *rectangle(centre, length, 10, along)):
                house(canvas, centre, length, dice.between(8, 11), along, colour)
                drawn += canvas.in_view(centre)
            place += length + dice.between(3, 9)
    facts.note({"houses": drawn})
    if drawn > 2:
        noun = dice.pick(("house", f"{colour} roofed house"))
        facts.around.append(counted(drawn, noun, dice, exact=0.2))
        facts.attributes["house_colour"] = colour


def _trees(canvas: Canvas, facts: Facts, out: complex, start: float) -> None:
    dice = canvas.dice
    rows = dice.whole(1, 5)
    for row in range(rows):
        middle = out * (start + 5 + 7 * row)
        avenue(canvas, middle - out * 1j * REACH, middle + out * 1j * REACH, 7.5, 3.8)
    text = "a row of trees" if rows == 1 else dice.pick(("rows of green trees", "a piece of green trees"))
    facts.note({"tree_rows": rows})
    facts.around.append(Phrase(text, rows > 1))


def _parking(canvas: Canvas, facts: Facts, out: complex, start: float) -> None:
    dice = canvas.dice
    depth = 16.5 * dice.whole(1, 2)
    middle = out * (start + 5 + depth / 2) + out * 1j * dice.between(-30, 30)
    cars = parked_rows(canvas, middle, dice.between(70, 130), depth, out * 1j, dice.pick((0.25, 0.5, 0.85)))
    facts.note({"side_parking_lots": 1, "parked_cars": cars})
    parked = f" with {counted(cars, 'car', dice).text}" if cars >= 3 and dice.chance(0.6) else ""
    facts.around.append(Phrase(f"a parking lot{parked}", False))


def _bareland(canvas: Canvas, facts: Facts, out: complex, start: float) -> None:
    middle = out * (start + 4 + REACH / 2)
    canvas.polygon(rectangle(middle, 2.4 * REACH, REACH, out * 1j), varied(SOIL, canvas.dice, 0.1))
    facts.note({"barelands": 1})
    facts.around.append(Phrase(canvas.dice.pick(("a piece of bareland", "a bareland")), False))


def _farmland(canvas: Canvas, facts: Facts, out: complex, start: float) -> None:
    place = -REACH
    while place < REACH:
        width = canvas.dice.between(18, 48)
        middle = out * (start + 4 + REACH / 2) + out * 1j * (place + width / 2)
        field(canvas, middle, REACH, width - 1.5, out, crop(canvas))
        place += width
    facts.note({"farmlands": 1})
    facts.around.append(Phrase(canvas.dice.pick(("some farmlands", "several pieces of farmland"))))


def _river(canvas: Canvas, facts: Facts, out: complex, start: float) -> None:
    dice = canvas.dice
    width, colour = dice.between(20, 40), dice.pick(tuple(WATER_COLOURS))
    river(canvas, winding(canvas, out * (start + 8 + width / 2), out * 1j, 3.0), width, colour)
    facts.note({"rivers": 1, "water_colour": colour})
    facts.around.append(Phrase(dice.pick(("a river", f"a {colour} river")), False))


def _pond(canvas: Canvas, facts: Facts, out: complex, start: float) -> None:
    dice = canvas.dice
    radius, colour = dice.between(16, 26), dice.pick(tuple(WATER_COLOURS))
    pond(canvas, out * (start + radius + 6) + out * 1j * dice.between(-20, 20), radius, colour)
    facts.note({"ponds": 1, "water_colour": colour})
    facts.around.append(Phrase(dice.pick(("a pond", f"a {colour} pond")), False))


def crop(canvas: Canvas) -> Material:
    """Return what grows on a field, or the soil where nothing does."""
    dice = canvas.dice
    ripe = dice.pick(((92, 124, 66), (70, 102, 56), (122, 138, 82), (170, 154, 104), (146, 122, 92), (196, 178, 126)))
    ground = canvas.season.ground
    return varied(ground.tinted(mixed(ripe, ground.rgb, 0.2)), dice, 0.1)._replace(solid=True, grain=80, mottle=70)


def field(canvas: Canvas, middle: complex, length: float, width: float, axis: complex, surface: Material) -> None:
    """Draw one field with furrows along ``axis``."""
    dice = canvas.dice
    canvas.polygon(rectangle(middle, length, width, axis), surface)
    pitch = dice.between(2.2, 4.5)
    furrow = surface.lit(dice.between(0.84, 0.95))
    for i in range(1, int(width / pitch)):
        at = middle + axis * 1j * (i * pitch - width / 2)
        canvas.line((at - axis * length / 2, at + axis * length / 2), pitch * 0.4, furrow)


_STRIPS: dict[str, Strip] = {
    "bareland": _bareland,
    "farmland": _farmland,
    "river": _river,
    "pond": _pond,
    "road": _road,
    "parking": _parking,
    "buildings": _buildings,
    "houses": _houses,
    "trees": _trees,
}
_ORDER = tuple(_STRIPS)
"""Flat things first: roads cross fields, and houses keep off both."""
