"""Where on earth a picture lies: a ring of WGS84 corners, from a raster's CRS and transform."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Point = tuple[float, float]

_WGS84 = "EPSG:4326"
_EDGE_PARTS = (1, 2, 4, 8, 16, 32)
# A straight edge of the raster is a curve on the map; it is cut until it bends by less than this part of a pixel.
_LARGEST_BEND = 0.1


@dataclass(frozen=True)
class Window:
    """A rectangle of pixels; (x, y) is its upper left corner."""

    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True)
class Bounds:
    """A box in degrees. ``west`` > ``east`` means that it crosses the 180th meridian."""

    west: float
    south: float
    east: float
    north: float


@dataclass(frozen=True)
class Footprint:
    """A closed ring of (longitude, latitude), counter-clockwise; the first point is not repeated at the end.

    Longitudes run on past 180 where the ring crosses that meridian, so that neighbours stay neighbours.
    """

    ring: tuple[Point, ...]

    @property
    def bounds(self) -> Bounds:
        longitudes = [point[0] for point in self.ring]
        latitudes = [point[1] for point in self.ring]
        west, east = min(longitudes), max(longitudes)
        if east - west >= 360.0:
            return Bounds(-180.0, min(latitudes), 180.0, max(latitudes))
        return Bounds(_wrapped(west), min(latitudes), east if east <= 180.0 else _wrapped(east), max(latitudes))

    @property
    def center(self) -> Point:
        west = min(point[0] for point in self.ring)
        east = max(point[0] for point in self.ring)
        south = min(point[1] for point in self.ring)
        north = max(point[1] for point in self.ring)
        return _wrapped((west + east) / 2), (south + north) / 2

    def geojson(self) -> dict[str, Any]:
        """A Polygon; where the ring crosses the 180th meridian, a MultiPolygon cut there (RFC 7946, 3.1.9)."""
        if max(point[0] for point in self.ring) <= 180.0:
            return {"type": "Polygon", "coordinates": [_closed(self.ring)]}
        left = _clipped(self.ring, 180.0, keep_below=True)
        right = [(x - 360.0, y) for x, y in _clipped(self.ring, 180.0, keep_below=False)]
        return {"type": "MultiPolygon", "coordinates": [[_closed(part)] for part in (left, right) if len(part) > 2]}

    def flat(self) -> list[float]:
        """The ring as one list of numbers, for storage."""
        return [value for point in self.ring for value in point]

    @classmethod
    def from_flat(cls, values: Sequence[float]) -> Footprint:
        return cls(tuple(zip(values[::2], values[1::2], strict=True)))


def footprint_of(crs: Any, transform: Any, window: Window) -> Footprint | None:
    """The footprint of ``window`` in a raster with this rasterio CRS and affine transform.

    None where the raster's place on earth cannot be told: no CRS, a CRS that is tied to nothing, or corners outside
    the range of its projection.
    """
    if crs is None or transform is None or transform.is_identity or transform.determinant == 0:
        return None
    ring = _pixel_ring(window, 1)
    for parts in _EDGE_PARTS:
        ring = _pixel_ring(window, parts)
        bend = _bend(crs, transform, ring)
        if bend is None:
            return None
        if bend <= _LARGEST_BEND:
            break
    located = _to_degrees(crs, transform, ring)
    return None if located is None else Footprint(_oriented(_unrolled(located)))


def _pixel_ring(window: Window, parts: int) -> list[Point]:
    """Points along the outer edge of ``window``, each side cut into ``parts``."""
    x0, y0, x1, y1 = window.x, window.y, window.x + window.width, window.y + window.height
    corners = [(x0, y0), (x0, y1), (x1, y1), (x1, y0)]
    ring: list[Point] = []
    for (ax, ay), (bx, by) in zip(corners, corners[1:] + corners[:1], strict=True):
        ring += [(ax + (bx - ax) * k / parts, ay + (by - ay) * k / parts) for k in range(parts)]
    return ring


def _bend(crs: Any, transform: Any, ring: list[Point]) -> float | None:
    """The largest distance, in pixels, between the middle of a chord on the map and the middle of its edge."""
    following = ring[1:] + ring[:1]
    middles = [((ax + bx) / 2, (ay + by) / 2) for (ax, ay), (bx, by) in zip(ring, following, strict=True)]
    points = _to_degrees(crs, transform, ring)
    true_middles = _to_degrees(crs, transform, middles)
    beside = _to_degrees(crs, transform, [(x + 1, y + 1) for x, y in middles])
    if points is None or true_middles is None or beside is None:
        return None
    worst = 0.0
    for a, b, middle, pixel in zip(points, points[1:] + points[:1], true_middles, beside, strict=True):
        scale = math.cos(math.radians(middle[1]))
        chord = a[0] + _wrapped(b[0] - a[0]) / 2, (a[1] + b[1]) / 2
        off = math.hypot(_wrapped(chord[0] - middle[0]) * scale, chord[1] - middle[1])
        size = math.hypot(_wrapped(pixel[0] - middle[0]) * scale, pixel[1] - middle[1]) / math.sqrt(2)
        worst = max(worst, off / max(size, 1e-12))
    return worst


def _to_degrees(crs: Any, transform: Any, pixels: list[Point]) -> list[Point] | None:
    from rasterio.errors import CRSError, RasterioError
    from rasterio.warp import transform as warp

    places = [transform @ pixel if hasattr(transform, "__matmul__") else transform * pixel for pixel in pixels]
    try:
        longitudes, latitudes = warp(crs, _WGS84, [place[0] for place in places], [place[1] for place in places])
    except (CRSError, RasterioError, RuntimeError, ValueError):
        return None
    points = list(zip(longitudes, latitudes, strict=True))
    if not all(math.isfinite(x) and math.isfinite(y) and abs(y) <= 90.0 for x, y in points):
        return None
    return points


def _unrolled(ring: list[Point]) -> list[Point]:
    """The ring without jumps of 360 degrees, its western end in [-180, 180)."""
    longitudes = [ring[0][0]]
    for x, _ in ring[1:]:
        longitudes.append(longitudes[-1] + _wrapped(x - longitudes[-1]))
    shift = _wrapped(min(longitudes)) - min(longitudes)
    return [(x + shift, y) for x, (_, y) in zip(longitudes, ring, strict=True)]


def _oriented(ring: list[Point]) -> tuple[Point, ...]:
    area = sum(a[0] * b[1] - b[0] * a[1] for a, b in zip(ring, ring[1:] + ring[:1], strict=True))
    return tuple(ring) if area >= 0 else (ring[0], *reversed(ring[1:]))


def _wrapped(longitude: float) -> float:
    """The same meridian in [-180, 180)."""
    return longitude if -180.0 <= longitude < 180.0 else (longitude + 180.0) % 360.0 - 180.0


def _clipped(ring: Sequence[Point], meridian: float, *, keep_below: bool) -> list[Point]:
    """The part of a ring on one side of a meridian (Sutherland–Hodgman)."""

    def inside(point: Point) -> bool:
        return point[0] <= meridian if keep_below else point[0] >= meridian

    kept: list[Point] = []
    for a, b in zip(ring, [*ring[1:], ring[0]], strict=True):
        if inside(a):
            kept.append(a)
        if inside(a) != inside(b):
            share = (meridian - a[0]) / (b[0] - a[0])
            kept.append((meridian, a[1] + share * (b[1] - a[1])))
    return kept


def _closed(ring: Sequence[Point]) -> list[list[float]]:
    return [[x, y] for x, y in [*ring, ring[0]]]
