"""Beach, river and pond."""

from __future__ import annotations

import numpy as np

from evidex.scenes import noise
from evidex.scenes.buildings import house
from evidex.scenes.canvas import Canvas, blob
from evidex.scenes.captions import Facts, Phrase, counted
from evidex.scenes.kinds.crossings import bank
from evidex.scenes.materials import PATH, RGB, SEA_COLOURS, SOIL, WATER_COLOURS, Material, varied
from evidex.scenes.planting import grove, lay, scatter
from evidex.scenes.surroundings import describe_trees, plant, surround
from evidex.scenes.terrain import blend, world
from evidex.scenes.vehicles import ship
from evidex.scenes.ways import pond as draw_pond
from evidex.scenes.ways import river as draw_river
from evidex.scenes.ways import road, straight, winding


def beach(canvas: Canvas) -> Facts:
    dice = canvas.dice
    sea = dice.pick(tuple(SEA_COLOURS))
    sand = dice.pick(("yellow", "white", "gray"))
    behind = dice.pick(("trees", "buildings", "road", "bareland"))
    width, waves = _seashore(canvas, sea, sand, SOIL.rgb if behind == "bareland" else canvas.season.ground.rgb)
    facts = Facts(subjects=[Phrase(f"a {sand} beach", False), Phrase("a beach", False)])
    facts.around.append(Phrase(f"a piece of {sea} ocean", False))
    _behind_the_beach(canvas, facts, behind, width + 26)
    boats = dice.pick((0, 0, 1, 2, 3))
    for i in range(boats):
        spot = complex((i - 1) * 40 + dice.between(-10, 10), dice.between(-74, -50))
        ship(canvas, spot, dice.direction(), dice.between(8, 13), "white")
    if boats:
        floating = counted(boats, "white boat", dice)
        facts.sentences.append(f"{floating.text} {floating.are} in the {sea} ocean near a beach")
    plant(canvas, facts, dice.pick((0, 15)))
    facts.note({"boats": boats, "water_colour": sea, "sand_colour": sand, "waves": waves})
    foam = "a white wave is" if waves == 1 else "two white waves are" if waves == 2 else "several white waves are"
    facts.sentences += [
        f"{sand} beach is near a piece of {sea} ocean",
        f"{foam} between the {sea} ocean and the {sand} beach",
        f"a piece of {sea} ocean is near a {sand} beach",
        f"the sand is {sand} and the sea is {sea}",
    ]
    facts.coarse += [
        "it is a beach",
        "white waves roll to the beach" if waves > 1 else "a beach by the sea",
        "the beach is near the ocean",
    ]
    return facts


def _seashore(canvas: Canvas, sea: str, sand: str, back: RGB) -> tuple[float, int]:
    """Sea, waves, sand and what the land behind is covered with; the width of the sand, and the number of waves."""
    dice, size = canvas.dice, canvas.size
    sand_rgb: RGB = {"yellow": (206, 182, 136), "white": (224, 218, 204), "gray": (166, 158, 146)}[sand]
    _, across = world(canvas)
    shore = across + 9.0 * noise.swell(dice, size) + 0.8 * noise.mottle(dice, size) + dice.between(-16, 16)
    water = SEA_COLOURS[sea]
    shallow = (min(255, water[0] + 52), min(255, water[1] + 44), min(255, water[2] + 26))
    width = dice.between(18, 40)
    stops: list[tuple[float, RGB]] = [
        (-90, water),
        (-38, water),
        (-6, shallow),
        (-1, shallow),
        (1, (176, 164, 138)),
        (5, sand_rgb),
    ]
    stops += [(width, sand_rgb), (width + 5, back), (200, back)]
    picture = blend(stops, shore)
    waves = dice.whole(1, 4)
    broken = noise.swell(dice, size) * 4.0 + noise.mottle(dice, size) * 1.6
    for i in range(waves):
        crest = np.exp(-(((shore + 3.0 + i * dice.between(7, 11) + broken) / (1.6 if i else 2.2)) ** 2)) * (
            0.85 - 0.14 * i
        )
        picture += (np.array([240, 244, 244], dtype=np.float32) - picture) * (crest * (shore < 3))[..., None]
    canvas.paint(picture, Material(sand_rgb, grain=50, mottle=45, ripple=40, solid=False))
    canvas.keep_clear((shore < width + 3).astype(np.float32))
    return width, waves


def _behind_the_beach(canvas: Canvas, facts: Facts, behind: str, land: float) -> None:
    dice = canvas.dice
    if behind == "buildings":
        colour, buildings = dice.pick(("red", "white", "gray")), 0
        for x in range(-150, 151, 24):
            for dy in (0, 26):
                spot = complex(x + dice.between(-3, 3), land + dy)
                if canvas.near_view(spot) and canvas.is_free(spot, spot - 8j):
                    house(canvas, spot, 16, 12, 1 + 0j, colour)
                    buildings += canvas.in_view(spot)
        if buildings:
            facts.note({"buildings": buildings, "roof_colour": colour})
            facts.around.append(counted(buildings, f"{colour} building", dice))
    elif behind == "trees":
        for x in range(-150, 151, 18):
            grove(canvas, complex(x, land), 22, 6.0)
            grove(canvas, complex(x, land + 40), 26, 6.0)
    elif behind == "road":
        cars = road(canvas, straight(complex(0, land + 14), 1 + 0j), 9.0, 0.3)
        facts.note({"roads": 1, "cars": cars})
        facts.around.append(Phrase("a road", False))
    else:
        facts.around.append(Phrase("a piece of bareland", False))


def river(canvas: Canvas) -> Facts:
    dice = canvas.dice
    lay(canvas, canvas.season.ground)
    colour = dice.pick((*WATER_COLOURS, "green"))
    bend = dice.pick((4.0, 18.0, 30.0))
    width = dice.between(26, 64)
    facts = Facts(
        subjects=[
            Phrase(f"a {colour} river", False),
            Phrase("a curved river" if bend > 10 else "a straight river", False),
        ]
    )
    course = winding(canvas, complex(0, dice.between(-12, 12)), 1 + 0j, bend)
    draw_river(canvas, course, width, colour)
    islands = dice.pick((0, 0, 0, 1)) if width > 40 else 0
    if islands:
        middle = course[20]
        draw = [middle + complex(p.real, p.imag * 0.34) for p in _island(canvas)]
        canvas.polygon(draw, varied(SOIL, dice, 0.1)._replace(solid=False))
        for _ in range(14):
            canvas.tree(middle + complex(dice.between(-14, 14), dice.between(-3, 3)), 2.6)
        facts.sentences.append(f"a small island is in the {colour} river")
    sides = [dice.pick(("trees", "farmlands", "bareland", "houses", "trees")) for _ in range(2)]
    for sign, what in zip((1.0, -1.0), sides, strict=True):
        bank(canvas, facts, width / 2 + bend + 8, sign, "buildings" if what == "houses" else what)
    plant(canvas, facts, dice.pick((10, 50, 110)))
    buildings = facts.attributes.get("buildings", 0)
    if isinstance(buildings, int) and buildings:
        facts.around.append(counted(buildings, "building", dice))
    if "farmlands" in sides:
        facts.around.append(Phrase("some farmlands"))
    facts.note({"water_colour": colour, "islands": islands, "rivers": 1})
    facts.attributes["course"] = "curved" if bend > 10 else "straight"
    shape = "curved" if bend > 10 else "straight"
    facts.sentences += [
        f"a {shape} {colour} river goes through this area",
        f"the water of the {shape} river is {colour}",
        f"a {'wide' if width > 46 else 'narrow' if width < 36 else 'long'} {colour} river",
        f"a {shape} river flows through the land",
    ]
    facts.coarse += ["it is a river", "a river goes through", "a river with plants on its banks"]
    return facts


def _island(canvas: Canvas) -> list[complex]:
    return blob(0j, 26.0, canvas.dice, 0.3)


def pond(canvas: Canvas) -> Facts:
    dice = canvas.dice
    lay(canvas, canvas.season.ground)
    colour = dice.pick(tuple(WATER_COLOURS))
    count = dice.pick((1, 1, 1, 2, 3))
    facts = Facts(subjects=[])
    surround(
        canvas, facts, 74 + 74j, options=("road", "trees", "bareland", "farmland", "houses", "buildings"), sides=(0, 3)
    )
    for i in range(count):
        radius = dice.between(40, 58) if count == 1 else dice.between(23, 28) if count == 2 else dice.between(16, 20)
        spread = 74 if count == 2 else 58
        spot = complex((i - (count - 1) / 2) * spread, dice.between(-12, 12))
        draw_pond(canvas, spot, radius, colour, 0.45 if count == 1 else 0.3)
    ring = dice.pick(("trees", "path", "open"))
    if ring == "path" and count == 1:
        facts.around.append(Phrase("a path", False))
        canvas.line(winding(canvas, 68j, 1 + 0j, 3.0), 3.0, varied(PATH, dice, 0.08))
    elif ring == "trees":
        for _ in range(14):
            grove(canvas, dice.direction() * dice.between(62, 84), 15, 6.0)
    scatter(canvas, dice.pick((10, 40)), 3.4)
    describe_trees(canvas, facts)
    ponds = counted(count, "pond", dice, exact=0.9)
    coloured = counted(count, f"{colour} pond", dice, exact=0.9)
    facts.subjects = [ponds, coloured]
    facts.note({"ponds": count, "water_colour": colour})
    facts.sentences += [
        f"there {coloured.are} {coloured.text}",
        f"the water in {ponds.text} is {colour}",
        f"{counted(count, f'irregular {colour} pond', dice).text} {ponds.are} on the land",
        f"{ponds.text} with {colour} water",
    ]
    facts.coarse += [
        "it is a pond" if count == 1 else "there are ponds",
        "the shape of the pond is irregular" if count == 1 else "the ponds are irregular",
    ]
    return facts


SHORES = {"beach": beach, "pond": pond, "river": river}
