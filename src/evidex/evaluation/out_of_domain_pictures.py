"""Pictures that no overhead sensor takes, drawn by simple rules: faces, rooms, still lifes, pages, flowers, horizons.

They stand in for photographs from another world when the answer to an image query ought to be "nothing like this".
"""

from __future__ import annotations

import colorsys
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw

Colour = tuple[int, int, int]

_SCALE = 2  # drawn twice as large and reduced, for smooth edges


def out_of_domain_pictures(count: int, rng: np.random.Generator, size: int = 224) -> list[Image]:
    """Return ``count`` RGB pictures of ``size`` pixels square, the kinds in turn."""
    return [_picture(_KINDS[i % len(_KINDS)], rng, size) for i in range(count)]


def _picture(
    kind: Callable[[ImageDraw, float, np.random.Generator], None], rng: np.random.Generator, size: int
) -> Image:
    from PIL import Image, ImageDraw

    side = size * _SCALE
    canvas = _gradient(_colour(rng, 0.2, 0.9), _colour(rng, 0.3, 0.7), side)
    kind(ImageDraw.Draw(canvas), float(side), rng)
    grain = rng.normal(0.0, 3.0, size=(size, size, 3))
    return Image.fromarray(np.clip(np.asarray(canvas.reduce(_SCALE)) + grain, 0, 255).astype(np.uint8))


def _portrait(draw: ImageDraw, side: float, rng: np.random.Generator) -> None:
    skin = _shade((235, 195, 165), rng.uniform(0.35, 1.0))
    hair, coat = _colour(rng, 0.4, 0.35), _colour(rng, 0.5, 0.6)
    x, y, r = side * rng.uniform(0.42, 0.58), side * rng.uniform(0.38, 0.46), side * rng.uniform(0.19, 0.25)
    _disc(draw, x, side * 1.05, 2.1 * r, 1.7 * r, coat)
    draw.rectangle([x - 0.4 * r, y + 0.7 * r, x + 0.4 * r, y + 1.6 * r], fill=_shade(skin, 0.85))
    _disc(draw, x, y - 0.25 * r, 1.12 * r, 1.25 * r, hair)
    _disc(draw, x, y, 0.92 * r, 1.18 * r, skin)
    for sign in (-1, 1):
        _disc(draw, x + sign * 0.38 * r, y - 0.12 * r, 0.17 * r, 0.1 * r, (250, 250, 250))
        _disc(draw, x + sign * 0.38 * r, y - 0.12 * r, 0.08 * r, 0.09 * r, (45, 35, 30))
        draw.line([x + sign * 0.2 * r, y - 0.36 * r, x + sign * 0.58 * r, y - 0.4 * r], fill=hair, width=int(0.07 * r))
    draw.line([x, y - 0.05 * r, x + 0.1 * r, y + 0.3 * r, x - 0.04 * r, y + 0.34 * r], fill=_shade(skin, 0.7), width=3)
    draw.arc([x - 0.4 * r, y + 0.3 * r, x + 0.4 * r, y + 0.75 * r], 20, 160, fill=(165, 60, 60), width=int(0.1 * r))


def _room(draw: ImageDraw, side: float, rng: np.random.Generator) -> None:
    wall, floor = _colour(rng, 0.25, 0.85), _shade((165, 115, 70), rng.uniform(0.6, 1.1))
    left, top, right, bottom = side * np.array([0.24, 0.2, 0.78, 0.66]) + side * rng.uniform(-0.05, 0.05, size=4)
    draw.polygon([(0, 0), (left, top), (left, bottom), (0, side)], fill=_shade(wall, 0.8))
    draw.polygon([(side, 0), (right, top), (right, bottom), (side, side)], fill=_shade(wall, 0.7))
    draw.polygon([(0, 0), (side, 0), (right, top), (left, top)], fill=_shade(wall, 1.1))
    draw.polygon([(0, side), (side, side), (right, bottom), (left, bottom)], fill=floor)
    draw.rectangle([left, top, right, bottom], fill=wall)
    for step in np.linspace(0.0, 1.0, 7):
        draw.line([left + step * (right - left), bottom, step * side, side], fill=_shade(floor, 0.8), width=3)
    width, height = right - left, bottom - top
    frame = [left + 0.12 * width, top + 0.15 * height, left + 0.45 * width, top + 0.6 * height]
    draw.rectangle(frame, fill=(185, 215, 240), outline=(245, 245, 240), width=8)
    draw.line([(frame[0] + frame[2]) / 2, frame[1], (frame[0] + frame[2]) / 2, frame[3]], fill=(245, 245, 240), width=6)
    sofa = _colour(rng, 0.6, 0.6)
    x, y, w = left + 0.3 * width, bottom - 0.05 * height, 0.75 * width
    draw.rounded_rectangle([x, y - 0.35 * w, x + w, y + 0.2 * w], radius=18, fill=sofa)
    draw.rounded_rectangle([x + 0.08 * w, y - 0.08 * w, x + 0.92 * w, y + 0.14 * w], radius=12, fill=_shade(sofa, 1.2))
    draw.line([right - 0.08 * width, top, right - 0.08 * width, top + 0.2 * height], fill=(60, 60, 60), width=4)
    _disc(draw, right - 0.08 * width, top + 0.26 * height, 0.1 * width, 0.08 * height, (255, 235, 170))


def _still_life(draw: ImageDraw, side: float, rng: np.random.Generator) -> None:
    table = side * rng.uniform(0.55, 0.65)
    draw.rectangle([0, table, side, side], fill=_shade((150, 100, 60), rng.uniform(0.7, 1.2)))
    x, y, r = side / 2, table + 0.12 * side, side * rng.uniform(0.28, 0.36)
    for _ in range(int(rng.integers(4, 8))):
        fruit = [(200, 40, 35), (235, 150, 40), (240, 215, 70), (120, 170, 60)][int(rng.integers(4))]
        cx, cy, fr = x + rng.uniform(-0.65, 0.65) * r, y - rng.uniform(0.0, 0.28) * r, rng.uniform(0.26, 0.36) * r
        _disc(draw, cx, cy, fr, fr, fruit)
        _disc(draw, cx - 0.35 * fr, cy - 0.35 * fr, 0.22 * fr, 0.22 * fr, _shade(fruit, 1.5))
        draw.line([cx, cy - fr, cx + 0.15 * fr, cy - 1.3 * fr], fill=(80, 60, 40), width=5)
    bowl = _colour(rng, 0.4, 0.8)
    draw.pieslice([x - r, y - r, x + r, y + r], 0, 180, fill=bowl)
    _disc(draw, x, y + 0.97 * r, 0.4 * r, 0.08 * r, _shade(bowl, 0.7))


def _page(draw: ImageDraw, side: float, rng: np.random.Generator) -> None:
    margin = side * rng.uniform(0.06, 0.12)
    draw.rectangle([margin, margin, side - margin, side - margin], fill=(250, 248, 240))
    y = 2 * margin
    draw.rectangle([2 * margin, y, 2 * margin + side * rng.uniform(0.3, 0.5), y + 0.04 * side], fill=(40, 40, 45))
    y += 0.09 * side
    while y < side - 2 * margin:
        x, end = 2 * margin, side - 2 * margin - (0.0 if rng.random() < 0.8 else rng.uniform(0.1, 0.4) * side)
        while x < end:
            word = side * rng.uniform(0.02, 0.09)
            draw.rectangle([x, y, min(x + word, end), y + 0.014 * side], fill=(85, 85, 90))
            x += word + 0.014 * side
        y += 0.038 * side


def _flower(draw: ImageDraw, side: float, rng: np.random.Generator) -> None:
    draw.rectangle([0, 0, side, side], fill=_shade((70, 120, 60), rng.uniform(0.5, 1.1)))
    x, y, r = side * rng.uniform(0.4, 0.6), side * rng.uniform(0.36, 0.5), side * rng.uniform(0.24, 0.32)
    draw.line([x, y, x + 0.1 * side, side], fill=(50, 100, 45), width=int(0.06 * r) + 4)
    petal, petals, turn = _colour(rng, 0.8, 0.95), int(rng.integers(5, 12)), rng.uniform(0, math.pi)
    for i in range(petals):
        angle = turn + 2 * math.pi * i / petals
        px, py = x + 0.75 * r * math.cos(angle), y + 0.75 * r * math.sin(angle)
        _disc(draw, px, py, 0.5 * r, 0.5 * r, _shade(petal, 0.85 + 0.15 * (i % 2)))
    _disc(draw, x, y, 0.36 * r, 0.36 * r, (225, 175, 50))
    for _ in range(40):
        angle, distance = rng.uniform(0, 2 * math.pi), 0.32 * r * math.sqrt(rng.random())
        _disc(draw, x + distance * math.cos(angle), y + distance * math.sin(angle), 4, 4, (140, 90, 25))


def _horizon(draw: ImageDraw, side: float, rng: np.random.Generator) -> None:
    _disc(draw, side * rng.uniform(0.2, 0.8), side * rng.uniform(0.12, 0.4), 0.07 * side, 0.07 * side, (255, 235, 180))
    for layer in range(4):
        base = side * (0.5 + 0.1 * layer)
        phases = rng.uniform(0, 2 * math.pi, size=3)
        xs = np.linspace(0, side, 60)
        waves = [
            math.sin(1 + layer) * 0.02 + 0.05 / (i + 1) * np.sin((i + 1) * 5 * xs / side + phases[i]) for i in range(3)
        ]
        ridge = base - side * np.sum(waves, axis=0)
        colour = _shade((70, 95, 110), 1.35 - 0.3 * layer)
        draw.polygon([(0, side), *zip(xs.tolist(), ridge.tolist(), strict=True), (side, side)], fill=colour)


def _screen(draw: ImageDraw, side: float, rng: np.random.Generator) -> None:
    draw.rectangle([0, 0, side, side], fill=(240, 241, 244))
    accent = _colour(rng, 0.7, 0.75)
    draw.rectangle([0, 0, side, 0.1 * side], fill=accent)
    draw.rectangle([0, 0.1 * side, 0.22 * side, side], fill=(50, 54, 64))
    for i in range(6):
        draw.rounded_rectangle(
            [0.03 * side, (0.15 + 0.1 * i) * side, 0.19 * side, (0.2 + 0.1 * i) * side], 8, fill=(95, 100, 112)
        )
    bars = int(rng.integers(5, 9))
    for i in range(bars):
        x, top = (0.3 + 0.62 * i / bars) * side, rng.uniform(0.25, 0.6) * side
        draw.rectangle([x, top, x + 0.42 * side / bars, 0.65 * side], fill=_shade(accent, rng.uniform(0.7, 1.2)))
    for i in range(4):
        draw.rectangle(
            [0.3 * side, (0.74 + 0.05 * i) * side, rng.uniform(0.5, 0.92) * side, (0.76 + 0.05 * i) * side],
            fill=(170, 174, 182),
        )


def _cup(draw: ImageDraw, side: float, rng: np.random.Generator) -> None:
    table = side * 0.62
    draw.rectangle([0, table, side, side], fill=_colour(rng, 0.25, 0.75))
    x, y, w, h = (
        side * rng.uniform(0.42, 0.52),
        side * 0.72,
        side * rng.uniform(0.15, 0.2),
        side * rng.uniform(0.3, 0.4),
    )
    china = _colour(rng, 0.5, 0.9)
    _disc(draw, x, y + 0.02 * side, 1.9 * w, 0.5 * w, _shade(china, 0.8))
    draw.arc(
        [x + 0.5 * w, y - 0.8 * h, x + 1.7 * w, y - 0.2 * h], -90, 90, fill=_shade(china, 0.85), width=int(0.2 * w)
    )
    draw.polygon([(x - w, y - h), (x + w, y - h), (x + 0.75 * w, y), (x - 0.75 * w, y)], fill=china)
    _disc(draw, x, y, 0.75 * w, 0.2 * w, china)
    _disc(draw, x, y - h, w, 0.26 * w, _shade(china, 1.15))
    _disc(draw, x, y - h, 0.86 * w, 0.2 * w, (80, 50, 30))


_KINDS = (_portrait, _room, _still_life, _page, _flower, _horizon, _screen, _cup)


def _gradient(top: Colour, bottom: Colour, side: int) -> Image:
    from PIL import Image

    ramp = np.linspace(np.array(top), np.array(bottom), side)[:, None, :]
    return Image.fromarray(np.broadcast_to(ramp, (side, side, 3)).astype(np.uint8))


def _disc(draw: ImageDraw, x: float, y: float, width: float, height: float, colour: Colour) -> None:
    draw.ellipse([x - width, y - height, x + width, y + height], fill=colour)


def _colour(rng: np.random.Generator, saturation: float, value: float) -> Colour:
    red, green, blue = colorsys.hsv_to_rgb(rng.random(), saturation, value)
    return int(255 * red), int(255 * green), int(255 * blue)


def _shade(colour: Colour, factor: float) -> Colour:
    red, green, blue = (min(255, int(part * factor)) for part in colour)
    return red, green, blue
