"""Airport, port, railway station and parking lot."""

from __future__ import annotations

import math

from evidex.scenes.buildings import hall
from evidex.scenes.canvas import REACH, Canvas, rectangle
from evidex.scenes.captions import Facts, Phrase, counted
from evidex.scenes.materials import (
    ASPHALT,
    CONCRETE,
    PAINT,
    PAVED,
    SEA_COLOURS,
    WATER,
    YELLOW_PAINT,
    Material,
    varied,
)
from evidex.scenes.planting import avenue, lay
from evidex.scenes.surroundings import BUILT, MIXED, plant, surround
from evidex.scenes.vehicles import parked_rows, plane, ship, train
from evidex.scenes.ways import railway, road, stations, straight


def airport(canvas: Canvas) -> Facts:
    dice = canvas.dice
    lay(canvas, canvas.season.ground)
    apron = varied(CONCRETE, dice, 0.08)
    runways = dice.pick((0, 1, 1, 2))
    for i in range(runways):
        line = straight(complex(0, -72 - 34 * i), 1 + 0j)
        canvas.line(line, 20 - 6 * i, varied(ASPHALT, dice, 0.15))
        for at, axis in stations(line, 9.0):
            canvas.line((at - axis * 2.5, at + axis * 2.5), 0.7, PAINT)
    canvas.polygon(rectangle(4j, 330, 96), apron)
    for x in range(-150, 151, 15):  # slab joints
        canvas.line((complex(x, -44), complex(x, 52)), 0.3, apron.lit(0.9))
    canvas.line(straight(-34j, 1 + 0j), 0.8, YELLOW_PAINT)
    wanted = dice.whole(1, 14)
    length = dice.between(22, 34) if wanted > 7 else dice.between(28, 44)
    colour = dice.pick(("white", "white", "white", "gray", "blue"))
    rows = 2 if wanted > 6 else 1
    columns = math.ceil(wanted / rows)
    pitch = min(1.06 * length + 6, 176.0 / columns)
    length = min(length, pitch * 0.96)
    visible = 0
    for i in range(wanted):
        row, column = divmod(i, columns)
        jitter = complex(dice.between(-2, 2), dice.between(-2, 2))
        centre = complex((column - (columns - 1) / 2) * pitch, 30 - row * length * 1.15 if rows == 2 else 20) + jitter
        canvas.line((centre + 14j, centre - 24j), 0.5, YELLOW_PAINT.lit(0.9))
        plane(canvas, centre, 1j, length, colour)
        visible += canvas.in_view(centre)
    roof_colour = dice.pick(("white", "gray", "blue"))
    hall(canvas, complex(dice.between(-20, 20), 70), dice.between(110, 220), 24, 1 + 0j, roof_colour)
    planes = counted(visible, f"{colour} plane", dice)
    facts = Facts(
        subjects=[counted(visible, "plane", dice, exact=0.8), planes],
        around=[Phrase(dice.pick((f"a long {roof_colour} building", "a terminal building")), False)],
        attributes={"planes": visible, "plane_colour": colour, "runways": runways, "roof_colour": roof_colour},
    )
    facts.sentences += [
        f"{planes.text} {planes.are} parked next to a long building in an airport",
        f"{facts.subjects[0].text} {planes.are} parked on the open ground of an airport",
        f"{planes.text} {planes.are} stopped near a {roof_colour} terminal",
    ]
    if runways:
        ways = counted(runways, "runway", dice)
        facts.sentences.append(f"{planes.text} {planes.are} parked in an airport near {ways.text}")
        facts.around.append(ways)
    facts.coarse += [
        "it is an airport",
        "some planes are parked in an airport" if visible > 2 else "an airport with a terminal",
        "the airport has a large open space",
    ]
    surround(canvas, facts, 84j, options=("road", "parking", "trees", "bareland"), sides=(0, 1), directions=(1j,))
    plant(canvas, facts, dice.pick((0, 25)))
    return facts


def _ships_along(canvas: Canvas, shore: float, colour: str) -> int:
    """Large ships beside the wharf; how many are in view."""
    dice, visible = canvas.dice, 0
    for x in range(-105, 140, dice.whole(56, 80)):
        for row in range(dice.whole(1, 2)):
            spot = complex(x + dice.between(-8, 8), shore - 10 - row * 26)
            ship(canvas, spot, complex(dice.pick((1, -1)), 0), dice.between(44, 62), colour)
            visible += canvas.in_view(spot)
    return visible


def _boats_at_piers(canvas: Canvas, shore: float, wood: Material, colour: str) -> int:
    """Small boats on both sides of piers; how many are in view."""
    dice, visible = canvas.dice, 0
    boat = dice.between(9, 17)
    for x in range(-130, 150, dice.whole(44, 62)):
        pier = dice.between(50, 95)
        canvas.cast_line((complex(x, shore), complex(x, shore - pier)), 2.6, 2.0)
        canvas.line((complex(x, shore), complex(x, shore - pier)), 2.6, wood)
        for i in range(int(pier / (boat * 0.42))):
            for side in (-1.0, 1.0):
                if dice.chance(0.7):
                    spot = complex(x + side * (boat * 0.56 + 1.6), shore - 5 - i * boat * 0.42)
                    if canvas.near_view(spot, 8.0):
                        ship(canvas, spot, complex(-side, 0), boat * dice.between(0.75, 1.1), colour)
                        visible += canvas.in_view(spot)
    return visible


def port(canvas: Canvas) -> Facts:
    dice = canvas.dice
    colour = dice.pick(tuple(SEA_COLOURS))
    lay(canvas, varied(WATER.tinted(SEA_COLOURS[colour]), dice, 0.1))
    shore = dice.between(20, 46)
    quay = varied(CONCRETE, dice, 0.1)._replace(solid=False)
    canvas.polygon(rectangle(complex(0, shore + REACH / 2), 2 * REACH, REACH), quay)
    canvas.cast_line((complex(-REACH, shore), complex(REACH, shore)), 1.0, 3.0)
    large = dice.chance(0.4)
    ship_colour = dice.pick(("white", "white", "white", "blue", "gray", "red"))
    if large:
        visible = _ships_along(canvas, shore, ship_colour)
    else:
        visible = _boats_at_piers(canvas, shore, quay.tinted((176, 164, 146)), ship_colour)
    roof_colour = dice.pick(("white", "gray", "blue", "red"))
    halls = 0
    for x in range(-130, 150, 58):
        if dice.chance(0.8):
            spot = complex(x + dice.between(-8, 8), shore + dice.between(28, 40))
            hall(canvas, spot, dice.between(28, 48), dice.between(14, 22), 1 + 0j, roof_colour)
            halls += canvas.in_view(spot)
    noun = "ship" if large else "boat"
    ships = counted(visible, noun, dice, exact=0.8)
    coloured = counted(visible, f"{ship_colour} {noun}", dice)
    facts = Facts(
        subjects=[ships, coloured],
        around=[Phrase("a wharf" if large else "several piers", not large)],
        attributes={
            f"{noun}s": visible,
            "ship_colour": ship_colour,
            "water_colour": colour,
            "roof_colour": roof_colour,
            "buildings": halls,
        },
    )
    if halls:
        facts.around.append(counted(halls, f"{roof_colour} building", dice))
    facts.sentences += [
        f"{coloured.text} {coloured.are} docked in a port with {colour} water",
        f"{ships.text} {ships.are} docked on the {colour} water",
        f"{coloured.text} {coloured.are} {'along the wharf' if large else 'orderly moored at the piers'}",
        f"the water in the port is {colour}",
    ]
    facts.coarse += [
        f"it is a port with {noun}s",
        f"{noun}s are docked at the port",
        "the port is next to some buildings" if halls > 2 else "it is a port",
    ]
    if dice.chance(0.6):
        cars = road(canvas, straight(complex(0, shore + 62), 1 + 0j), 9.0)
        facts.note({"roads": 1, "cars": cars})
        facts.around.append(Phrase("a road", False))
    avenue(canvas, complex(-REACH, shore + 74), complex(REACH, shore + 74), 8.0)
    plant(canvas, facts, dice.pick((0, 20)))
    return facts


def railwaystation(canvas: Canvas) -> Facts:
    dice = canvas.dice
    lay(canvas, varied(PAVED, dice, 0.1))
    tracks = dice.whole(4, 12)
    pitch = 6.4
    half = tracks * pitch / 2
    facts = Facts(subjects=[Phrase("a railway station", False)])
    surround(canvas, facts, 1j * (half + 26), options=BUILT, sides=(1, 2), directions=(1j, -1j))
    canvas.polygon(rectangle(0j, 2.4 * REACH, 2 * half + 6), varied(PAVED, dice, 0.05).tinted((124, 112, 102)))
    trains = 0
    colour = dice.pick(("white", "white", "blue", "red", "gray"))
    for i in range(tracks):
        y = (i + 0.5) * pitch - half
        railway(canvas, straight(complex(0, y), 1 + 0j))
        if dice.chance(0.3) and trains < 6:
            cars = dice.whole(5, 14)
            start = dice.between(-100, 20)
            train(canvas, complex(start, y), 1 + 0j, cars, colour)
            trains += any(canvas.in_view(complex(start + 11.6 * k, y)) for k in range(cars))
    canopy = dice.pick(("white", "gray", "blue"))
    platforms = dice.whole(1, 3)
    for i in range(platforms):
        y = (i + 1) / (platforms + 1) * 2 * half - half
        hall(canvas, complex(dice.between(-15, 15), y), dice.between(90, 150), 7.5, 1 + 0j, canopy)
    hall(canvas, complex(0, half + 14), dice.between(60, 110), 18, 1 + 0j, canopy)
    plant(canvas, facts, dice.pick((10, 60)))
    facts.subjects.append(Phrase(f"a railway station with a {canopy} roof", False))
    facts.note({"tracks": tracks, "trains": trains, "roof_colour": canopy})
    rails = counted(tracks, "railway", dice)
    facts.sentences += [
        f"{rails.text} {rails.are} in a railway station",
        f"the railway station has a {canopy} station building beside the tracks",
        f"there are {rails.text} beside a {canopy} building",
    ]
    if trains:
        moving = counted(trains, f"{colour} train", dice)
        facts.attributes["train_colour"] = colour
        facts.sentences += [
            f"{moving.text} {moving.are} in a railway station",
            f"{moving.text} {moving.are} on the tracks beside a {canopy} building",
        ]
    else:
        facts.sentences.append("no train is on the tracks of the railway station")
    facts.coarse += [
        "it is a railway station",
        "the railway station has many tracks" if tracks > 9 else "a railway station",
    ]
    return facts


def parking(canvas: Canvas) -> Facts:
    dice = canvas.dice
    lay(canvas, canvas.season.ground)
    facts = Facts(subjects=[Phrase("a parking lot", False)])
    depth, length = 16.5 * dice.whole(5, 9), dice.between(170, 220)
    surround(
        canvas, facts, complex(length, depth) / 2 + 2 + 2j, options=[o for o in MIXED if o != "parking"], sides=(1, 2)
    )
    occupancy = dice.pick((0.008, 0.3, 0.6, 0.9))
    cars = parked_rows(canvas, 0j, length, depth, 1 + 0j, occupancy, varied(ASPHALT, dice, 0.2))
    if dice.chance(0.5):
        rows = int(depth / 16.5)
        for row in range(1, rows, 2):
            y = (row / rows - 0.5) * depth
            canvas.line((complex(-80, y), complex(80, y)), 2.4, canvas.season.ground)
            avenue(canvas, complex(-78, y), complex(78, y), 14.0, 2.8)
    plant(canvas, facts, dice.pick((0, 30, 80)))
    facts.note({"cars": cars, "parking_lots": 1})
    many = counted(cars, "car", dice)
    state = "full of cars" if occupancy > 0.8 else "half empty" if occupancy > 0.2 else "almost empty"
    facts.attributes["state"] = state
    facts.subjects.append(Phrase(f"a parking lot with {many.text}", False))
    facts.sentences += [f"the parking lot is {state}", f"{many.text} {many.are} parked in a parking lot"]
    facts.sentences += [
        f"a large parking lot is {state}",
        f"there {many.are} {many.text} in a parking lot with marked spaces",
    ]
    facts.coarse += [
        "it is a parking lot",
        "the parking lot is marked with white lines",
        "a parking lot with rows of spaces",
    ]
    return facts


TRANSPORT = {
    "airport": airport,
    "parking": parking,
    "port": port,
    "railwaystation": railwaystation,
}
