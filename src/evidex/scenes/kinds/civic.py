"""Center, church, school and square: one building or place in the middle."""

from __future__ import annotations

import math

from evidex.scenes.buildings import block, shaded_disc
from evidex.scenes.canvas import Canvas, capsule, oval, rectangle
from evidex.scenes.captions import Facts, Phrase, counted
from evidex.scenes.courts import TRACK, court, pitch
from evidex.scenes.materials import (
    CONCRETE,
    LAWN,
    PATH,
    PAVED,
    PAVING,
    POOL,
    ROOF,
    ROOF_COLOURS,
    mixed,
    roof,
    varied,
)
from evidex.scenes.planting import avenue, lay, scatter
from evidex.scenes.surroundings import BUILT, MIXED, describe_trees, surround
from evidex.scenes.vehicles import parked_rows


def center(canvas: Canvas) -> Facts:
    """Draw one large building of a striking shape in the middle of its grounds."""
    dice = canvas.dice
    lay(canvas, varied(PAVED, dice, 0.1) if dice.chance(0.5) else varied(LAWN, dice, 0.1))
    colour = dice.pick(("white", "gray", "blue", "brown"))
    shape = dice.pick(("round", "oval", "rectangular"))
    facts = Facts(
        subjects=[
            Phrase(f"a {colour} center building", False),
            Phrase(f"{'an' if shape == 'oval' else 'a'} {shape} building", False),
        ]
    )
    surround(canvas, facts, 70 + 70j, options=MIXED, sides=(2, 4))
    canvas.disc(0j, 66, varied(PAVING, dice, 0.08))
    rgb = roof(colour, dice).rgb
    if shape == "round":
        shaded_disc(canvas, 0j, dice.between(36, 48), 20.0, rgb)
    else:
        length, width = dice.between(84, 104), dice.between(50, 62)
        make = oval if shape == "oval" else rectangle
        canvas.cast(make(0j, length, width), 22.0)
        for i in range(6):
            shift = -canvas.light.away * canvas.turn.conjugate() * i * 1.5
            top = ROOF.tinted(rgb).lit(0.8 + 0.07 * i)
            canvas.polygon(make(shift, length * (1 - 0.13 * i), width * (1 - 0.13 * i)), top)
    ribs = dice.whole(8, 16)
    for i in range(ribs if shape == "round" else 0):
        a = 2 * math.pi * i / ribs
        canvas.line(
            (8 * complex(math.cos(a), math.sin(a)), 34 * complex(math.cos(a), math.sin(a))),
            0.5,
            ROOF.tinted(rgb).lit(0.75),
        )
    scatter(canvas, dice.pick((20, 60, 130)))
    describe_trees(canvas, facts)
    facts.note({"roof_colour": colour, "shape": shape})
    facts.sentences += [
        f"a large {shape} building with a {colour} roof is in the center",
        f"the center building is {shape} and {colour}",
        f"a {colour} {shape} center building stands on a round square",
        f"the roof of the {shape} center is {colour}",
    ]
    facts.coarse += ["it is a center building", "a large building is in the center", "the center has a special shape"]
    return facts


def church(canvas: Canvas) -> Facts:
    """Draw a cross-shaped church with a tower, the only building of that plan in the archive."""
    dice = canvas.dice
    lawn = dice.chance(0.5)
    lay(canvas, canvas.season.ground if lawn else varied(PAVED, dice, 0.1))
    colour = dice.pick(("red", "gray", "brown", "blue"))
    facts = Facts(subjects=[Phrase("a church", False), Phrase(f"a {colour} church", False)])
    surround(canvas, facts, 62 + 62j, options=MIXED if lawn else BUILT, sides=(2, 3))
    canvas.polygon(rectangle(0j, 112, 84), varied(LAWN if lawn else PAVED, dice, 0.08))
    canvas.line((0j, 160 + 0j), 6.0, varied(PATH, dice, 0.06))
    k = dice.between(0.85, 1.2)
    for centre, length, width, axis in ((0j, 64, 20, 1 + 0j), (-10 + 0j, 46, 16, 1j)):
        outline = rectangle(centre * k, length * k, width * k, axis)
        canvas.cast(outline, 13.0)
    tiles = roof(colour, dice)
    for centre, length, width, axis in ((-10 + 0j, 46, 16, 1j), (0j, 64, 20, 1 + 0j)):
        half = axis * 1j * width * k / 4
        canvas.polygon(
            rectangle(centre * k - half, length * k, width * k / 2, axis), tiles.lit(canvas.sunlit(-1j * axis))
        )
        canvas.polygon(
            rectangle(centre * k + half, length * k, width * k / 2, axis), tiles.lit(canvas.sunlit(1j * axis))
        )
    tower = rectangle(34 * k + 0j, 13 * k, 13 * k)
    canvas.cast(tower, 34.0)
    top = ROOF.tinted(mixed(tiles.rgb, (90, 100, 96), 0.35))
    for i in range(4):
        facing = (tower[i - 1] + tower[i]) / 2 - 34 * k
        canvas.polygon((tower[i - 1], tower[i], 34 * k + 0j), top.lit(canvas.sunlit(facing)))
    cars = 0
    if dice.chance(0.35):
        cars = parked_rows(canvas, -36 + 44j, 66, 16.5, 1 + 0j, 0.5)
        facts.note({"cars": cars, "parking_lots": 1})
        facts.around.append(Phrase("a small parking lot", False))
    scatter(canvas, dice.pick((12, 40, 110)), 3.8)
    describe_trees(canvas, facts)
    facts.note({"roof_colour": colour})
    facts.attributes["ground"] = "lawn" if lawn else "square"
    ground = "a lawn" if lawn else "an open square"
    facts.sentences += [
        f"a church with a {colour} roof is on {ground}",
        f"the {colour} roof of the church has the shape of a cross",
        f"a cross shaped church with a tower stands on {ground}",
        f"the church with a {colour} roof has a tall tower",
    ]
    facts.coarse += ["it is a church", "the church has a tower", "the church is like a cross"]
    return facts


def school(canvas: Canvas) -> Facts:
    dice = canvas.dice
    lay(canvas, varied(PAVED, dice, 0.1) if dice.chance(0.5) else canvas.season.ground)
    colour = dice.pick(tuple(ROOF_COLOURS))
    facts = Facts(subjects=[Phrase("a school", False)])
    surround(canvas, facts, 92 + 92j, options=BUILT, sides=(1, 2))
    pad = varied(PAVED, dice, 0.05)
    canvas.polygon(rectangle(44 + 0j, 78, 128), pad)
    track = dice.chance(0.7)
    heart = 44 + 8j
    if track:
        canvas.polygon(capsule(heart, 108, 60, 1j), TRACK)
        canvas.polygon(capsule(heart, 88, 40, 1j), LAWN._replace(solid=True))
    pitch(canvas, heart, 62 if track else 84, 32 if track else 46, 1j)
    courts = dice.whole(0, 3)
    for i in range(courts):
        court(canvas, complex(24 + 22 * i, -62), 20, 12, 1j, dice.pick(("green", "blue")), basketball=True)
    buildings = 0
    for i in range(dice.whole(2, 4)):
        centre = complex(-44, -66 + 44 * i)
        block(canvas, centre, dice.between(60, 76), 15, 1 + 0j, colour, 12.0)
        buildings += canvas.in_view(centre)
        if dice.chance(0.5):
            wing = centre + complex(dice.pick((-26, 26)), 18)
            block(canvas, wing, 22, 12, 1j, colour, 12.0)
    scatter(canvas, dice.pick((30, 70, 130)), 3.0)
    describe_trees(canvas, facts)
    halls = counted(buildings, f"{colour} building", dice)
    facts.note(
        {
            "teaching_buildings": buildings,
            "roof_colour": colour,
            "running_track": int(track),
            "basketball_courts": courts,
        }
    )
    yard = "a playground with a red track" if track else "a football field"
    facts.subjects.append(Phrase(f"a school with {yard}", False))
    if courts:
        facts.around.append(counted(courts, "basketball court", dice))
    facts.sentences += [
        f"{halls.text} and {yard} are in a school",
        f"a school with {colour} roofed teaching buildings",
        f"{yard} is beside {halls.text} in a school",
        f"{counted(buildings, 'teaching building', dice).text} with {colour} roofs are next to {yard}",
    ]
    facts.coarse += ["it is a school", "buildings and green trees are in a school", f"a school with {yard}"]
    return facts


def square(canvas: Canvas) -> Facts:
    dice = canvas.dice
    lay(canvas, varied(PAVED, dice, 0.1))
    facts = Facts(subjects=[Phrase("a square", False)])
    surround(canvas, facts, 66 + 66j, options=BUILT, sides=(2, 4))
    stone = varied(PAVING, dice, 0.1)
    half = dice.between(54, 62)
    canvas.polygon(rectangle(0j, 2 * half, 2 * half), stone)
    for i in range(1, 12):
        at = (i / 6 - 1) * half
        canvas.line((complex(at, -half), complex(at, half)), 0.5, stone.lit(0.86))
        canvas.line((complex(-half, at), complex(half, at)), 0.5, stone.lit(0.86))
    lawns = dice.pick((0, 2, 4, 8))
    places = [complex(x, y) for x in (-1, 1) for y in (-1, 1)] + [1, -1, 1j, -1j]
    turf = varied(LAWN, dice, 0.1)
    for place in places[:lawns]:
        canvas.polygon(rectangle(place * half * 0.64, 24, 24), turf)
        if dice.chance(0.6):
            avenue(canvas, place * half * 0.64 - 8, place * half * 0.64 + 8, 7.0, 2.6)
    middle = dice.pick(("fountain", "monument", "flower bed"))
    if middle == "fountain":
        canvas.disc(0j, 15, CONCRETE.lit(1.1))
        canvas.disc(0j, 12.5, POOL)
        canvas.disc(0j, 3.0, CONCRETE.lit(1.25))
    elif middle == "monument":
        canvas.disc(0j, 14, stone.lit(1.15))
        canvas.cast(rectangle(0j, 6, 6), 40.0)
        canvas.polygon(rectangle(0j, 6, 6), CONCRETE.lit(1.2))
    else:
        canvas.disc(0j, 15, LAWN._replace(solid=True))
        canvas.disc(0j, 11, LAWN.tinted((178, 84, 88))._replace(solid=True, grain=160))
        canvas.disc(0j, 5, LAWN.tinted((196, 168, 74))._replace(solid=True, grain=160))
    scatter(canvas, dice.pick((8, 30, 80)))
    describe_trees(canvas, facts)
    facts.subjects.append(Phrase(f"a square with a {middle}", False))
    facts.note({"middle": middle, "lawns": lawns})
    facts.sentences += [
        f"a {middle} is in the middle of a square",
        f"a large square with a {middle} in its center",
        f"the ground of the square around the {middle} is paved with bricks",
        f"{counted(lawns, 'lawn', dice).text} are in a square with a {middle}"
        if lawns
        else f"a {middle} stands on the open square",
    ]
    facts.coarse += ["it is a square", "a large square", "the square is paved with bricks"]
    return facts


CIVIC = {"center": center, "church": church, "school": school, "square": square}
