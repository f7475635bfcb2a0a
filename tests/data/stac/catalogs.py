"""Catalogs for the tests, written as pystac writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from tests.retrieval.archive import picture, write_raster

SQUARE = [[13.0, 52.1], [13.0, 52.0], [13.1, 52.0], [13.1, 52.1], [13.0, 52.1]]


def item(name: str, assets: Mapping[str, Any], properties: Mapping[str, Any] | None = None, **others: Any) -> Any:
    """An item as it stands in a file; ``assets`` by name: an address, or all of it."""
    filled = {key: {"href": value} if isinstance(value, str) else value for key, value in assets.items()}
    return {
        "type": "Feature",
        "stac_version": "1.1.0",
        "id": name,
        "geometry": {"type": "Polygon", "coordinates": [SQUARE]},
        "bbox": [13.0, 52.0, 13.1, 52.1],
        "properties": {"datetime": "2021-06-01T10:00:00Z", **(properties or {})},
        "links": [],
        "assets": filled,
        **others,
    }


def write(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return path


def items(*features: Any) -> dict[str, Any]:
    return {"type": "FeatureCollection", "features": list(features)}


def write_catalog(folder: Path, count: int, collection: str = "summer") -> Path:
    """A catalog of one collection of JPEGs and GeoTIFFs, each with its place, time and clouds; pystac saves it."""
    import pystac

    catalog = pystac.Catalog("archive", "Everything")
    everywhere = pystac.Extent(pystac.SpatialExtent([-180, -90, 180, 90]), pystac.TemporalExtent([None, None]))
    inside = pystac.Collection(collection, "Scenes", everywhere)
    catalog.add_child(inside)
    (folder / "pictures").mkdir(parents=True, exist_ok=True)
    for number in range(count):
        suffix = ("png", "tif")[number % 2]
        path = folder / "pictures" / f"{number}.{suffix}"
        if suffix == "png":
            picture(number).save(path)
        else:
            values = np.asarray(picture(number, (64, 64)), np.uint8).transpose(2, 0, 1)
            write_raster(path, values, tiled=False)
        taken = datetime(2021, 6, 1, 10, tzinfo=UTC) + timedelta(days=number)
        west = 13.0 + number / 10
        corners = [[west, 52.1], [west, 52.0], [west + 0.1, 52.0], [west + 0.1, 52.1], [west, 52.1]]
        outline = {"type": "Polygon", "coordinates": [corners]}
        told = pystac.Item(
            f"scene-{number}", outline, [west, 52.0, west + 0.1, 52.1], taken, {"eo:cloud_cover": 10.0 * number}
        )
        told.add_asset("image", pystac.Asset(str(path), roles=["data"]))
        inside.add_item(told)
    catalog.normalize_hrefs(str(folder / "stac"))
    catalog.make_all_asset_hrefs_relative()
    catalog.save(pystac.CatalogType.SELF_CONTAINED)
    return folder / "stac" / "catalog.json"
