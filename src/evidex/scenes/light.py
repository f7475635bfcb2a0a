"""The light a scene was taken in: sun, haze, season and the camera's own tone."""

from __future__ import annotations

from dataclasses import dataclass

from evidex.scenes.dice import Dice
from evidex.scenes.materials import DRY_GRASS, GRASS, RGB, Material, mixed, varied


@dataclass(frozen=True)
class Light:
    """Shadows fall along ``away`` (a unit vector on the screen), ``reach`` units long for each unit of height."""

    away: complex
    reach: float
    depth: float
    exposure: float
    warmth: float
    saturation: float
    haze: float
    haze_rgb: RGB
    blur: float
    noise: float

    @classmethod
    def drawn(cls, dice: Dice) -> Light:
        return cls(
            away=dice.direction(),
            reach=dice.between(0.35, 1.05),
            depth=dice.between(0.45, 0.75),
            exposure=dice.between(0.74, 1.18),
            warmth=dice.between(-0.06, 0.08),
            saturation=dice.between(0.65, 1.15),
            haze=dice.between(0.0, 0.2) if dice.chance(0.6) else dice.between(0.0, 0.05),
            haze_rgb=dice.pick(((176, 190, 204), (196, 196, 196), (204, 198, 186), (150, 168, 190))),
            blur=dice.between(0.25, 0.75),
            noise=dice.between(1.0, 4.0),
        )


@dataclass(frozen=True)
class Season:
    """How green the land is: the open ground and the crowns of trees."""

    ground: Material
    crown: RGB

    @classmethod
    def drawn(cls, dice: Dice) -> Season:
        dryness = dice.random() ** 1.6
        ground = GRASS.tinted(mixed(GRASS.rgb, DRY_GRASS.rgb, dryness))
        crown = mixed(dice.pick(((40, 64, 36), (48, 76, 42), (36, 56, 40), (58, 76, 40))), (84, 88, 52), dryness * 0.4)
        return cls(ground=varied(ground, dice, 0.12), crown=crown)
