"""Which asset of an item is looked at, and what the item says of its bands."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from evidex.data.discover import IMAGE_SUFFIXES
from evidex.data.footprints import Window
from evidex.data.items import Piece
from evidex.data.rendering import Rendering, is_later
from evidex.data.sensors import Told, named_bands, sensor_of_platform
from evidex.data.stac.item import PREFIX

_MOST_BANDS = 1000
_RANKS = ("visual", "colours", "overview", "untold", "others", "thumbnail", "grey")
"""True colour at full size; data that has it; true colour, smaller; data that does not say what it has; data of other
bands; a stamp; one band."""
_NO_PICTURES = frozenset(
    {"metadata", "cloud", "cloud-shadow", "snow-ice", "land-water", "water-mask", "data-mask", "saturation"}
)
"""Roles of what says something about each pixel of a picture."""


def choose_asset(assets: Mapping[str, Any], name: str | None) -> str:
    """The asset called ``name``, else the one that shows most; ValueError where there is none."""
    if name is not None:
        if name not in assets:
            raise ValueError(f"has no asset '{name}'; it has {_listed(assets)}")
        return name
    pictures = {key: rank for key, asset in assets.items() if (rank := _rank(asset)) is not None}
    if not pictures:
        raise ValueError(f"has no asset that is a picture; it has {_listed(assets)}" if assets else "has no asset")
    return min(pictures, key=lambda key: pictures[key])


def _rank(asset: Any) -> int | None:
    """How far behind others an asset stands; None for what is no picture."""
    suffix = PurePosixPath(urlsplit(asset.href).path).suffix.lower()
    kind = str(asset.media_type or "").lower()
    roles = {role for role in asset.roles if isinstance(role, str)} if isinstance(asset.roles, list) else set()
    picture = kind.startswith("image/") if kind else suffix in IMAGE_SUFFIXES
    if not picture or roles & _NO_PICTURES:
        return None
    if role := next((role for role in ("visual", "overview", "thumbnail") if role in roles), None):
        return _RANKS.index(role)
    bands = _band_list(asset)
    if not bands:
        return _RANKS.index("untold")
    if _colours(bands) is not None:
        return _RANKS.index("colours")
    return _RANKS.index("grey" if len(bands) == 1 else "others")


def _listed(assets: Mapping[str, Any]) -> str:
    names = list(assets)
    return ", ".join(names[:8]) + (", …" if len(names) > 8 else "") if names else "none"


def told_of_bands(asset: Any, properties: Mapping[str, Any]) -> Told:
    """Sensor, bands and scale of an asset, as far as the item states them."""
    bands = _band_list(asset)
    colours = _colours(bands)
    rasters = _listed_bands(asset, "raster:bands")
    place = 0 if colours is None else colours[0] - 1
    stated = rasters[place] if place < len(rasters) else {}
    band = bands[place] if place < len(bands) else {}
    scale = _number(stated.get("scale", band.get("raster:scale", asset.extra_fields.get("raster:scale"))))
    offset = _number(stated.get("offset", band.get("raster:offset", asset.extra_fields.get("raster:offset"))))
    if properties.get("earthsearch:boa_offset_applied") is True:
        offset = 0.0
    sensor = sensor_of_platform(properties.get("platform"), properties.get("constellation"))
    return Told(sensor, colours, scale if scale and scale > 0 else None, offset, is_later(properties))


def piece_of(asset: Any) -> Piece | None:
    """The part of the file that an item of evidex's own stands for; ValueError where it is written wrongly."""
    window, rendering = (asset.extra_fields.get(f"{PREFIX}{name}") for name in ("window", "rendering"))
    if window is None and rendering is None:
        return None
    try:
        shown = None
        if rendering is not None:
            low, high = (tuple(float(value) for value in rendering[end]) for end in ("low", "high"))
            shown = Rendering(tuple(int(band) for band in rendering["bands"]), low, high)
            fits = len(shown.bands) in (1, 3) and min(shown.bands) >= 1 and len(low) in (0, len(shown.bands))
            if not fits or not all(b > a for a, b in zip(low, high, strict=True)):
                raise ValueError
        place = None if window is None else Window(*(int(value) for value in window))
        if place is not None and (min(place.x, place.y) < 0 or min(place.width, place.height) < 1):
            raise ValueError
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"says with {PREFIX}window or {PREFIX}rendering what cannot be read") from None
    return Piece(place, shown)


def _band_list(asset: Any) -> list[dict[str, Any]]:
    return _listed_bands(asset, "bands") or _listed_bands(asset, "eo:bands")


def _listed_bands(asset: Any, name: str) -> list[dict[str, Any]]:
    listed = asset.extra_fields.get(name)
    return [band for band in listed if isinstance(band, dict)][:_MOST_BANDS] if isinstance(listed, list) else []


def _colours(bands: list[dict[str, Any]]) -> tuple[int, int, int] | None:
    names = [band.get("eo:common_name") or band.get("common_name") or band.get("name") for band in bands]
    return named_bands([name if isinstance(name, str) else None for name in names])


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
