"""One rendered scene: a kind, its picture, five captions and the facts they rest on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evidex.data.objects import FoundObject
from evidex.errors import InputError
from evidex.scenes.canvas import Canvas
from evidex.scenes.captions import Attribute, Facts, five
from evidex.scenes.develop import develop
from evidex.scenes.dice import Dice
from evidex.scenes.kinds.city import CITY
from evidex.scenes.kinds.civic import CIVIC
from evidex.scenes.kinds.crossings import CROSSINGS
from evidex.scenes.kinds.homes import HOMES
from evidex.scenes.kinds.land import LAND
from evidex.scenes.kinds.relief import RELIEF
from evidex.scenes.kinds.sport import SPORT
from evidex.scenes.kinds.transport import TRANSPORT
from evidex.scenes.kinds.water import SHORES
from evidex.scenes.light import Light, Season

_DRAW: dict[str, Callable[[Canvas], Facts]] = dict(
    sorted({**CITY, **CIVIC, **CROSSINGS, **HOMES, **LAND, **RELIEF, **SHORES, **SPORT, **TRANSPORT}.items())
)
KINDS: tuple[str, ...] = tuple(_DRAW)
SMALLEST, LARGEST = 32, 2048


@dataclass(frozen=True)
class Scene:
    """A rendered scene; ``image`` is (size, size, 3) RGB, ``attributes`` say what was drawn."""

    kind: str
    image: NDArray[np.uint8]
    captions: tuple[str, ...]
    attributes: Mapping[str, Attribute]
    objects: tuple[FoundObject, ...] = ()
    """What of DOTA's classes was drawn, and where."""


def render_scene(kind: str, rng: np.random.Generator, size: int = 224) -> Scene:
    """Draw one scene of ``kind``; everything random in it comes from ``rng``."""
    if kind not in _DRAW:
        raise InputError(f"{kind!r} is not a kind of scene; choose one of {', '.join(KINDS)}")
    if not SMALLEST <= size <= LARGEST:
        raise InputError(f"size {size} is out of range; choose {SMALLEST} to {LARGEST} pixels")
    dice = Dice(rng)
    canvas = Canvas(size, dice, Light.drawn(dice), Season.drawn(dice))
    facts = _DRAW[kind](canvas)
    captions = five(facts, dice)
    image = develop(canvas)
    return Scene(kind, image, captions, attributes=facts.attributes, objects=tuple(canvas.objects))
