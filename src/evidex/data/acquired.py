"""When a picture was taken, from whatever its file says about it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from PIL.Image import Image

_EXIF_FOLDER = 0x8769
_EXIF_TIMES = ((0x9003, 0x9011), (0x9004, 0x9012))  # taken, digitised; each with its offset from UTC
_EXIF_CHANGED, _EXIF_CHANGED_OFFSET = 0x0132, 0x9010
_RASTER_TAGS = (
    "ACQUISITIONDATETIME",
    "ACQUISITION_DATETIME",
    "ACQUISITION_DATE_TIME",
    "ACQUISITION_TIME",
    "ACQUISITION_DATE",
    "DATE_ACQUIRED",
    "DATATAKE_1_DATATAKE_SENSING_START",
    "SENSING_TIME",
    "PRODUCT_START_TIME",
    "DATETIME",
    "TIFFTAG_DATETIME",
)
_TIME = re.compile(
    r"(\d{4})[-:/.]?(\d{2})[-:/.]?(\d{2})"
    r"(?:[T ]\s*(\d{2})[:.]?(\d{2})(?:[:.]?(\d{2})(?:\.(\d{1,9}))?)?)?"
    r"\s*(Z|UTC|[+-]\d{2}:?\d{2})?\s*"
)


def parse_time(text: str, offset: str | None = None) -> datetime | None:
    """A date or time as it stands in EXIF, TIFF or product tags; without an offset it counts as UTC."""
    found = _TIME.fullmatch(text.strip().strip("\0"))
    if found is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    zone = zone or (offset or "").strip().strip("\0")
    zone = "+00:00" if zone in ("", "Z", "UTC") else zone
    micros = (fraction or "0").ljust(6, "0")[:6]
    try:
        return datetime.fromisoformat(
            f"{year}-{month}-{day}T{hour or '00'}:{minute or '00'}:{second or '00'}.{micros}{zone}"
        ).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def taken_at(image: Image) -> datetime | None:
    """The time in the EXIF data of an opened image."""
    try:
        exif = image.getexif()
        details = exif.get_ifd(_EXIF_FOLDER)
    except (OSError, ValueError, SyntaxError, KeyError, TypeError, EOFError, AttributeError, MemoryError):
        return None  # damaged EXIF takes nothing from the picture
    candidates = [(details.get(time), details.get(offset)) for time, offset in _EXIF_TIMES]
    candidates.append((exif.get(_EXIF_CHANGED), details.get(_EXIF_CHANGED_OFFSET)))
    for value, offset in candidates:
        if isinstance(value, str):
            time = parse_time(value, offset if isinstance(offset, str) else None)
            if time is not None:
                return time
    return None


def acquired_at(tags: Mapping[str, Any]) -> datetime | None:
    """The time among the tags of a raster; acquisition tags come before the time the file was written."""
    known = {str(name).upper(): value for name, value in tags.items()}
    for name in _RASTER_TAGS:
        value = known.get(name)
        if isinstance(value, str):
            time = parse_time(value)
            if time is not None:
                return time
    return None
