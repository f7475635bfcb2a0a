"""Commercial and industrial areas and storage tanks."""

from __future__ import annotations

from evidex.scenes.buildings import block, hall, tank
from evidex.scenes.canvas import Canvas, rectangle
from evidex.scenes.captions import Facts, Phrase, counted
from evidex.scenes.materials import (
    CONCRETE,
    PAVED,
    SOIL,
    varied,
)
from evidex.scenes.planting import lay, scatter
from evidex.scenes.surroundings import describe_trees, surround
from evidex.scenes.vehicles import parked_rows, truck
from evidex.scenes.ways import road, straight


def commercial(canvas: Canvas) -> Facts:
    dice = canvas.dice
    lay(canvas, varied(PAVED, dice, 0.12))
    across, down = dice.between(-24, 24), dice.between(-24, 24)
    wide = dice.pick((17.0, 20.0))
    cars = road(canvas, straight(complex(0, down), 1 + 0j), wide, 0.6)
    crossing = dice.chance(0.7)
    if crossing:
        cars += road(canvas, straight(complex(across, 0), 1j), 11.0, 0.5)
    colours = dice.pick((["gray", "white"], ["gray"], ["white"], ["brown", "gray"], ["blue", "gray"]))
    words = " and ".join(colours)
    buildings = tall = 0
    step = dice.between(34, 46)
    spots = [complex(x * step, y * step) for x in range(-4, 5) for y in range(-4, 5)]
    lots = 0
    for spot in sorted(spots, key=lambda z: (z * canvas.light.away.conjugate() * canvas.turn).real):
        centre = spot + complex(across + step / 2, down + step / 2)
        length, width = dice.between(0.6, 0.86) * step, dice.between(0.5, 0.84) * step
        if not canvas.near_view(centre, 26) or not canvas.is_free(centre, *rectangle(centre, length, width)):
            continue
        if dice.chance(0.1) and canvas.in_view(centre, 20):
            cars += parked_rows(canvas, centre, 34, 16.5, 1 + 0j, 0.7)
            lots += 1
            continue
        height = dice.pick((9.0, 14.0, 30.0, 42.0))
        block(canvas, centre, length, width, 1 + 0j, dice.pick(colours), height)
        buildings += canvas.in_view(centre)
        tall += canvas.in_view(centre) and height >= 30
        if dice.chance(0.3):
            block(canvas, centre, length * 0.5, width * 0.5, 1 + 0j, dice.pick(colours), 6.0)
    scatter(canvas, dice.pick((10, 50, 100)), 2.6)
    facts = Facts(subjects=[Phrase("a commercial area", False), counted(buildings, "building", dice)])
    facts.note(
        {"buildings": buildings, "tall_buildings": tall, "cars": cars, "roof_colour": words, "parking_lots": lots}
    )
    facts.around.append(Phrase("two crossed roads") if crossing else Phrase("a wide road", False))
    if lots:
        facts.around.append(counted(lots, "parking lot", dice))
    describe_trees(canvas, facts)
    many = counted(buildings, f"{words} building", dice)
    facts.sentences += [
        f"{many.text} {many.are} in a commercial area",
        f"{counted(cars, 'car', dice).text} {'is' if cars == 1 else 'are'} on the roads of a commercial area",
        f"buildings with {words} roofs are on both sides of the road",
        f"{counted(buildings, 'building', dice).text} are close to a wide road with cars"
        if cars > 1
        else "the road is empty",
    ]
    if tall:
        high = counted(tall, "tall building", dice)
        facts.sentences.append(f"{high.text} {high.are} in a commercial area with their shadows on the ground")
    facts.coarse += [
        "it is a commercial area",
        "tall buildings are in a commercial area" if tall else "a commercial area",
    ]
    facts.coarse.append(
        "many buildings are in a commercial area" if buildings > 9 else "some buildings are in a commercial area"
    )
    return facts


def industrial(canvas: Canvas) -> Facts:
    dice = canvas.dice
    lay(canvas, varied(dice.pick((PAVED, SOIL, CONCRETE)), dice, 0.1)._replace(solid=False))
    colour = dice.pick(("white", "blue", "gray", "red"))
    cars = road(canvas, straight(complex(0, dice.between(-12, 12)), 1 + 0j), 10.0, 0.25)
    side_road = dice.chance(0.5)
    if side_road:
        cars += road(canvas, straight(complex(dice.between(-30, 30), 0), 1j), 8.0, 0.2)
    plants = 0
    y = -150.0
    while y < 150:
        depth = dice.between(24, 44)
        x = -158.0 + dice.between(0, 20)
        while x < 158:
            length = dice.between(34, 88)
            centre = complex(x + length / 2, y + depth / 2)
            if canvas.near_view(centre, 30) and canvas.is_free(centre, *rectangle(centre, length, depth)):
                bays = dice.whole(1, 3)
                for i in range(bays):
                    spot = centre + 1j * depth * ((i + 0.5) / bays - 0.5)
                    hall(canvas, spot, length, depth / bays, 1 + 0j, colour if dice.chance(0.8) else "gray")
                plants += canvas.in_view(centre)
            elif canvas.in_view(centre) and canvas.is_free(centre) and dice.chance(0.5):
                truck(canvas, centre, dice.pick((1 + 0j, 1j)))
            x += length + dice.between(7, 16)
        y += depth + dice.between(8, 14)
    tanks = dice.pick((0, 0, 2, 3))
    for i in range(tanks):
        spot = complex(-10 + 17 * i, -60)
        canvas.disc(spot, 9, SOIL)
        tank(canvas, spot, 7, "white")
    scatter(canvas, dice.pick((0, 15, 50)), 2.8)
    facts = Facts(subjects=[Phrase("an industrial area", False), counted(plants, "factory building", dice)])
    facts.note({"halls": plants, "roof_colour": colour, "cars": cars, "tanks": tanks, "roads": 1 + side_road})
    facts.around.append(Phrase("two roads") if side_road else Phrase("a road", False))
    if tanks:
        facts.around.append(counted(tanks, "white storage tank", dice))
    describe_trees(canvas, facts)
    roofs = counted(plants, f"{colour} roofed workshop", dice)
    facts.sentences += [
        f"{roofs.text} {roofs.are} in an industrial area",
        f"buildings with {colour} roofs are in an industrial area",
        f"{counted(plants, 'large building', dice).text} with {colour} roofs along the road",
        f"large workshops with {colour} metal roofs are arranged in rows",
    ]
    facts.coarse += ["it is an industrial area", "some buildings are in an industrial area", "a large industrial area"]
    return facts


def storagetanks(canvas: Canvas) -> Facts:
    dice = canvas.dice
    base = dice.pick(("bareland", "grass", "concrete"))
    ground = {"bareland": SOIL, "grass": canvas.season.ground, "concrete": CONCRETE}[base]
    lay(canvas, varied(ground, dice, 0.08)._replace(solid=False))
    colour = dice.pick(("white", "white", "white", "gray", "brown"))
    columns, rows = dice.pick(((1, 1), (2, 1), (3, 1), (2, 2), (3, 2), (4, 2), (3, 3), (4, 3), (5, 4)))
    step = 44.0 if columns <= 3 else 36.0 if columns == 4 else 28.0
    radius = step * dice.between(0.3, 0.4) if columns > 1 else dice.between(20, 30)
    facts = Facts(subjects=[])
    surround(
        canvas,
        facts,
        complex(columns, rows) * step / 2 + 8 + 8j,
        options=("road", "trees", "buildings", "river", "bareland"),
        sides=(1, 2),
    )
    visible = 0
    for i in range(columns):
        for j in range(rows):
            spot = complex((i - (columns - 1) / 2) * step, (j - (rows - 1) / 2) * step)
            pad = rectangle(spot, step - 3, step - 3)
            canvas.polygon(pad, varied(ground, dice, 0.05).lit(0.92)._replace(solid=True))
            canvas.line([*pad, pad[0]], 1.1, CONCRETE)
            tank(canvas, spot, radius * dice.between(0.85, 1.05), colour)
            visible += canvas.in_view(spot)
    scatter(canvas, dice.pick((0, 15, 60)))
    describe_trees(canvas, facts)
    tanks = counted(visible, "storage tank", dice, exact=0.8)
    coloured = counted(visible, f"{colour} storage tank", dice, exact=0.7)
    facts.subjects = [tanks, coloured]
    facts.note({"tanks": visible, "tank_colour": colour, "ground": base})
    layout = "arranged in rows" if rows > 1 else "in a line" if visible > 1 else "standing alone"
    place = "bareland" if base == "bareland" else f"{base} ground"
    facts.sentences += [
        f"{coloured.text} {coloured.are} on the {place}",
        f"there {tanks.are} {tanks.text}",
        f"{coloured.text} {coloured.are} {layout}",
        f"{counted(visible, f'{colour} cylindrical tank', dice).text} with shadows on the {place}",
    ]
    facts.coarse += [
        "storage tanks are here" if visible > 1 else "a storage tank is here",
        "there are some storage tanks on the ground" if visible > 2 else "oil is stored here",
    ]
    return facts


CITY = {"commercial": commercial, "industrial": industrial, "storagetanks": storagetanks}
