"""Where an item lies on earth: from GeoJSON, as strangers write it, to a footprint."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from evidex.data.footprints import Footprint, Point

_MOST_POINTS = 10_000


def footprint_of_geometry(geometry: Any, bbox: Any) -> Footprint | None:
    """The outline of a Polygon, of a MultiPolygon as far as one ring can tell it, or of the box.

    None where there is neither; ValueError where there is something that is no place on earth.
    """
    if geometry is None:
        return None if bbox is None else _of_box(bbox)
    kind, parts = _outlines(geometry)
    rings = [_ring(part) for part in parts]
    if kind == "Polygon":
        return Footprint(_oriented(_running_on(rings[0])))
    joined = _joined(rings)
    if joined is not None:
        return Footprint(_oriented(joined))
    points = [point for ring in rings for point in ring]
    xs, ys = [x for x, _ in points], [y for _, y in points]
    return _of_box([min(xs), min(ys), max(xs), max(ys)])


def _outlines(geometry: Any) -> tuple[str, list[Any]]:
    try:
        kind, coordinates = geometry["type"], geometry["coordinates"]
        if kind == "Polygon":
            return kind, [coordinates[0]]
        if kind == "MultiPolygon":
            return kind, [polygon[0] for polygon in coordinates]
        if kind == "Point":
            x, y = coordinates[:2]
            return "Polygon", [[[x, y], [x, y], [x, y]]]
    except (KeyError, IndexError, TypeError, ValueError):
        pass
    raise ValueError("its geometry is no polygon")


def _ring(points: Any) -> list[Point]:
    try:
        ring = [(float(point[0]), float(point[1])) for point in points[:_MOST_POINTS]]
    except (TypeError, ValueError, LookupError):
        raise ValueError("its geometry holds what is no coordinate") from None
    if len(ring) > 1 and ring[0] == ring[-1]:
        ring.pop()
    if len(ring) < 3 and len(set(ring)) != 1:
        raise ValueError("its geometry has fewer than three corners")
    if not all(math.isfinite(x) and abs(x) <= 540.0 and abs(y) <= 90.0 + 1e-6 for x, y in ring):
        raise ValueError("its geometry leaves the earth; give longitude and latitude in degrees")
    return ring if len(ring) >= 3 else ring * 3


def _of_box(bbox: Any) -> Footprint:
    try:
        values = [float(value) for value in bbox]
        west, south, east, north = values if len(values) == 4 else (*values[:2], *values[3:5])
    except (TypeError, ValueError):
        raise ValueError("its bbox is no box of four numbers") from None
    east = east if east >= west else east + 360.0
    ring = _ring([(west, north), (west, south), (east, south), (east, north)])
    return Footprint(tuple(ring))


def _running_on(ring: list[Point]) -> list[Point]:
    """``ring`` without jumps from one end of the map to the other."""
    if all(abs(b[0] - a[0]) <= 180.0 for a, b in pairwise([*ring, ring[0]])):
        return ring
    return [(x + 360.0 if x < 0 else x, y) for x, y in ring]


def _joined(rings: list[list[Point]]) -> list[Point] | None:
    """Two parts that meet at the 180th meridian, as one ring over it."""
    if len(rings) == 1:
        return _running_on(rings[0])
    if len(rings) != 2:
        return None
    left, right = sorted(rings, key=lambda ring: -max(x for x, _ in ring))
    if not (max(x for x, _ in left) == 180.0 and min(x for x, _ in right) == -180.0):
        return None
    right = [(x + 360.0, y) for x, y in right]
    a, b = (_open_at_the_cut(part) for part in (left, right))
    return None if a is None or b is None else [*a, *b]


def _open_at_the_cut(ring: list[Point]) -> list[Point] | None:
    """The part's corners off the meridian, in their order, beginning after the cut."""
    on = [x == 180.0 for x, _ in ring]
    begins = [i for i in range(len(ring)) if on[i - 1] and not on[i]]
    if len(begins) != 1:
        return None
    turned = ring[begins[0] :] + ring[: begins[0]]
    return [point for point in turned if point[0] != 180.0]


def _oriented(ring: list[Point]) -> tuple[Point, ...]:
    """Counter-clockwise; four corners begin at the upper left one, where a picture begins."""
    area = sum(a[0] * b[1] - b[0] * a[1] for a, b in pairwise([*ring, ring[0]]))
    turned = ring if area >= 0 else [ring[0], *reversed(ring[1:])]
    if len(turned) == 4:
        first = min(range(4), key=lambda i: turned[i][0] - turned[i][1])
        turned = turned[first:] + turned[:first]
    return tuple(turned)
