"""When a picture was taken, out of every way in which files write it down."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from PIL import Image

from evidex.data.acquired import acquired_at, parse_time, taken_at

_DETAILS, _TAKEN, _TAKEN_OFFSET, _DIGITISED, _CHANGED = 0x8769, 0x9003, 0x9011, 0x9004, 0x0132


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2020:01:02 03:04:05", "2020-01-02T03:04:05+00:00"),
        ("2020-01-02T03:04:05.678Z", "2020-01-02T03:04:05.678000+00:00"),
        ("2020-01-02", "2020-01-02T00:00:00+00:00"),
        ("20200102", "2020-01-02T00:00:00+00:00"),
        ("2020-01-02T03:04:05+02:00", "2020-01-02T01:04:05+00:00"),
        ("0000:00:00 00:00:00", None),
        ("    ", None),
        ("2020-13-40", None),
        ("yesterday", None),
    ],
)
def test_times_as_files_write_them(text: str, expected: str | None) -> None:
    time = parse_time(text)
    assert (None if time is None else time.isoformat()) == expected


def _with_exif(changed: str | None = None, **details: str) -> Image.Image:
    image = Image.new("RGB", (4, 4))
    exif = image.getexif()
    if changed is not None:
        exif[_CHANGED] = changed
    folder = exif.get_ifd(_DETAILS)
    for name, value in details.items():
        folder[{"taken": _TAKEN, "offset": _TAKEN_OFFSET, "digitised": _DIGITISED}[name]] = value
    return image


def test_the_moment_of_the_picture_comes_before_those_of_its_file() -> None:
    taken, digitised, changed = "2020:01:02 03:04:05", "2021:01:01 00:00:00", "2022:01:01 00:00:00"
    assert taken_at(_with_exif(changed, taken=taken, digitised=digitised)) == datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert taken_at(_with_exif(changed, taken="0000:00:00 00:00:00", digitised=digitised)) == datetime(
        2021, 1, 1, tzinfo=UTC
    )
    assert taken_at(_with_exif(changed)) == datetime(2022, 1, 1, tzinfo=UTC)
    assert taken_at(_with_exif()) is None


def test_an_offset_beside_the_time_counts_and_a_senseless_one_costs_only_the_time() -> None:
    picture = _with_exif(taken="2020:01:02 03:04:05", offset="+02:00")
    assert taken_at(picture) == datetime(2020, 1, 2, 1, 4, 5, tzinfo=UTC)
    assert taken_at(_with_exif(taken="2020:01:02 03:04:05", offset="noon")) is None


def test_tags_of_the_acquisition_come_before_the_time_the_raster_was_written() -> None:
    tags = {"TIFFTAG_DATETIME": "2022:01:01 00:00:00", "acquisition_date": "2019-06-07", "SENSING_TIME": "unknown"}
    assert acquired_at(tags) == datetime(2019, 6, 7, tzinfo=UTC)
    assert acquired_at({**tags, "acquisition_date": "unknown"}) == datetime(2022, 1, 1, tzinfo=UTC)
    assert acquired_at({"DATETIME": 20220101, "AREA_OR_POINT": "Area"}) is None
