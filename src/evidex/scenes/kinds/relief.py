"""Bareland, desert and mountain: scenes that the land itself shapes."""

from __future__ import annotations

import numpy as np

from evidex.scenes import noise
from evidex.scenes.canvas import Canvas
from evidex.scenes.captions import Facts, Phrase, counted
from evidex.scenes.materials import PATH, RGB, SOIL, Material, varied
from evidex.scenes.planting import lay, scatter
from evidex.scenes.surroundings import describe_trees, surround
from evidex.scenes.terrain import blend, hillshade, world
from evidex.scenes.ways import river as draw_river
from evidex.scenes.ways import winding


def bareland(canvas: Canvas) -> Facts:
    dice = canvas.dice
    colour = dice.pick(("khaki", "brown", "gray", "red"))
    rgb = {"khaki": (184, 164, 122), "brown": (136, 108, 82), "gray": (150, 146, 138), "red": (168, 108, 82)}[colour]
    soil = varied(SOIL.tinted(rgb), dice, 0.06)._replace(mottle=150, grain=120)
    lay(canvas, soil, trails=False)
    facts = Facts(subjects=[Phrase(f"a piece of {colour} bareland", False), Phrase("a bareland", False)])
    trails = dice.whole(0, 4)
    for _ in range(trails):
        axis = dice.direction()
        canvas.line(
            winding(canvas, axis * 1j * dice.between(-60, 60), axis, 12.0), dice.between(1.4, 3.0), soil.lit(1.14)
        )
    surround(canvas, facts, 70 + 70j, options=("road", "trees", "buildings", "pond"), sides=(0, 1))
    scatter(canvas, dice.pick((0, 0, 10, 30)), 2.4)
    describe_trees(canvas, facts)
    facts.note({"trails": trails, "land_colour": colour})
    lines = counted(trails, "trail", dice) if trails else Phrase("no trails")
    facts.sentences += [
        f"it is a piece of {colour} bareland",
        f"{lines.text} {lines.are} on the {colour} bareland",
        f"the land is {colour} and bare",
        f"there {lines.are} {lines.text} across a large piece of bareland",
        f"the {colour} ground is {'crossed by trails' if trails > 1 else 'almost empty'}",
    ]
    facts.coarse += ["it is a large piece of bareland", "the bareland is very empty", "a piece of bareland"]
    return facts


def desert(canvas: Canvas) -> Facts:
    dice, size = canvas.dice, canvas.size
    colour = dice.pick(("yellow", "orange", "white", "gray"))
    rgb: RGB = {"yellow": (208, 176, 118), "orange": (204, 142, 88), "white": (212, 206, 192), "gray": (166, 156, 142)}[
        colour
    ]
    form = dice.pick(("ridges", "ripples", "flat"))
    _, across = world(canvas)
    bends = noise.swell(dice, size)
    if form == "ridges":
        phase = across / dice.between(5, 8) + 2.6 * bends + 0.2 * noise.mottle(dice, size)
        wave = (phase / (2 * np.pi)) % 1.0
        height = np.where(wave < 0.75, wave / 0.75, (1.0 - wave) / 0.25) * 5.0 * (1.0 + 0.5 * noise.swell(dice, size))
    elif form == "ripples":
        height = 1.5 * np.sin(across / dice.between(1.1, 1.8) + 2.0 * bends) + 4.0 * noise.relief(dice, size)
    else:
        height = 7.0 * noise.relief(dice, size)
    light = hillshade(canvas, height.astype(np.float32), 0.9 if form == "ridges" else 0.5)
    picture = np.array(rgb, dtype=np.float32) * light[..., None] * (1.0 + 0.03 * bends[..., None])
    canvas.paint(picture, Material(rgb, grain=60, mottle=70, solid=False))
    facts = Facts(subjects=[Phrase(f"a piece of {colour} desert", False), Phrase("a desert", False)])
    extra = dice.pick(("none", "none", "road", "plants"))
    if extra == "road":
        canvas.line(winding(canvas, complex(0, dice.between(-50, 50)), 1j, 8.0), 5.0, Material((112, 106, 100), 40, 40))
        facts.around.append(Phrase("a road", False))
        facts.sentences.append(f"a road goes through the {colour} desert")
    elif extra == "plants":
        scatter(canvas, dice.whole(20, 60), 1.7, (86, 88, 56))
        facts.sentences.append(f"some green plants are scattered on the {colour} desert")
    facts.attributes.update({"land_colour": colour, "form": form, "extra": extra})
    shape = {"ridges": "wavy dunes", "ripples": "small ripples", "flat": "gentle hills"}[form]
    facts.sentences += [
        f"it is a piece of {colour} desert",
        f"there are {shape} in the {colour} desert",
        f"{shape} are in a desert",
        f"the {colour} desert has {shape}",
        f"the sand of the desert is {colour}",
        f"a vast {colour} desert",
    ]
    facts.coarse += ["it is a desert", "it is a vast desert", "the desert is very large"]
    return facts


def mountain(canvas: Canvas) -> Facts:
    dice, size = canvas.dice, canvas.size
    cover = dice.pick(("green", "brown", "snow", "gray"))
    base = (
        noise.swell(dice, size) * 0.6
        - np.abs(noise.massif(dice, size)) * 1.2
        - np.abs(noise.massif(dice, size)) * 0.6
        - np.abs(noise.mottle(dice, size)) * dice.between(0.01, 0.06)
    )
    height = (base - base.min()) / (base.max() - base.min())
    light = hillshade(canvas, np.asarray(height, dtype=np.float32), dice.between(28.0, 60.0))
    ramps: dict[str, list[tuple[float, RGB]]] = {
        "green": [(0.2, (48, 68, 44)), (0.6, (66, 88, 54)), (0.9, (100, 104, 70))],
        "brown": [(0.2, (112, 88, 66)), (0.6, (146, 116, 86)), (0.95, (176, 150, 116))],
        "snow": [(0.3, (92, 86, 78)), (0.56, (118, 112, 104)), (0.66, (228, 230, 236)), (1.0, (246, 247, 250))],
        "gray": [(0.2, (96, 94, 88)), (0.6, (132, 128, 122)), (0.95, (168, 164, 156))],
    }
    picture = (
        blend(ramps[cover], height - np.median(height) + 0.56 + 0.04 * noise.mottle(dice, size)) * light[..., None]
    )
    canvas.paint(picture, Material((0, 0, 0), grain=110, mottle=70, solid=False))
    facts = Facts(
        subjects=[
            Phrase("some mountains"),
            Phrase({"snow": "a snow mountain"}.get(cover, f"a {cover} mountain"), False),
        ]
    )
    extra = dice.pick(("none", "road", "river", "none"))
    if extra == "road":
        canvas.line(winding(canvas, complex(0, dice.between(-30, 30)), 1 + 0j, 20.0), 2.6, varied(PATH, dice, 0.06))
        facts.around.append(Phrase("a winding road", False))
        facts.sentences.append("a winding road is in the mountains")
    elif extra == "river":
        line = winding(canvas, complex(0, dice.between(-30, 30)), 1 + 0j, 20.0)
        draw_river(canvas, line, dice.between(7, 12), "green")
        facts.around.append(Phrase("a river", False))
        facts.sentences.append("a green river flows through the mountains")
    facts.attributes.update({"cover": cover, "extra": extra})
    words = {"green": "green plants", "brown": "brown soil", "snow": "white snow", "gray": "gray rocks"}[cover]
    facts.sentences += [
        f"the mountains are covered with {words}",
        f"it is a piece of mountain with {words}",
        f"ridges and valleys of the mountain are covered with {words}",
        f"{words} cover a large piece of mountain"
        if cover in ("green", "gray")
        else f"{words} covers a large piece of mountain",
        f"the mountain with {words} has dark shadows",
    ]
    facts.coarse += ["it is a piece of mountain", "the mountains are rugged", "the mountain is very high"]
    return facts


RELIEF = {"bareland": bareland, "desert": desert, "mountain": mountain}
