"""Residential areas of three densities and the resort."""

from __future__ import annotations

import itertools

from evidex.scenes.buildings import block, house, pool
from evidex.scenes.canvas import Canvas, rectangle
from evidex.scenes.captions import Facts, Phrase, counted
from evidex.scenes.materials import LAWN, PATH, PAVED, ROOF_COLOURS, SAND, mixed, varied
from evidex.scenes.planting import grove, lay, scatter
from evidex.scenes.surroundings import describe_trees, surround
from evidex.scenes.vehicles import car
from evidex.scenes.ways import road, straight, winding


def _roof_mix(canvas: Canvas) -> tuple[list[str], str]:
    """Return the roof colours of a quarter and the words that describe them."""
    dice = canvas.dice
    colours = dice.pick(
        (["red"], ["gray"], ["brown"], ["white"], ["red", "gray"], ["gray", "white"], ["brown", "gray"])
    )
    return colours, " and ".join(colours)


def denseresidential(canvas: Canvas) -> Facts:
    dice = canvas.dice
    lay(canvas, varied(PAVED.tinted(mixed(PAVED.rgb, canvas.season.ground.rgb, dice.random())), dice, 0.1))
    colours, words = _roof_mix(canvas)
    cars = houses = 0
    block_depth, along = dice.between(40, 54), dice.between(90, 150)
    lanes = [y * block_depth - 150 + dice.between(-4, 4) for y in range(8)]
    for y in lanes:
        cars += road(canvas, straight(complex(0, y), 1 + 0j), 7.5, 0.3)
    crossing = dice.between(-60, 60)
    cars += road(canvas, straight(complex(crossing, 0), 1j), 8.5, 0.3)
    if dice.chance(0.5):
        cars += road(canvas, straight(complex(crossing + along, 0), 1j), 8.5, 0.3)
    size = dice.between(11.5, 15)
    for low, high in itertools.pairwise(lanes):
        for share in (0.3, 0.7):
            y = low + (high - low) * share
            x = -158.0
            while x < 158:
                length = size * dice.between(0.85, 1.25)
                centre = complex(x + length / 2, y + dice.between(-1, 1))
                depth = min(size * dice.between(0.85, 1.1), (high - low) * 0.36)
                if canvas.near_view(centre, 8.0) and canvas.is_free(centre - length / 2, centre, centre + length / 2):
                    house(canvas, centre, length, depth, 1 + 0j, dice.pick(colours))
                    houses += canvas.in_view(centre)
                x += length + dice.between(1.0, 3.5)
    scatter(canvas, dice.pick((50, 130, 220)), 2.6)
    facts = Facts(subjects=[Phrase("a dense residential area", False), Phrase("lots of houses")])
    facts.note({"houses": houses, "cars": cars, "roof_colour": words})
    facts.around.append(Phrase("some roads"))
    describe_trees(canvas, facts)
    facts.sentences += [
        f"many houses with {words} roofs are arranged compactly",
        f"many {words} roofed houses are in a dense residential area",
        f"a dense residential area with {words} roofs is divided by some roads",
        "many houses are arranged neatly along the roads in a dense residential area",
    ]
    facts.coarse += ["it is a dense residential area", "many houses are arranged compactly", "a dense residential area"]
    facts.coarse.append("many buildings are in a dense residential area")
    return facts


def mediumresidential(canvas: Canvas) -> Facts:
    dice = canvas.dice
    lay(canvas, canvas.season.ground)
    colours, words = _roof_mix(canvas)
    houses = pools = 0
    streets = dice.whole(1, 2)
    ways = [
        winding(canvas, complex(0, -52 + 104 * i if streets == 2 else 0), 1 + 0j, dice.pick((0, 8, 16)))
        for i in range(streets)
    ]
    cars = sum(road(canvas, way, 9.0, 0.12) for way in ways)
    pitch = dice.between(25, 31)
    for way in ways:
        for i in range(1, len(way) - 1):
            axis = (way[i + 1] - way[i - 1]) / abs(way[i + 1] - way[i - 1])
            if i * abs(way[1] - way[0]) % pitch >= abs(way[1] - way[0]):
                continue
            for side in (-1.0, 1.0):
                centre = way[i] + axis * 1j * side * (22 + dice.between(-2, 2))
                length, depth = dice.between(14, 18), dice.between(10, 13)
                if not canvas.near_view(centre, 12) or not canvas.is_free(*rectangle(centre, length, depth, axis)):
                    continue
                drive = centre + axis * 5
                canvas.line((drive, drive - axis * 1j * side * 18), 4.0, varied(PATH, dice, 0.1))
                canvas.polygon(rectangle(centre + axis * 1j * side * 14, 20, 14, axis), varied(LAWN, dice, 0.1))
                house(canvas, centre, length, depth, axis, dice.pick(colours))
                houses += canvas.in_view(centre)
                if dice.chance(0.35):
                    car(canvas, drive - axis * 1j * side * 11, axis * 1j)
                if dice.chance(0.14):
                    pool(canvas, centre + axis * 1j * side * 16, 7.0, axis, round_shape=dice.chance(0.5))
                    pools += canvas.in_view(centre + axis * 1j * side * 16)
    scatter(canvas, dice.pick((60, 120, 200)), 3.8)
    facts = Facts(subjects=[Phrase("a medium residential area", False), counted(houses, "house", dice)])
    facts.note({"houses": houses, "pools": pools, "cars": cars, "roads": streets, "roof_colour": words})
    facts.around.append(counted(streets, "road", dice))
    if pools:
        facts.around.append(counted(pools, "swimming pool", dice))
    describe_trees(canvas, facts)
    both = counted(houses, "house", dice)
    facts.sentences += [
        f"{both.text} with {words} roofs are along the road",
        f"{counted(houses, words + ' roofed house', dice).text} are in a medium residential area",
        f"houses with {words} roofs and lawns are on both sides of the road",
        f"{both.text} are arranged in lines in a medium residential area",
    ]
    facts.coarse += ["it is a medium residential area", "houses are neatly arranged along the road"]
    facts.coarse.append("a medium residential area with houses and plants")
    return facts


def sparseresidential(canvas: Canvas) -> Facts:
    dice = canvas.dice
    lay(canvas, canvas.season.ground)
    wanted = dice.whole(1, 4)
    colour = dice.pick(tuple(ROOF_COLOURS))
    facts = Facts(subjects=[])
    surround(canvas, facts, 78 + 78j, options=("road", "pond", "farmland", "bareland"), sides=(0, 2))
    spots = dice.sample((-38 - 36j, 36 - 34j, -36 + 38j, 38 + 36j, 0j), wanted)
    has_pool = dice.chance(0.3)
    for i, spot in enumerate(spots):
        centre = spot + complex(dice.between(-8, 8), dice.between(-8, 8))
        axis = dice.pick((1 + 0j, 1j))
        lane = [centre, centre + axis * 14, centre + complex(dice.between(10, 30), dice.between(40, 60)), 160j + centre]
        canvas.line(lane if i == 0 else lane[:2], 3.4, varied(PATH, dice, 0.1))
        canvas.polygon(rectangle(centre, 42, 36, axis), varied(LAWN, dice, 0.12))
        house(canvas, centre, dice.between(17, 24), dice.between(12, 15), axis, colour)
        if has_pool and i == 0:
            pool(canvas, centre + axis * 1j * 15, 9.0, axis)
    dense = dice.chance(0.6)
    for _ in range(dice.whole(18, 30) if dense else dice.whole(4, 9)):
        grove(canvas, complex(dice.between(-140, 140), dice.between(-140, 140)), dice.between(14, 34), 6.5, 4.4)
    houses = counted(wanted, "house", dice, exact=0.9)
    coloured = counted(wanted, f"{colour} roofed house", dice, exact=0.8)
    facts.subjects = [houses, coloured]
    facts.note({"houses": wanted, "roof_colour": colour, "pools": int(has_pool)})
    describe_trees(canvas, facts)
    if has_pool:
        facts.around.append(Phrase("a swimming pool", False))
        facts.sentences.append(f"{houses.text} with a swimming pool {houses.are} in a sparse residential area")
    land = "in the woods" if dense else "on the grass"
    facts.sentences += [
        f"{coloured.text} {coloured.are} {land}",
        f"{houses.text} {houses.are} scattered {land}" if wanted > 1 else f"a house stands alone {land}",
        f"{coloured.text} {coloured.are} in a sparse residential area",
        f"there {houses.are} only {houses.text} here",
    ]
    facts.coarse += ["it is a sparse residential area", "a sparse residential area with plants", "houses are far apart"]
    return facts


def resort(canvas: Canvas) -> Facts:
    dice = canvas.dice
    seaside = dice.chance(0.3)
    lay(canvas, varied(SAND if seaside else LAWN, dice, 0.12)._replace(solid=False))
    colour = dice.pick(("red", "white", "brown", "white"))
    pools = dice.whole(1, 3)
    for x in (-40, 40):
        canvas.line(winding(canvas, complex(x, 0), 1j, 10.0), 3.6, varied(PATH, dice, 0.08))
    canvas.line(winding(canvas, 0j, 1 + 0j, 8.0), 3.6, varied(PATH, dice, 0.08))
    for i in range(pools):
        spot = complex(dice.between(-10, 10), (i - (pools - 1) / 2) * 38)
        pool(canvas, spot, dice.between(19, 30), dice.pick((1 + 0j, 1j)), round_shape=dice.chance(0.6))
    buildings = 0
    for side in (-1.0, 1.0):
        for i in range(dice.whole(1, 4)):
            centre = complex(side * dice.between(58, 70), -60 + 42 * i)
            if canvas.is_free(centre):
                (house if dice.chance(0.5) else _villa)(canvas, centre, 30, 14, 1j, colour)
                buildings += canvas.in_view(centre, 0)
    facts = Facts(subjects=[Phrase("a resort", False), counted(pools, "swimming pool", dice, exact=0.9)])
    surround(canvas, facts, 88 + 88j, options=("road", "parking", "trees"), sides=(0, 2), trees=dice.pick((60, 110)))
    describe_trees(canvas, facts)
    facts.note({"pools": pools, "resort_buildings": buildings, "roof_colour": colour})
    pool_words = counted(pools, "swimming pool", dice, exact=0.9)
    if buildings:
        facts.around.append(counted(buildings, f"{colour} building", dice))
        walls = counted(buildings, f"{colour} building", dice)
        facts.sentences.append(f"{walls.text} {walls.are} around {pool_words.text} in a resort")
    facts.sentences += [
        f"a resort with {pool_words.text} and green trees",
        f"{pool_words.text} {pool_words.are} between {colour} roofed buildings"
        if buildings > 1
        else "a pool is in the resort",
        f"there {pool_words.are} {pool_words.text} on the {'sand' if seaside else 'lawn'} of a resort",
        f"the blue water of {pool_words.text} is in the middle of a resort",
    ]
    facts.coarse += ["it is a resort", "a resort with swimming pools" if pools > 1 else "a resort with a swimming pool"]
    facts.coarse.append(
        "some buildings and green trees are in a resort" if buildings > 2 else "a resort with green trees"
    )
    return facts


def _villa(canvas: Canvas, centre: complex, length: float, width: float, axis: complex, colour: str) -> None:
    block(canvas, centre, length, width, axis, colour, 9.0)


HOMES = {
    "denseresidential": denseresidential,
    "mediumresidential": mediumresidential,
    "resort": resort,
    "sparseresidential": sparseresidential,
}
