"""Farmland, forest, meadow, bareland, desert and mountain."""

from __future__ import annotations

from evidex.scenes.buildings import house
from evidex.scenes.canvas import REACH, Canvas, blob, rectangle
from evidex.scenes.captions import Facts, Phrase, counted
from evidex.scenes.materials import LAWN, PATH, RGB, SOIL, Material, mixed, varied
from evidex.scenes.planting import avenue, grove, lay, scatter
from evidex.scenes.surroundings import crop, describe_trees, field, visible_trees
from evidex.scenes.ways import pond, river, road, straight, winding


def farmland(canvas: Canvas) -> Facts:
    dice = canvas.dice
    lay(canvas, canvas.season.ground)
    regular = dice.chance(0.6)
    fields = _fields(canvas, regular)
    facts = Facts(
        subjects=[
            Phrase("many pieces of farmland")
            if fields > 9
            else counted(fields, "piece of farmland", dice, "pieces of farmland")
        ]
    )
    _amid_farmland(canvas, facts)
    if dice.chance(0.5):
        y = dice.between(-70, 70)
        canvas.line((complex(-REACH, y), complex(REACH, y)), 5.0, canvas.season.ground)
        avenue(canvas, complex(-REACH, y), complex(REACH, y), 9.0)
    describe_trees(canvas, facts)
    facts.note({"fields": fields})
    facts.attributes["layout"] = "regular" if regular else "irregular"
    shape = "rectangular" if regular else "irregular"
    facts.sentences += [
        f"many pieces of {shape} farmlands are together" if fields > 9 else f"some {shape} farmlands are together",
        f"the farmland is divided into {shape} pieces",
        f"the {shape} fields have different colors",
        f"{facts.subjects[0].text} with straight furrows",
    ]
    facts.coarse += [
        "it is a piece of farmland",
        "the farmland has different colors",
        "farmlands are next to each other",
    ]
    return facts


def _fields(canvas: Canvas, regular: bool) -> int:
    """Fields side by side over the whole ground; how many of them are in view."""
    dice = canvas.dice
    y, fields = -REACH, 0
    while y < REACH:
        depth = dice.between(28, 64)
        x = -REACH - dice.between(0, 30)
        while x < REACH:
            width = dice.between(24, 60) if regular else dice.between(14, 100)
            middle = complex(x + width / 2, y + depth / 2)
            along = dice.pick((1 + 0j, 1j))
            sides = (width - 1.6, depth - 1.6) if along == 1 else (depth - 1.6, width - 1.6)
            if canvas.near_view(middle, 60):
                field(canvas, middle, *sides, along, crop(canvas))
                fields += canvas.in_view(middle)
            x += width
        y += depth
    return fields


def _amid_farmland(canvas: Canvas, facts: Facts) -> None:
    """A road, a river, a few houses, or nothing."""
    dice = canvas.dice
    extra = dice.pick(("road", "river", "house", "none", "road"))
    if extra == "road":
        cars = road(canvas, straight(complex(0, dice.between(-40, 40)), 1 + 0j), 7.0, 0.1)
        facts.note({"roads": 1, "cars": cars})
        facts.around.append(Phrase("a road", False))
        facts.sentences.append("a road goes through the farmland")
    elif extra == "river":
        river(canvas, winding(canvas, complex(0, dice.between(-20, 20)), 1 + 0j, 14.0), dice.between(14, 26), "green")
        facts.note({"rivers": 1})
        facts.around.append(Phrase("a river", False))
        facts.sentences.append("a river flows through the farmland")
    elif extra == "house":
        colour, houses = dice.pick(("red", "white", "gray")), dice.whole(1, 3)
        base = complex(dice.between(-40, 40), dice.between(-40, 40))
        canvas.polygon(blob(base, 24, dice), varied(SOIL, dice, 0.1))
        for i in range(houses):
            house(canvas, base + (i - 1) * 14, 11, 9, 1j, colour)
        homes = counted(houses, f"{colour} house", dice)
        facts.note({"houses": houses, "roof_colour": colour})
        facts.around.append(homes)
        facts.sentences.append(f"{homes.text} {homes.are} in the middle of the farmland")


def forest(canvas: Canvas) -> Facts:
    dice = canvas.dice
    floor = mixed(canvas.season.crown, (60, 58, 40), 0.5)
    lay(canvas, Material(floor, grain=120, mottle=120, solid=False))
    facts = Facts(subjects=[Phrase("a piece of forest", False), Phrase("many green trees")])
    extra = dice.pick(("none", "none", "road", "river", "clearing", "pond"))
    if extra == "road":
        canvas.line(winding(canvas, complex(0, dice.between(-40, 40)), 1 + 0j, 18.0), 5.0, varied(PATH, dice, 0.1))
        facts.around.append(Phrase("a winding road", False))
        facts.sentences.append("a narrow road goes through the forest")
    elif extra == "river":
        river(
            canvas, winding(canvas, complex(0, dice.between(-30, 30)), 1 + 0j, 18.0), dice.between(12, 22), "dark green"
        )
        facts.around.append(Phrase("a river", False))
        facts.sentences.append("a dark green river goes through the forest")
    elif extra == "clearing":
        spot = complex(dice.between(-40, 40), dice.between(-40, 40))
        canvas.polygon(blob(spot, dice.between(24, 38), dice, 0.4), varied(SOIL, dice, 0.1)._replace(solid=True))
        facts.around.append(Phrase("a piece of bareland", False))
        facts.sentences.append("a piece of bareland is in the forest")
    elif extra == "pond":
        pond(canvas, complex(dice.between(-40, 40), dice.between(-40, 40)), dice.between(20, 32), "dark green")
        facts.note({"ponds": 1})
        facts.around.append(Phrase("a pond", False))
        facts.sentences.append("a dark green pond is in the forest")
    dense = dice.chance(0.65)
    step = dice.between(6.4, 8.0) if dense else dice.between(9.5, 12.0)
    autumn = dice.chance(0.2)
    warm: RGB = (126, 102, 48)
    crown = canvas.season.crown
    reach = int(REACH / step) + 1
    for i in range(-reach, reach + 1):
        for j in range(-reach, reach + 1):
            spot = step * complex(i + 0.5 * (j % 2) + dice.between(-0.45, 0.45), j + dice.between(-0.45, 0.45))
            rgb = mixed(crown, warm, dice.random() * 0.8) if autumn and dice.chance(0.4) else None
            canvas.tree(spot, step * dice.between(0.42, 0.72), rgb)
    facts.attributes.update({"extra": extra, "density": "dense" if dense else "sparse", "trees": visible_trees(canvas)})
    facts.attributes["season"] = "autumn" if autumn else "green"
    word = "dense" if dense else "sparse"
    facts.sentences += [
        f"many {'green and yellow' if autumn else 'dark green'} trees are in a piece of {word} forest",
        f"the {word} forest is {'green and yellow' if autumn else 'green'}",
        f"it is a {word} forest with {'green and yellow' if autumn else 'green'} trees",
        f"a {word} forest covers the land",
        f"a {'green and yellow' if autumn else 'green'} forest is here",
    ]
    facts.coarse += ["it is a piece of green forest", "many green trees are in a forest", "the forest is full of trees"]
    if autumn:
        facts.coarse[0] = "it is a piece of forest"
    return facts


def meadow(canvas: Canvas) -> Facts:
    dice = canvas.dice
    colour = dice.pick(("green", "green", "dark green", "yellow"))
    rgb = {"green": (92, 128, 66), "dark green": (52, 88, 50), "yellow": (158, 148, 86)}[colour]
    grass = varied(LAWN.tinted(rgb), dice, 0.06)._replace(grain=130, mottle=110)
    lay(canvas, grass)
    pattern = dice.pick(("stripes", "plain", "plain"))
    if pattern == "stripes":
        pitch = dice.between(7, 15)
        for i in range(int(2 * REACH / pitch)):
            y = i * pitch - REACH
            canvas.line((complex(-REACH, y), complex(REACH, y)), pitch * 0.45, grass.lit(0.91))
    facts = Facts(subjects=[Phrase(f"a piece of {colour} meadow", False), Phrase("a meadow", False)])
    extra = dice.pick(("none", "trees", "road", "path", "bareland", "pond"))
    if extra == "trees":
        for x in range(-150, 151, 20):
            grove(canvas, complex(x, dice.between(80, 90)), 20, 6.5)
        facts.sentences.append(f"a row of woods is beside the {colour} meadow")
    elif extra == "road":
        cars = road(canvas, straight(complex(0, dice.between(-60, 60)), 1 + 0j), 8.0, 0.15)
        facts.note({"roads": 1, "cars": cars})
        facts.around.append(Phrase("a road", False))
        facts.sentences.append(f"a road goes through the {colour} meadow")
    elif extra == "path":
        canvas.line(winding(canvas, complex(0, dice.between(-40, 40)), 1 + 0j, 16.0), 2.2, varied(SOIL, dice, 0.1))
        facts.around.append(Phrase("a narrow path", False))
        facts.sentences.append(f"a narrow path is on the {colour} meadow")
    elif extra == "bareland":
        canvas.polygon(rectangle(complex(0, dice.between(90, 110)), 2 * REACH, 80), varied(SOIL, dice, 0.1))
        facts.around.append(Phrase("a piece of bareland", False))
    elif extra == "pond":
        pond(canvas, complex(dice.between(-40, 40), dice.between(-40, 40)), dice.between(14, 24), "green")
        facts.note({"ponds": 1})
        facts.around.append(Phrase("a pond", False))
        facts.sentences.append(f"a pond is in the {colour} meadow")
    scatter(canvas, dice.pick((0, 0, 8, 20)), 3.6)
    describe_trees(canvas, facts)
    trees = int(facts.attributes["trees"])
    facts.attributes.update({"meadow_colour": colour, "pattern": pattern, "extra": extra})
    facts.sentences += [
        f"it is a piece of {colour} meadow",
        f"{'straight stripes are on' if pattern == 'stripes' else 'short grass grows on'} the {colour} meadow",
        f"the meadow is {colour}" + (" with straight stripes" if pattern == "stripes" else ""),
        f"a large {colour} meadow"
        + (" without trees" if trees < 1 else " with several trees" if 3 <= trees < 10 else ""),
    ]
    facts.coarse += ["it is a meadow", "a large piece of meadow", "the meadow is flat", "grass covers the land"]
    return facts


LAND = {"farmland": farmland, "forest": forest, "meadow": meadow}
