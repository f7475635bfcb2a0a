"""What surfaces are made of: a colour and how rough, patchy and wavy it is."""

from __future__ import annotations

from typing import NamedTuple

from evidex.scenes.dice import Dice

RGB = tuple[int, int, int]


class Material(NamedTuple):
    """A surface. ``grain``, ``mottle`` and ``ripple`` are texture strengths from 0 to 255; trees keep off ``solid``."""

    rgb: RGB
    grain: int = 60
    mottle: int = 60
    ripple: int = 0
    solid: bool = True

    def tinted(self, rgb: RGB) -> Material:
        return self._replace(rgb=rgb)

    def lit(self, gain: float) -> Material:
        return self._replace(rgb=scaled(self.rgb, gain))


def scaled(rgb: RGB, gain: float) -> RGB:
    r, g, b = rgb
    return (
        min(255, max(0, int(r * gain))),
        min(255, max(0, int(g * gain))),
        min(255, max(0, int(b * gain))),
    )


def mixed(a: RGB, b: RGB, share: float) -> RGB:
    """Return ``a`` with ``share`` of ``b``."""
    return (
        int(a[0] + (b[0] - a[0]) * share),
        int(a[1] + (b[1] - a[1]) * share),
        int(a[2] + (b[2] - a[2]) * share),
    )


def varied(material: Material, dice: Dice, amount: float = 0.1) -> Material:
    """Return the material a little lighter or darker, warmer or colder."""
    gain = 1.0 + dice.between(-amount, amount)
    warm = 1.0 + dice.between(-amount, amount) * 0.35
    r, g, b = material.rgb
    return material.tinted(
        (
            min(255, max(0, int(r * gain * warm))),
            min(255, max(0, int(g * gain))),
            min(255, max(0, int(b * gain / warm))),
        )
    )


GRASS = Material((84, 104, 60), grain=110, mottle=120, solid=False)
LAWN = Material((88, 122, 62), grain=70, mottle=60, solid=False)
DRY_GRASS = Material((132, 128, 86), grain=110, mottle=130, solid=False)
SOIL = Material((160, 136, 104), grain=90, mottle=130, solid=False)
PAVED = Material((150, 148, 142), grain=50, mottle=70, solid=False)
ASPHALT = Material((98, 98, 100), grain=40, mottle=55)
CONCRETE = Material((168, 166, 158), grain=35, mottle=65)
PAVING = Material((178, 168, 152), grain=60, mottle=45)
PATH = Material((186, 176, 156), grain=60, mottle=40)
PAINT = Material((222, 222, 216), grain=20, mottle=20)
YELLOW_PAINT = Material((206, 176, 74), grain=20, mottle=20)
RAIL = Material((134, 126, 118), grain=30, mottle=20)
BALLAST = Material((126, 112, 102), grain=110, mottle=60)
CLAY = Material((172, 112, 78), grain=45, mottle=55)
SAND = Material((206, 190, 156), grain=60, mottle=60)
WATER = Material((52, 82, 82), grain=8, mottle=30, ripple=90)
POOL = Material((84, 178, 204), grain=12, mottle=20, ripple=50)
ROOF = Material((140, 138, 136), grain=30, mottle=30)
GLASS = Material((58, 66, 76), grain=10, mottle=10)
HULL = Material((226, 226, 222), grain=12, mottle=12)

ROOF_COLOURS: dict[str, RGB] = {
    "red": (164, 84, 62),
    "gray": (128, 128, 132),
    "white": (220, 219, 214),
    "blue": (72, 112, 172),
    "brown": (120, 92, 70),
}
"""The colours that captions name; a drawn roof varies around its entry but is never nearer to another one."""

WATER_COLOURS: dict[str, RGB] = {"green": (58, 88, 66), "blue": (44, 80, 116), "dark green": (36, 58, 50)}
SEA_COLOURS: dict[str, RGB] = {"green": (48, 116, 112), "blue": (30, 82, 128), "dark blue": (22, 52, 88)}
CAR_COLOURS: tuple[RGB, ...] = (
    (226, 226, 224),
    (214, 214, 216),
    (160, 162, 166),
    (112, 114, 118),
    (52, 54, 58),
    (40, 42, 46),
    (140, 44, 40),
    (52, 76, 130),
    (196, 190, 176),
)


def roof(colour: str, dice: Dice) -> Material:
    return varied(ROOF.tinted(ROOF_COLOURS[colour]), dice, 0.12)
