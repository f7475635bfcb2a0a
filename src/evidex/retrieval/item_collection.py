"""An answer as a STAC ItemCollection, which maps, catalogs and `evidex index` read: one item a hit."""

from __future__ import annotations

import os
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote, urlsplit

from evidex.data.footprints import Footprint
from evidex.data.remote import is_remote
from evidex.data.stac.item import PREFIX, UNKNOWN_TIME
from evidex.retrieval.answers import Answer
from evidex.retrieval.hits import Hit, utc

VERSION = "1.1.0"
_CLOUDS = "https://stac-extensions.github.io/eo/v1.1.0/schema.json"
_TYPES = {
    ".tif": "image/tiff",
    ".tiff": "image/tiff",
    ".jp2": "image/jp2",
    ".j2k": "image/jp2",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".jpe": "image/jpeg",
    ".jfif": "image/jpeg",
    ".png": "image/png",
    ".webp": "image/webp",
    ".gif": "image/gif",
    ".bmp": "image/bmp",
}
_GEOTIFF = "image/tiff; application=geotiff"


def item_collection(answer: Answer) -> dict[str, Any]:
    """A FeatureCollection of STAC items in the order of the hits, with score, rank and verdict as properties."""
    return {
        "type": "FeatureCollection",
        "stac_version": VERSION,
        "features": [_item(answer, hit) for hit in answer.hits],
        "numberReturned": len(answer.hits),
        f"{PREFIX}query": answer.query,
        f"{PREFIX}verdict": answer.verdict,
        f"{PREFIX}headline": answer.headline,
        f"{PREFIX}explanation": answer.explanation,
    }


def _item(answer: Answer, hit: Hit) -> dict[str, Any]:
    told = hit.item
    links = [] if told is None else [link.json() for link in told.links]
    collection = None if told is None else told.collection
    linked = any(link["rel"] == "collection" for link in links)  # without that link an item may name none
    feature: dict[str, Any] = {
        "type": "Feature",
        "stac_version": VERSION,
        "stac_extensions": [_CLOUDS] if told is not None and told.cloud_cover is not None else [],
        "id": _id(hit),
        "geometry": None,
        "properties": _properties(answer, hit),
        "links": links,
        "assets": {} if hit.kind == "text" else {"data" if told is None else told.asset: _asset(hit)},
    }
    if hit.footprint is not None:
        feature["geometry"] = hit.footprint.geojson()
        feature["bbox"] = _box(hit.footprint)
    if collection is not None and linked:
        feature["collection"] = collection
    elif collection is not None:
        feature["properties"][f"{PREFIX}collection"] = collection
    return feature


def _id(hit: Hit) -> str:
    """The item's own, if the hit is all of it; that of a file is the row's."""
    if hit.item is None:
        return hit.id
    return hit.item.id if hit.window is None else f"{hit.item.id}_{hit.window.x}_{hit.window.y}"


def _properties(answer: Answer, hit: Hit) -> dict[str, Any]:
    told = hit.item
    time: dict[str, Any] = {"datetime": None if hit.acquired is None else utc(hit.acquired)}
    if hit.acquired is None:
        time["start_datetime"], time["end_datetime"] = UNKNOWN_TIME
    return {
        **time,
        **({} if hit.caption is None else {"description": hit.caption}),
        **({} if told is None or told.cloud_cover is None else {"eo:cloud_cover": told.cloud_cover}),
        **({} if told is None else {f"{PREFIX}item": told.id}),
        f"{PREFIX}rank": hit.rank,
        f"{PREFIX}score": hit.shown_score,
        f"{PREFIX}verdict": answer.verdict,
        f"{PREFIX}row": hit.id,
        f"{PREFIX}kind": hit.kind,
    }


def _asset(hit: Hit) -> dict[str, Any]:
    asset: dict[str, Any] = {"href": _address(hit), "roles": ["data"]}
    suffix = PurePosixPath(urlsplit(hit.path).path if is_remote(hit.path) else hit.path).suffix.lower()
    if suffix in _TYPES:
        asset["type"] = _GEOTIFF if suffix in (".tif", ".tiff") and hit.crs is not None else _TYPES[suffix]
    if hit.window is not None:
        asset[f"{PREFIX}window"] = [hit.window.x, hit.window.y, hit.window.width, hit.window.height]
    if hit.rendering is not None:
        shown = hit.rendering
        asset[f"{PREFIX}rendering"] = {"bands": list(shown.bands), "low": list(shown.low), "high": list(shown.high)}
    return asset


def _address(hit: Hit) -> str:
    """The path as it is, which all readers open; where it is no UTF-8, a file URL, which keeps its bytes."""
    path = os.fspath(hit.file)
    if is_remote(hit.path):
        return hit.path
    return path if path == hit.path else f"file://{quote(os.fsencode(path))}"


def _box(footprint: Footprint) -> list[float]:
    bounds = footprint.bounds
    return [bounds.west, bounds.south, bounds.east, bounds.north]
