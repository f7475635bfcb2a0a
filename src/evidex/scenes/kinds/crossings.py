"""Bridge and viaduct."""

from __future__ import annotations

import math

from evidex.scenes.buildings import block
from evidex.scenes.canvas import Canvas, rectangle
from evidex.scenes.captions import Facts, Phrase, counted
from evidex.scenes.materials import CONCRETE, WATER_COLOURS
from evidex.scenes.planting import grove, lay
from evidex.scenes.surroundings import crop, field, plant, surround
from evidex.scenes.ways import river, road, stations, straight, winding


def bank(canvas: Canvas, facts: Facts, gap: float, sign: float, what: str) -> None:
    """Fill one side of a river, from ``gap`` units beyond its middle line outwards."""
    dice = canvas.dice
    buildings = 0
    for x in range(-154, 160, 22):
        spot = complex(x, sign * (gap + 26))
        if what == "trees":
            grove(canvas, spot, 24, 6.5)
            grove(canvas, spot + sign * 40j, 24, 6.5)
        elif what == "buildings":
            for dy in (0, 24, 48):
                at = spot + complex(dice.between(-3, 3), sign * dy)
                length, width = dice.between(11, 19), dice.between(11, 19)
                if canvas.near_view(at) and canvas.is_free(at, *rectangle(at, length + 2, width + 2)):
                    block(canvas, at, length, width, 1 + 0j, dice.pick(("red", "gray", "white", "brown")), 8.0)
                    buildings += canvas.in_view(at)
        elif what == "farmlands" and canvas.is_free(spot - 10, spot + 10):
            field(canvas, spot + sign * 30j, 100, 21, 1j, crop(canvas))
    if buildings:
        facts.note({"buildings": buildings})
    elif what == "farmlands":
        facts.note({"farmlands": 1})


def bridge(canvas: Canvas) -> Facts:
    dice = canvas.dice
    lay(canvas, canvas.season.ground)
    colour = dice.pick(tuple(WATER_COLOURS))
    width = dice.between(56, 110)
    bridges = dice.pick((1, 1, 1, 2))
    deck = dice.pick((10.0, 17.0))
    river(canvas, winding(canvas, 0j, 1 + 0j, dice.between(0, 9)), width, colour)
    cars = 0
    for x in [dice.between(-15, 15)] if bridges == 1 else [-dice.between(16, 34), dice.between(16, 34)]:
        span = (complex(x, -width / 2), complex(x, width / 2))
        canvas.mark("bridge", rectangle(complex(x, 0), width, deck, 1j))
        canvas.cast_line(span, deck + 3, 9.0)
        for at, axis in stations(span, 16.0):
            canvas.polygon(rectangle(at, 2.4, deck + 7, axis), CONCRETE.lit(1.1))
        cars += road(canvas, straight(complex(x, 0), 1j), deck, dice.pick((0.05, 0.3, 0.6)))
    facts = Facts(subjects=[])
    sides = [dice.pick(("trees", "trees", "buildings", "farmlands", "grass")) for _ in range(2)]
    for sign, what in zip((1.0, -1.0), sides, strict=True):
        bank(canvas, facts, width / 2 + 4, sign, what)
    subject = counted(bridges, "bridge", dice)
    long_one = counted(bridges, "long straight bridge", dice)
    facts.subjects = [subject, long_one]
    facts.note({"bridges": bridges, "cars": cars, "water_colour": colour, "rivers": 1})
    buildings = facts.attributes.get("buildings", 0)
    if isinstance(buildings, int) and buildings:
        facts.around.append(counted(buildings, "building", dice))
    if "farmlands" in sides:
        facts.around.append(Phrase("some farmlands"))
    plant(canvas, facts, dice.pick((0, 0, 25)))
    be = subject.are
    facts.sentences += [
        f"{subject.text} {be} over a {colour} river",
        f"{long_one.text} {be} across the {colour} river",
        f"the river under the bridge{'s' if bridges > 1 else ''} is {colour}",
    ]
    if sides[0] == sides[1] and sides[0] in ("trees", "buildings", "farmlands"):
        facts.sentences.append(f"{subject.text} {be} over a river with {sides[0]} in two sides")
    elif {"trees", "buildings"} == set(sides):
        facts.sentences.append(f"trees and buildings are on different sides of the river under {subject.text}")
    if cars >= 2:
        facts.sentences.append(f"{counted(cars, 'car', dice).text} are on {subject.text} over a river")
    else:
        facts.sentences.append(f"{subject.text} {be} almost empty of cars")
    facts.coarse += ["a bridge is over a river", "the bridge is straight", "a river is under a bridge"]
    if bridges > 1:
        facts.coarse = ["two bridges are over a river", "the bridges are close to each other", "a river flows through"]
    return facts


def viaduct(canvas: Canvas) -> Facts:
    dice = canvas.dice
    lay(canvas, canvas.season.ground)
    width = dice.pick((11.0, 17.0, 20.0))
    crossings = dice.pick((1, 2, 2))
    loops = dice.pick((0, 1, 2, 4))
    cars = 0
    facts = Facts(subjects=[])
    surround(canvas, facts, 92 + 92j, options=("buildings", "houses", "river", "farmland"), sides=(0, 2))
    for i in range(crossings):
        cars += road(canvas, winding(canvas, complex(0, (i - (crossings - 1) / 2) * 52), 1 + 0j, 8.0), width, 0.4)
    for quadrant in dice.sample((1 + 1j, 1 - 1j, -1 + 1j, -1 - 1j), loops):
        radius = dice.between(30, 44)
        heart = quadrant * (radius * 0.86 + width / 2)
        turns = [a / 24 * 2 * math.pi for a in range(25)]
        ring = [heart + radius * complex(math.cos(a), math.sin(a)) for a in turns]
        canvas.cast_line(ring, 9.0, 3.0)
        cars += road(canvas, ring, 8.0, 0.25)
    for x in [0.0] if dice.chance(0.6) else [-15.0, 15.0]:
        line = winding(canvas, complex(x, 0), 1j, 5.0)
        canvas.cast_line(line, width + 3, 10.0)
        cars += road(canvas, line, width, dice.pick((0.2, 0.5)))
    plant(canvas, facts, dice.pick((20, 90, 170)))
    shape = "complicated viaduct" if loops >= 2 else "viaduct"
    facts.subjects = [Phrase(f"a {shape}", False), Phrase("a viaduct", False)]
    facts.note({"cars": cars, "loops": loops, "crossing_roads": crossings})
    with_cars = counted(cars, "car", dice)
    facts.sentences += [
        f"a {shape} with {with_cars.text} on it" if cars else f"a {shape} is empty of cars",
        f"{with_cars.text} {with_cars.are} running on the viaduct" if cars else "no cars are on the viaduct",
        f"a viaduct has {counted(loops, 'ring road', dice).text}" if loops else "a viaduct crosses over straight roads",
        f"the viaduct crosses over {counted(crossings, 'road', dice).text}",
    ]
    facts.coarse += ["it is a viaduct", "the roads cross each other", "the viaduct extends in different directions"]
    return facts


CROSSINGS = {"bridge": bridge, "viaduct": viaduct}
