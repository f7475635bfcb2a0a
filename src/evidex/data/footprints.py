"""Where on earth a picture lies: a ring of WGS84 corners, from a raster's CRS and transform."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Point = tuple[float, float]

_WGS84 = "EPSG:4326"
_EDGE_PARTS = (1, 2, 4, 8, 16, 32)
# A straight edge of the raster is a curve on the map; it is cut until it bends by less than this part of a pixel.
_LARGEST_BEND = 0.1
_HAIR = 1e-6
_LARGEST_RETURN = 0.5
"""Pixels by which a point may miss itself on its way to degrees and back."""


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
        if east - west >= 360.0 and (north == 90.0) != (south == -90.0):
            return 0.0, 90.0 if north == 90.0 else -90.0  # a cap
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

    None where the raster's place on earth cannot be told: no CRS, a CRS that is tied to nothing or to another body, or
    corners outside the range of its projection, as those of a full disk are.
    """
    if crs is None or transform is None or transform.is_identity or transform.determinant == 0:
        return None
    edge = None
    for parts in _EDGE_PARTS:
        edge = _edge(crs, transform, window, parts)
        if edge is None or edge.bend <= _LARGEST_BEND:
            break
    return None if edge is None else _enclosed(edge, lambda: _poles_in(crs, transform, window))


@dataclass(frozen=True)
class _Edge:
    """The edge of a window in degrees.

    ``inner`` runs beside ``ring`` a hair inside the window, so that none of its points lies on a pole or on the end of
    the map, where longitudes mean nothing or jump.
    """

    ring: list[Point]
    inner: list[Point]
    bend: float
    """The largest distance, in pixels, between the middle of a chord on the map and the middle of its edge."""


def _edge(crs: Any, transform: Any, window: Window, parts: int) -> _Edge | None:
    pixels = _pixel_ring(window, parts)
    middles = [((ax + bx) / 2, (ay + by) / 2) for (ax, ay), (bx, by) in _sides(pixels)]
    cx, cy = window.x + window.width / 2, window.y + window.height / 2
    inner = [(x + (cx - x) * _HAIR, y + (cy - y) * _HAIR) for x, y in pixels]
    beside = [(x + (0.5 if x <= cx else -0.5), y + (0.5 if y <= cy else -0.5)) for x, y in middles]
    places = _places(crs, transform, [*pixels, *inner, *middles, *beside])
    points = None if places is None else _warped(crs, _WGS84, places)
    if places is None or points is None or not all(abs(y) <= 90.0 + 1e-9 for _, y in points):
        return None
    count = len(pixels)
    if not _comes_back(crs, transform, points[count : 2 * count], inner):
        return None
    ring = points[:count]
    return _Edge(ring, points[count : 2 * count], _bend(ring, points[2 * count : 3 * count], points[3 * count :]))


def _pixel_ring(window: Window, parts: int) -> list[Point]:
    """Points along the outer edge of ``window``, each side cut into ``parts``."""
    x0, y0, x1, y1 = window.x, window.y, window.x + window.width, window.y + window.height
    ring: list[Point] = []
    for (ax, ay), (bx, by) in _sides([(x0, y0), (x0, y1), (x1, y1), (x1, y0)]):
        ring += [(ax + (bx - ax) * k / parts, ay + (by - ay) * k / parts) for k in range(parts)]
    return ring


def _bend(ring: list[Point], middles: list[Point], beside: list[Point]) -> float:
    worst = 0.0
    for (a, b), middle, pixel in zip(_sides(ring), middles, beside, strict=True):
        scale = math.cos(math.radians(middle[1]))
        chord = a[0] + _wrapped(b[0] - a[0]) / 2, (a[1] + b[1]) / 2
        if abs(_wrapped(chord[0] - middle[0])) >= 90.0:
            return math.inf  # so long that the short way round the earth is the wrong one
        off = math.hypot(_wrapped(chord[0] - middle[0]) * scale, chord[1] - middle[1])
        size = math.hypot(_wrapped(pixel[0] - middle[0]) * scale, pixel[1] - middle[1]) * math.sqrt(2)
        worst = max(worst, off / max(size, 1e-12))
    return worst


def _places(crs: Any, transform: Any, pixels: list[Point]) -> list[Point] | None:
    """``pixels`` in the coordinates of ``crs``; in angles, a grid may stand out over a pole by less than a pixel."""
    places = _applied(transform, pixels)
    if not crs.is_geographic:
        return places
    pole = round(math.pi / 2 / crs.units_factor[1], 6)  # 90 degrees, 100 grads
    most = pole + abs(transform.e)
    if not all(abs(x) <= 6 * pole and abs(y) <= most for x, y in places):
        return None
    return [(x, max(-pole, min(pole, y))) for x, y in places]


def _applied(transform: Any, points: list[Point]) -> list[Point]:
    return [transform @ point if hasattr(transform, "__matmul__") else transform * point for point in points]


def _warped(source: Any, target: Any, points: list[Point]) -> list[Point] | None:
    """``points`` in another CRS; None where one of them has no place there."""
    from rasterio._err import CPLE_BaseError
    from rasterio.errors import RasterioError
    from rasterio.warp import transform as warp

    try:
        xs, ys = warp(source, target, [point[0] for point in points], [point[1] for point in points])
    except (CPLE_BaseError, RasterioError, RuntimeError, ValueError):
        return None
    warped = list(zip(xs, ys, strict=True))
    return warped if all(math.isfinite(x) and math.isfinite(y) for x, y in warped) else None


def _comes_back(crs: Any, transform: Any, points: list[Point], pixels: list[Point]) -> bool:
    """Whether ``points`` lead back to ``pixels``: far outside its range a projection gives places of something else.

    A map that goes on over its end, as over the 180th meridian, leads back to the same place a turn away.
    """
    if crs.is_geographic:
        return True
    back = _warped(_WGS84, crs, points)
    if back is None:
        return False
    missed = [(place, pixel) for place, pixel in zip(back, pixels, strict=True) if not _met(transform, place, pixel)]
    turn = _turn(crs) if missed else 0.0
    return all(any(_met(transform, (x + by, y), pixel) for by in (turn, -turn)) for (x, y), pixel in missed)


def _met(transform: Any, place: Point, pixel: Point) -> bool:
    return math.dist(_applied(~transform, [place])[0], pixel) < _LARGEST_RETURN


def _turn(crs: Any) -> float:
    """How far apart the ends of a map lie on which all parallels are as long as the equator; 0 if it has none.

    Of three points a third of a turn apart, the outermost are two thirds apart wherever the map is cut.
    """
    thirds = _warped(_WGS84, crs, [(-120.0, 0.0), (0.0, 0.0), (120.0, 0.0)])
    return 0.0 if thirds is None else 1.5 * (max(x for x, _ in thirds) - min(x for x, _ in thirds))


def _poles_in(crs: Any, transform: Any, window: Window) -> list[float]:
    """The latitudes of the poles that lie in ``window`` or on its edge."""
    found = []
    for pole in (90.0, -90.0):
        places = _warped(_WGS84, crs, [(0.0, pole)])
        if places is not None and _warped(crs, _WGS84, places) is not None:
            ((x, y),) = _applied(~transform, places)
            inside_x = -_HAIR <= x - window.x <= window.width + _HAIR
            if inside_x and -_HAIR <= y - window.y <= window.height + _HAIR:
                found.append(pole)
    return found


def _enclosed(edge: _Edge, poles: Callable[[], list[float]]) -> Footprint | None:
    """The ring without jumps of 360 degrees, its western end in [-180, 180); around a pole it is closed over it."""
    longitudes = [edge.inner[0][0]]
    for x, _ in [*edge.inner[1:], edge.inner[0]]:
        longitudes.append(longitudes[-1] + _wrapped(x - longitudes[-1]))
    ring = []
    for near, (x, y) in zip(longitudes, [*edge.ring, edge.ring[0]], strict=True):
        on_pole = abs(y) > 90.0 - 1e-9
        ring.append((near, math.copysign(90.0, y)) if on_pole else (near + _wrapped(x - near), y))
    turn = longitudes[-1] - longitudes[0]
    if abs(turn) > 180.0:
        held = poles()
        if len(held) == 1:
            ring += [(ring[-1][0], held[0]), (ring[0][0], held[0])]
        elif held:
            ring = [(-180.0, -90.0), (180.0, -90.0), (180.0, 90.0), (-180.0, 90.0)]
        else:
            return None
    else:
        ring = _over_the_pole(ring[:-1], poles)
    west = min(x for x, _ in ring)
    shift = _wrapped(west) - west
    return Footprint(_oriented([(min(x, west + 360.0) + shift, y) for x, y in ring]))


def _over_the_pole(ring: list[Point], poles: Callable[[], list[float]]) -> list[Point]:
    """``ring`` with a pole that lies on its edge: there all longitudes meet, so the ring runs along the pole."""
    kept: list[Point] = []
    for before, point, after in zip(ring[-1:] + ring[:-1], ring, ring[1:] + ring[:1], strict=True):
        if abs(point[1]) == 90.0 and abs(before[1]) < 90.0 and abs(after[1]) < 90.0:
            kept += [(before[0], point[1]), (after[0], point[1])]
        else:
            kept.append(point)
    widths = [abs(b[0] - a[0]) for a, b in _sides(kept)]
    widest = widths.index(max(widths))
    a, b = kept[widest], kept[(widest + 1) % len(kept)]
    if widths[widest] > 90.0 and abs(a[1]) < 90.0:
        over = [point for pole in poles() for point in ((a[0], pole), (b[0], pole))]
        kept[widest + 1 : widest + 1] = over
    return kept


def _sides(ring: Sequence[Point]) -> list[tuple[Point, Point]]:
    return list(zip(ring, [*ring[1:], ring[0]], strict=True))


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
