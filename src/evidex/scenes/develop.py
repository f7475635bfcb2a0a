"""From a drawn canvas to a photograph: texture, trees, shadows, haze, blur and noise."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from evidex.scenes import noise
from evidex.scenes.canvas import OVERSAMPLING, Canvas
from evidex.scenes.noise import EDGE, Field

_SHADOW_TINT = np.array([1.0, 0.95, 0.82], dtype=np.float32)  # sky light keeps shadows bluish
_WARM = np.array([1.0, 0.25, -1.0], dtype=np.float32)


def develop(canvas: Canvas) -> NDArray[np.uint8]:
    """Return the finished (size, size, 3) image of a canvas."""
    size, dice, light = canvas.size, canvas.dice, canvas.light
    colour = np.asarray(canvas.colour.reduce(OVERSAMPLING), dtype=np.float32)
    texture = np.asarray(canvas.texture.reduce(OVERSAMPLING), dtype=np.float32) / 255.0
    softness = ImageFilter.GaussianBlur(0.5 * size / EDGE)
    shade = np.asarray(canvas.shade.reduce(OVERSAMPLING).filter(softness), dtype=np.float32) / 255.0

    patches = noise.patches(dice, size)
    grain = noise.grain(dice, size)
    gain = 1.0 + 0.22 * texture[..., 0] * grain + texture[..., 1] * (0.12 * patches + 0.13 * noise.mottle(dice, size))
    gain += 0.42 * texture[..., 2] * _ripples(canvas)
    warmth = texture[..., 1] * (0.05 * noise.mottle(dice, size) + 0.05 * noise.patches(dice, size))
    picture = colour * gain[..., None] * (1.0 + warmth[..., None] * _WARM)

    if canvas.trees:
        picture, shade = _plant(canvas, picture, shade, grain)
    picture *= 1.0 - light.depth * shade[..., None] * _SHADOW_TINT
    return _expose(canvas, picture)


def _ripples(canvas: Canvas) -> Field:
    """Return small waves across the wind, broken up by gusts."""
    size, dice = canvas.size, canvas.dice
    wind = dice.direction() * dice.between(0.7, 1.6) * EDGE / size
    y, x = np.mgrid[0:size, 0:size].astype(np.float32)
    gusts = noise.swell(dice, size)
    waves = np.sin(x * np.float32(wind.real) + y * np.float32(wind.imag) + 2.5 * noise.mottle(dice, size))
    return np.asarray((0.22 * waves * (0.6 + 0.4 * gusts) + 0.5 * gusts) * 0.6, dtype=np.float32)


@lru_cache(maxsize=64)
def _dome(halves: int) -> Field:
    """Return the heights of a round crown with a radius of ``halves`` half pixels, a little flattened on top."""
    radius = halves / 2.0
    reach = int(radius + 0.5)
    y, x = np.mgrid[-reach : reach + 1, -reach : reach + 1].astype(np.float32)
    return np.asarray(np.sqrt(np.maximum(0.0, 1.0 - (x * x + y * y) / (radius + 0.25) ** 2)) * radius, dtype=np.float32)


def _plant(canvas: Canvas, picture: Field, shade: Field, grain: Field) -> tuple[Field, Field]:
    """Draw all crowns as one height field, lit by its slope, and add their shadows."""
    size, light = canvas.size, canvas.light
    margin = 48
    wide = size + 2 * margin
    height = np.zeros((wide, wide), dtype=np.float32)
    crowns = np.zeros((wide, wide, 3), dtype=np.float32)
    for tree in canvas.trees:
        dome = _dome(max(2, min(60, round(tree.radius * 2))))
        reach = dome.shape[0] // 2
        x, y = int(tree.x) + margin - reach, int(tree.y) + margin - reach
        here = height[y : y + dome.shape[0], x : x + dome.shape[1]]
        higher = dome > here
        here[higher] = dome[higher]
        crowns[y : y + dome.shape[0], x : x + dome.shape[1]][higher] = tree.rgb

    fallen = np.zeros_like(height)
    length = 2.0 * sum(tree.radius for tree in canvas.trees) / len(canvas.trees)
    for step in (0.35, 0.7, 1.0):
        offset = light.away * light.reach * step * length
        dx, dy = max(-margin, min(margin, round(offset.real))), max(-margin, min(margin, round(offset.imag)))
        fallen = np.maximum(fallen, np.roll(height, (dy, dx), axis=(0, 1)))
    inner = slice(margin, margin + size)
    shade = np.maximum(shade, np.minimum(1.0, fallen[inner, inner] * (EDGE / size)))

    canopy = height[inner, inner]
    cover = np.minimum(1.0, canopy * (EDGE / size) * 0.9)[..., None]
    rough = canopy * (1.0 + 0.16 * grain)
    slope_y, slope_x = np.gradient(rough)
    towards = -(slope_x * light.away.real + slope_y * light.away.imag)
    lit = np.clip(1.0 - 0.42 * towards, 0.35, 1.9) * (1.0 + 0.10 * grain)
    picture = picture * (1.0 - cover) + crowns[inner, inner] * lit[..., None] * cover
    return picture, shade * (1.0 - 0.85 * cover[..., 0])


def _expose(canvas: Canvas, picture: Field) -> NDArray[np.uint8]:
    light, size = canvas.light, canvas.size
    grey = 0.30 * picture[..., 0] + 0.59 * picture[..., 1] + 0.11 * picture[..., 2]
    picture = grey[..., None] + (picture - grey[..., None]) * light.saturation
    picture *= light.exposure * (1.0 + light.warmth * _WARM)
    picture += (np.array(light.haze_rgb, dtype=np.float32) - picture) * light.haze
    image = Image.fromarray(np.clip(picture, 0, 255).astype(np.uint8))
    image = image.filter(ImageFilter.GaussianBlur(light.blur * size / EDGE))
    speckle = canvas.dice.normals((size, size, 3)) * light.noise
    return np.asarray(np.clip(np.asarray(image, dtype=np.float32) + speckle, 0, 255), dtype=np.uint8)
