"""Geometries as strangers write them, as footprints."""

from __future__ import annotations

from typing import Any

import pytest

from evidex.data.footprints import Footprint
from evidex.data.stac.places import footprint_of_geometry

BOX = ((10.0, 51.0), (10.0, 50.0), (12.0, 50.0), (12.0, 51.0))


def _polygon(*points: tuple[float, float]) -> dict[str, Any]:
    return {"type": "Polygon", "coordinates": [[list(point) for point in (*points, points[0])]]}


@pytest.mark.parametrize("start", range(4))
@pytest.mark.parametrize("turn", [1, -1])
def test_four_corners_begin_at_the_upper_left_whichever_comes_first(start: int, turn: int) -> None:
    ring = (BOX[start:] + BOX[:start])[::turn]
    assert footprint_of_geometry(_polygon(*ring), None) == Footprint(BOX)


def test_a_box_serves_where_there_is_no_geometry() -> None:
    assert footprint_of_geometry(None, [10, 50, 12, 51]) == Footprint(BOX)
    assert footprint_of_geometry(None, [10, 50, -3, 12, 51, 9]) == Footprint(BOX)
    assert footprint_of_geometry(None, None) is None


def test_footprints_over_the_180th_meridian_come_back_as_they_were() -> None:
    over = Footprint(((178.0, 1.0), (178.0, -1.0), (183.0, -1.0), (183.0, 1.0)))
    cut = over.geojson()
    assert cut["type"] == "MultiPolygon"
    assert footprint_of_geometry(cut, None) == over
    jumping = _polygon((178.0, 1.0), (178.0, -1.0), (-177.0, -1.0), (-177.0, 1.0))
    assert footprint_of_geometry(jumping, None) == over


def test_islands_are_told_by_their_box() -> None:
    parts = [[[[10, 50], [11, 50], [11, 51], [10, 51], [10, 50]]], [[[11.5, 50], [12, 50], [12, 51], [11.5, 50]]]]
    assert footprint_of_geometry({"type": "MultiPolygon", "coordinates": parts}, None) == Footprint(BOX)


@pytest.mark.parametrize(
    "geometry", [7, {}, {"type": "Polygon"}, _polygon((0, 0), (1, float("nan")), (1, 1)), _polygon((0, 0), (1, 100))]
)
def test_what_is_no_place_is_refused(geometry: Any) -> None:
    with pytest.raises(ValueError, match="geometry"):
        footprint_of_geometry(geometry, None)
