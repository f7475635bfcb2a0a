"""Stadium, playground, baseball field, tennis courts and park."""

from __future__ import annotations

import cmath
import math

from evidex.scenes.canvas import Canvas, oval, rectangle
from evidex.scenes.captions import Facts, Phrase, counted
from evidex.scenes.courts import TRACK, court, diamond, outline, pitch, running_track
from evidex.scenes.materials import (
    CLAY,
    CONCRETE,
    LAWN,
    PATH,
    PAVED,
    ROOF_COLOURS,
    WATER_COLOURS,
    Material,
    scaled,
    varied,
)
from evidex.scenes.planting import grove, lay, scatter
from evidex.scenes.surroundings import BUILT, MIXED, describe_trees, surround
from evidex.scenes.ways import pond, winding


def stadium(canvas: Canvas) -> Facts:
    dice = canvas.dice
    lay(canvas, varied(PAVED, dice, 0.1) if dice.chance(0.5) else canvas.season.ground)
    colour = dice.pick(("white", "gray", "blue", "red"))
    length, width = dice.between(142, 158), dice.between(108, 124)
    facts = Facts(subjects=[Phrase("a stadium", False), Phrase(f"a {colour} stadium", False)])
    surround(canvas, facts, 92 + 76j, options=MIXED, sides=(1, 3))
    canvas.polygon(oval(0j, length + 22, width + 22), varied(PATH, dice, 0.06))
    canvas.cast(oval(0j, length, width), 22.0)
    stands = Material(ROOF_COLOURS[colour], grain=25, mottle=25)
    sectors = 40
    inner_length, inner_width = length - 52, width - 46
    outer, inner = oval(0j, length, width, corners=sectors), oval(0j, inner_length, inner_width, corners=sectors)
    for i in range(sectors):
        facing = cmath.exp(2j * math.pi * (i - 0.5) / sectors)
        lit = stands.lit(2.0 - canvas.sunlit(facing) + (0.05 if i % 2 else 0.0))
        canvas.polygon((outer[i - 1], outer[i], inner[i], inner[i - 1]), lit)
    for k in range(1, 5):
        ring = oval(0j, length - 10 * k, width - 9 * k)
        outline(canvas, ring, 0.5, stands.lit(0.8))
    track = dice.chance(0.55)
    canvas.polygon(inner, TRACK if track else varied(LAWN, dice, 0.1))
    pitch(canvas, 0j, inner_length * (0.66 if track else 0.78), inner_width * 0.62, 1 + 0j)
    scatter(canvas, dice.pick((10, 50, 130)))
    describe_trees(canvas, facts)
    facts.note({"roof_colour": colour, "running_track": int(track)})
    field = "a football field with a red track" if track else "a green football field"
    facts.sentences += [
        f"a large oval stadium with {colour} stands",
        f"{field} is in the middle of the stadium",
        f"the stands of the stadium are {colour}",
        f"a {colour} stadium with {field} in it",
    ]
    facts.coarse += ["it is a stadium", "a large stadium", "the stadium is oval", "a football field is in the stadium"]
    return facts


def playground(canvas: Canvas) -> Facts:
    dice = canvas.dice
    lay(canvas, varied(PAVED, dice, 0.1) if dice.chance(0.4) else canvas.season.ground)
    length, width = dice.between(136, 156), dice.between(76, 92)
    courts = dice.pick((0, 0, 2, 3))
    facts = Facts(subjects=[Phrase("a playground", False), Phrase("a football field", False)])
    surround(canvas, facts, complex(84, 76 if courts else 54), options=BUILT, sides=(2, 3))
    track = dice.pick(("red", "red", "gray", "blue"))
    surface = {"red": TRACK, "gray": CONCRETE.lit(0.75), "blue": TRACK.tinted((76, 116, 160))}[track]
    running_track(canvas, length, width, varied(surface, dice, 0.06))
    pitch(canvas, 0j, length * 0.58, width - 30, 1 + 0j)
    for i in range(courts):
        court(canvas, complex((i - (courts - 1) / 2) * 34, -width / 2 - 14), 28, 17, 1 + 0j, "green", basketball=True)
    scatter(canvas, dice.pick((10, 50, 120)))
    describe_trees(canvas, facts)
    facts.note({"track_colour": track, "basketball_courts": courts})
    if courts:
        facts.around.append(counted(courts, "basketball court", dice))
    facts.sentences += [
        f"a playground with a {track} track and a green football field",
        f"a football field is surrounded by a {track} runway",
        f"the track of the playground is {track}",
        f"there is a {track} runway around the green field",
    ]
    facts.coarse += ["it is a playground", "a playground with a football field in it", "the playground is oval"]
    return facts


def baseballfield(canvas: Canvas) -> Facts:
    dice = canvas.dice
    lay(canvas, canvas.season.ground)
    fields = dice.pick((1, 1, 2, 4))
    facts = Facts(subjects=[])
    surround(canvas, facts, 78 + 78j, options=MIXED, sides=(0, 2))
    clay = varied(CLAY, dice, 0.1)
    radius = 86.0 if fields == 1 else 60.0
    homes = {
        1: [(-34 - 34j, 1 + 1j)],
        2: [(-66 - 30j, 1 + 1j), (66 + 30j, -1 - 1j)],
        4: [(-9 - 9j, -1 - 1j), (9 - 9j, 1 - 1j), (-9 + 9j, -1 + 1j), (9 + 9j, 1 + 1j)],
    }[fields]
    for home, towards in homes:
        diamond(canvas, home, towards / abs(towards), radius, clay)
    scatter(canvas, dice.pick((12, 50, 140)))
    describe_trees(canvas, facts)
    subject = counted(fields, "baseball field", dice)
    facts.subjects = [subject]
    facts.note({"baseball_fields": fields})
    facts.sentences += [
        f"{counted(fields, 'fan shaped baseball field', dice).text} {subject.are} on the green land",
        f"{subject.text} {subject.are} made up of green grass and brown clay",
        f"there {subject.are} {subject.text}",
        f"{subject.text} {'form a circle' if fields == 4 else 'with white lines'}",
    ]
    if fields == 1:
        facts.coarse += ["it is a baseball field", "the baseball field is like a fan", "a baseball field"]
    else:
        facts.coarse += ["there are baseball fields", "the baseball fields are like fans", "baseball fields are here"]
    return facts


def tenniscourt(canvas: Canvas) -> Facts:
    dice = canvas.dice
    lay(canvas, canvas.season.ground if dice.chance(0.6) else varied(PAVED, dice, 0.1))
    columns, rows = dice.pick(((1, 1), (2, 1), (3, 1), (4, 1), (2, 2), (3, 2), (4, 2)))
    count = columns * rows
    colour = dice.pick(("green", "blue", "red"))
    length = 58.0 if count <= 2 else 50.0 if rows == 1 else 40.0
    width = length * 0.46
    half = rows * length * 1.3 / 2
    facts = Facts(subjects=[])
    surround(canvas, facts, complex(columns * width * 0.75, half) + 12 + 8j, options=MIXED, sides=(1, 3))
    canvas.polygon(
        rectangle(0j, columns * width * 1.5 + 8, rows * length * 1.3 + 6), Material(scaled((120, 122, 118), 0.95))
    )
    for i in range(columns):
        for j in range(rows):
            spot = complex((i - (columns - 1) / 2) * width * 1.5, (j - (rows - 1) / 2) * length * 1.3)
            court(canvas, spot, length, width, 1j, colour)
    scatter(canvas, dice.pick((12, 60, 140)))
    describe_trees(canvas, facts)
    courts = counted(count, "tennis court", dice, exact=0.85)
    coloured = counted(count, f"{colour} tennis court", dice, exact=0.85)
    facts.subjects = [courts, coloured]
    facts.note({"tennis_courts": count, "court_colour": colour})
    layout = "in two rows" if rows == 2 else "in a row" if count > 1 else "here"
    facts.sentences += [
        f"{coloured.text} with white lines {coloured.are} in the middle",
        f"there {courts.are} {courts.text}",
        f"{courts.text} {courts.are} {layout}",
        f"the ground of {courts.text} is {colour}",
    ]
    one = count == 1
    facts.coarse += [f"it is {'a tennis court' if one else 'an area of tennis courts'}", "people can play tennis here"]
    facts.coarse.append("a tennis court with white lines" if one else "tennis courts are arranged neatly")
    return facts


def park(canvas: Canvas) -> Facts:
    dice = canvas.dice
    lay(canvas, varied(LAWN, dice, 0.12))
    colour = dice.pick(tuple(WATER_COLOURS))
    facts = Facts(subjects=[Phrase("a park", False)])
    surround(canvas, facts, 80 + 80j, options=BUILT, sides=(1, 3))
    trail = varied(PATH, dice, 0.08)
    ponds = dice.pick((0, 1, 1, 2))
    for i in range(dice.whole(2, 4)):
        axis = cmath.exp(1j * dice.between(0, math.pi))
        canvas.line(winding(canvas, axis * 1j * (i - 1) * 26, axis, 16.0), dice.between(2.4, 4.0), trail)
    for i in range(ponds):
        spot = complex((i - (ponds - 1) / 2) * 76 + dice.between(-10, 10), dice.between(-18, 18))
        pond(canvas, spot, dice.between(24, 36), colour, 0.4)
    square = dice.chance(0.5)
    if square:
        heart = complex(dice.between(-20, 20), dice.pick((-62, 62)))
        canvas.disc(heart, 17, trail)
        canvas.disc(heart, 11, varied(PAVED, dice, 0.1)._replace(solid=True))
        canvas.disc(heart, 4, trail)
    for _ in range(dice.whole(10, 22)):
        grove(canvas, complex(dice.between(-120, 120), dice.between(-120, 120)), dice.between(10, 24), 6.5, 3.8)
    describe_trees(canvas, facts)
    facts.note({"ponds": ponds, "squares": int(square)})
    facts.sentences += ["curved paths and green trees are in a park", "winding paths pass through the lawn of a park"]
    if ponds:
        water = counted(ponds, f"{colour} pond", dice)
        facts.attributes["water_colour"] = colour
        facts.subjects.append(Phrase(f"a park with {counted(ponds, 'pond', dice).text}", False))
        facts.sentences += [
            f"{water.text} {water.are} in a park with many green trees",
            f"trees are planted around {water.text} in the park",
        ]
    else:
        facts.sentences.append("a park without water is covered with lawn and trees")
    if square:
        facts.sentences.append("a round square is in the park with green trees")
    facts.coarse += ["it is a park", "many green trees are in a park", "a park with paths and green trees"]
    return facts


SPORT = {
    "baseballfield": baseballfield,
    "park": park,
    "playground": playground,
    "stadium": stadium,
    "tenniscourt": tenniscourt,
}
