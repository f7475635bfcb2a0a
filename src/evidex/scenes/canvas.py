"""A drawing surface in scene units that remembers texture, shadow and where trees may stand.

World points are complex numbers in scene units around the middle of the image, x to the right and y downwards. The
whole world is turned by ``turn`` before it is drawn, so a layout may assume its own axes; anything that has to fill
the image must reach 160 units from the middle.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from PIL import Image, ImageDraw

from evidex.data.objects import FoundObject
from evidex.scenes.dice import Dice
from evidex.scenes.light import Light, Season
from evidex.scenes.materials import RGB, Material
from evidex.scenes.noise import EDGE, Field

REACH = 160.0
"""Half the side of a square that covers the image at any turn."""

OVERSAMPLING = 3


class Tree:
    """One crown, in pixels of the finished image."""

    __slots__ = ("radius", "rgb", "x", "y")

    def __init__(self, x: float, y: float, radius: float, rgb: tuple[float, float, float]) -> None:
        self.x, self.y, self.radius, self.rgb = x, y, radius, rgb


class Canvas:
    def __init__(self, size: int, dice: Dice, light: Light, season: Season, turn: complex | None = None) -> None:
        self.size = size
        self.dice = dice
        self.light = light
        self.season = season
        self.turn = dice.direction() if turn is None else turn
        fine = size * OVERSAMPLING
        self.colour = Image.new("RGB", (fine, fine))
        self.texture = Image.new(
            "CMYK", (fine, fine)
        )  # four plain channels; RGBA would be weighted by alpha when reduced
        self.shade = Image.new("L", (fine, fine))
        self._on_colour = ImageDraw.Draw(self.colour)
        self._on_texture = ImageDraw.Draw(self.texture)
        self._on_shade = ImageDraw.Draw(self.shade)
        self._scale = fine / EDGE
        self._middle = fine / 2.0
        self._linear = self.turn * self._scale
        self.trees: list[Tree] = []
        self.objects: list[FoundObject] = []

    def fill(self, material: Material) -> None:
        """Cover everything, as the ground does."""
        everywhere = (0, 0, self.colour.width, self.colour.height)
        self.colour.paste(material.rgb, everywhere)
        self.texture.paste(_texture(material), everywhere)

    def paint(self, picture: Field, material: Material) -> None:
        """Cover everything with a finished (size, size, 3) picture; ``material`` gives the texture alone."""
        image = Image.fromarray(picture.clip(0, 255).astype("uint8"))
        self.colour.paste(image.resize(self.colour.size, Image.Resampling.BILINEAR))
        self.texture.paste(_texture(material), (0, 0, self.colour.width, self.colour.height))

    def keep_clear(self, mask: Field) -> None:
        """Keep trees off the pixels of a (size, size) mask in 0..1."""
        image = Image.fromarray((mask * 255).astype("uint8")).resize(self.colour.size, Image.Resampling.NEAREST)
        bands = list(self.texture.split())
        bands[3] = image
        self.texture.paste(Image.merge("CMYK", bands))

    def screen(self, points: Iterable[complex]) -> list[tuple[float, float]]:
        k, m = self._linear, self._middle
        placed = []
        for z in points:
            w = z * k
            placed.append((w.real + m, w.imag + m))
        return placed

    def in_view(self, z: complex, margin: float = 0.0) -> bool:
        """Say whether a point lies in the image, at least ``margin`` units from its edge."""
        w = z * self.turn
        limit = EDGE / 2.0 - margin
        return -limit <= w.real <= limit and -limit <= w.imag <= limit

    def near_view(self, z: complex, margin: float = 30.0) -> bool:
        return self.in_view(z, -margin)

    def polygon(self, points: Sequence[complex], material: Material) -> None:
        placed = self.screen(points)
        self._on_colour.polygon(placed, fill=material.rgb)
        self._on_texture.polygon(placed, fill=_texture(material))

    def line(self, points: Sequence[complex], width: float, material: Material) -> None:
        placed = self.screen(points)
        pixels = max(1, round(width * self._scale))
        joint = "curve" if len(points) > 2 else None
        self._on_colour.line(placed, fill=material.rgb, width=pixels, joint=joint)
        self._on_texture.line(placed, fill=_texture(material), width=pixels, joint=joint)

    def disc(self, centre: complex, radius: float, material: Material) -> None:
        ((x, y),) = self.screen((centre,))
        r = radius * self._scale
        box = (x - r, y - r, x + r, y + r)
        self._on_colour.ellipse(box, fill=material.rgb)
        self._on_texture.ellipse(box, fill=_texture(material))

    def cast(self, points: Sequence[complex], height: float) -> None:
        """Darken the ground where a prism over ``points`` hides the sun, but not the prism's own top."""
        offset = self.light.away * (height * self.light.reach * self._scale)
        dx, dy = offset.real, offset.imag
        near = self.screen(points)
        far = [(x + dx, y + dy) for x, y in near]
        for i in range(len(near)):
            self._on_shade.polygon((near[i - 1], near[i], far[i], far[i - 1]), fill=255)
        self._on_shade.polygon(far, fill=255)
        self._on_shade.polygon(near, fill=0)

    def cast_line(self, points: Sequence[complex], width: float, height: float) -> None:
        """Darken the ground under a raised strip, such as a bridge, and leave the strip itself in the sun."""
        offset = self.light.away * (height * self.light.reach * self._scale)
        near = self.screen(points)
        pixels = max(1, round(width * self._scale))
        far = [(x + offset.real, y + offset.imag) for x, y in near]
        self._on_shade.line(far, fill=255, width=pixels, joint="curve")
        self._on_shade.line(near, fill=0, width=pixels, joint="curve")

    def sunlit(self, direction: complex) -> float:
        """Return how a roof plane facing ``direction`` (world axes) is lit: above 1 towards the sun."""
        facing = direction * self.turn * self.light.away.conjugate()
        return 1.0 - 0.24 * facing.real / abs(direction)

    def is_free(self, *points: complex) -> bool:
        """Say whether nothing solid is at any of the points; outside, the image's edge answers."""
        edge = self.colour.width - 1
        for x, y in self.screen(points):
            pixel = self.texture.getpixel((min(edge, max(0, int(x))), min(edge, max(0, int(y)))))
            if isinstance(pixel, tuple) and pixel[3]:
                return False
        return True

    def mark(self, kind: str, outline: Sequence[complex]) -> None:
        """Note that an object fills ``outline``, if the middle of its box lies in the image."""
        placed, fine = self.screen(outline), self.colour.width
        left, right = min(x for x, _ in placed) / fine, max(x for x, _ in placed) / fine
        top, bottom = min(y for _, y in placed) / fine, max(y for _, y in placed) / fine
        if 0 <= left + right <= 2 and 0 <= top + bottom <= 2:
            box = max(0.0, left), max(0.0, top), min(1.0, right), min(1.0, bottom)
            self.objects.append(FoundObject(kind, 1.0, box))

    def tree(self, z: complex, radius: float, rgb: RGB | None = None) -> None:
        """Plant a tree unless something solid is there or the point is far outside."""
        if not self.in_view(z, -8.0) or not self.is_free(z):
            return
        ((x, y),) = self.screen((z,))
        gain = self.dice.between(0.72, 1.28)
        warm = self.dice.between(0.92, 1.12)
        r, g, b = rgb or self.season.crown
        self.trees.append(
            Tree(
                x / OVERSAMPLING,
                y / OVERSAMPLING,
                radius * self.size / EDGE,
                (r * gain * warm, g * gain, b * gain),
            )
        )


def _texture(material: Material) -> tuple[int, int, int, int]:
    return material.grain, material.mottle, material.ripple, 255 if material.solid else 0


def rectangle(centre: complex, length: float, width: float, axis: complex = 1 + 0j) -> list[complex]:
    """Return the corners of a rectangle whose length lies along the unit vector ``axis``."""
    along, across = axis * (length / 2.0), axis * (width / 2.0) * 1j
    return [centre - along - across, centre + along - across, centre + along + across, centre - along + across]


def oval(centre: complex, length: float, width: float, axis: complex = 1 + 0j, corners: int = 36) -> list[complex]:
    a, b = length / 2.0, width / 2.0
    step = 2.0 * math.pi / corners
    return [centre + axis * complex(a * math.cos(i * step), b * math.sin(i * step)) for i in range(corners)]


def capsule(centre: complex, length: float, width: float, axis: complex = 1 + 0j, corners: int = 12) -> list[complex]:
    """Return a rectangle with round ends, ``length`` over all: a running track, a tank car, a stadium."""
    radius = width / 2.0
    half = max(0.0, length / 2.0 - radius)
    points = []
    for i in range(2 * corners):
        side = 1.0 if i < corners else -1.0
        angle = -math.pi / 2.0 + math.pi * (i % corners) / (corners - 1)
        points.append(centre + axis * side * (half + radius * complex(math.cos(angle), math.sin(angle))))
    return points


def blob(centre: complex, radius: float, dice: Dice, roughness: float = 0.25, corners: int = 40) -> list[complex]:
    """Return an irregular rounded outline, as ponds and woods have."""
    waves = [(k, dice.between(0, 2 * math.pi), dice.between(0.3, 1.0) * roughness / k) for k in (2, 3, 4, 5)]
    points = []
    for i in range(corners):
        angle = 2.0 * math.pi * i / corners
        r = radius * (1.0 + sum(a * math.sin(k * angle + phase) for k, phase, a in waves))
        points.append(centre + r * complex(math.cos(angle), math.sin(angle)))
    return points
