"""How well a map of likeness shows where something is: the indicators of semantic localisation, and plainer ones.

Z. Yuan et al., "Learning to Evaluate Performance of Multi-modal Semantic Localization", IEEE TGRS 2022
(arXiv:2209.06515), measures by how much more attention lies in the truth than outside (R_su), how far the centres of
attention lie from those of the truth (R_as, smaller is better), and into how many centres attention falls apart (R_da);
R_mi is their weighted sum. Constants are those of the authors' published code. Two things are ours: a region is a
rectangle, and centres of attention are the peaks that the map's maker names, where theirs come from a blur of fixed
size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evidex.data.footprints import Point, Window

_BETA = 0.707
_EPSILON = 1e-7
_EXPANSION = 1.5
_STEEPNESS = 3.0
_DECAY = 0.5
_WEIGHTS = {"area": 0.4, "shift": 0.35, "discreteness": 0.25}


@dataclass(frozen=True)
class Localisation:
    """One map beside the truth; all in [0, 1]."""

    area: float
    """R_su: attention per pixel in the truth beside that outside."""
    shift: float
    """R_as: how far centres of attention are from those of the truth; 1 where none is near. Smaller is better."""
    discreteness: float
    """R_da: 1 where each region has one centre of attention, 0 where it has none."""
    inside: float
    """Share of all attention that lies in the truth."""
    hit: bool
    """Whether the first centre of attention lies in the truth."""
    distance: float | None
    """From there to the nearest centre of the truth, in sides of that region; None where there is no attention."""

    @property
    def mean(self) -> float:
        """R_mi"""
        return (
            _WEIGHTS["area"] * self.area
            + _WEIGHTS["shift"] * (1 - self.shift)
            + _WEIGHTS["discreteness"] * self.discreteness
        )


def localisation(
    attention: NDArray[np.floating], cell: int, truth: Sequence[Window], centres: Sequence[Point]
) -> Localisation:
    """Of ``attention`` (rows, columns), at least 0, in cells of ``cell`` pixels; ``centres`` in pixels, best first."""
    mask = _mask(attention.shape, cell, truth)
    # Each by itself: as a difference, what is outside may come out below nothing where all is inside.
    inside, outside = (float(attention[part].sum(dtype=np.float64)) for part in (mask, ~mask))
    whole = inside + outside
    return Localisation(
        area=_significant_area(inside, outside, int(mask.sum()), mask.size),
        shift=_attention_shift(truth, centres),
        discreteness=float(np.mean([_discreteness(region, centres) for region in truth])),
        inside=inside / whole if whole > 0 else 0.0,
        hit=bool(centres) and any(_holds(region, centres[0]) for region in truth),
        distance=min(math.dist(_centre(r), centres[0]) / _side(r) for r in truth) if centres else None,
    )


def _significant_area(inside: float, outside: float, cells: int, all_cells: int) -> float:
    """R_su"""
    if cells == 0:
        return 0.0
    return 1.0 - math.exp(-_BETA * inside / (outside + _EPSILON) * (all_cells - cells) / cells)


def _attention_shift(truth: Sequence[Window], centres: Sequence[Point]) -> float:
    """R_as"""
    shares = []
    for region in truth:
        near = _near(region, centres)
        shares.append(float(np.mean(near)) / _radius(region) if near else 1.0)
    return (math.exp(_STEEPNESS * float(np.mean(shares))) - 1) / (math.exp(_STEEPNESS) - 1)


def _discreteness(region: Window, centres: Sequence[Point]) -> float:
    """R_da of one region."""
    radius = _radius(region)
    near = [centre for centre in centres if math.dist(_centre(region), centre) <= radius]
    if len(near) < 2:
        return float(len(near))
    middle = np.mean(near, axis=0).tolist()
    spread = float(np.mean([math.dist(middle, centre) for centre in near])) / radius
    return 0.5 * (1 - spread) + math.exp(-_DECAY * (len(near) + 2))


def _near(region: Window, centres: Sequence[Point]) -> list[float]:
    distances = [math.dist(_centre(region), centre) for centre in centres]
    return [distance for distance in distances if distance <= _radius(region)]


def _mask(shape: tuple[int, ...], cell: int, truth: Sequence[Window]) -> NDArray[np.bool_]:
    """The cells whose middles lie in the truth."""
    mask = np.zeros(shape, np.bool_)
    ys, xs = ((np.arange(count) + 0.5) * cell for count in shape)
    for region in truth:
        rows = (ys >= region.y) & (ys < region.y + region.height)
        columns = (xs >= region.x) & (xs < region.x + region.width)
        mask |= rows[:, None] & columns[None, :]
    return mask


def _centre(region: Window) -> Point:
    return region.x + region.width / 2, region.y + region.height / 2


def _side(region: Window) -> float:
    return math.sqrt(region.width * region.height)


def _radius(region: Window) -> float:
    """Of the circle in which centres of attention count for a region: its corners' distance, widened."""
    return _EXPANSION * math.hypot(region.width, region.height) / 2


def _holds(region: Window, point: Point) -> bool:
    return region.x <= point[0] < region.x + region.width and region.y <= point[1] < region.y + region.height
