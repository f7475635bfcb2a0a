"""Pixel-wise ground: world coordinates, hill shading and colour ramps."""

from __future__ import annotations

import numpy as np

from evidex.scenes.canvas import Canvas
from evidex.scenes.materials import RGB
from evidex.scenes.noise import EDGE, Field


def world(canvas: Canvas) -> tuple[Field, Field]:
    """Return the world coordinates of every pixel."""
    step = EDGE / canvas.size
    axis = ((np.arange(canvas.size) + 0.5) * step - EDGE / 2).astype(np.float32)
    x, y = axis[None, :], axis[:, None]
    cos, sin = np.float32(canvas.turn.real), np.float32(canvas.turn.imag)
    return x * cos + y * sin, y * cos - x * sin


def hillshade(canvas: Canvas, height: Field, strength: float) -> Field:
    """Return the light on a terrain, 1 on flat ground."""
    slope_y, slope_x = np.gradient(height)
    away = canvas.light.away
    rise = (slope_x * np.float32(away.real) + slope_y * np.float32(away.imag)) * np.float32(
        strength * canvas.size / EDGE
    )
    return np.asarray(1.0 + rise / np.sqrt(1.0 + rise * rise) * 0.55, dtype=np.float32)


def blend(stops: list[tuple[float, RGB]], level: Field) -> Field:
    """Return a colour for each level, linear between the stops."""
    at = [stop for stop, _ in stops]
    return np.stack([np.interp(level, at, [rgb[c] for _, rgb in stops]) for c in range(3)], axis=-1).astype(np.float32)
