"""What a gallery keeps of the item of a catalog that a file belongs to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from evidex.data.footprints import Footprint
from evidex.data.items import Piece
from evidex.data.sensors import NOTHING_TOLD, Told
from evidex.documents import parse_json

COLUMNS = ("item", "collection", "cloud_cover", "asset", "links", "catalog")
PREFIX = "evidex:"
"""Of what evidex adds to the items that it writes."""
UNKNOWN_TIME = ("1800-01-01T00:00:00Z", "2200-01-01T00:00:00Z")
"""STAC wants a time of every item; of what was taken nobody knows when, it was taken in this span."""


@dataclass(frozen=True)
class Link:
    """One link of an item, its address absolute."""

    rel: str
    href: str
    type: str | None = None
    title: str | None = None

    def json(self) -> dict[str, str]:
        told = {"rel": self.rel, "href": self.href, "type": self.type, "title": self.title}
        return {name: value for name, value in told.items() if value is not None}


@dataclass(frozen=True)
class StacItem:
    """The item that a row comes from."""

    id: str
    collection: str | None = None
    cloud_cover: float | None = None
    """Percent."""
    asset: str = "data"
    """Which of the item's assets was read."""
    links: tuple[Link, ...] = ()
    catalog: str | None = None
    """The document that was given to be indexed."""

    def columns(self) -> dict[str, Any]:
        """As they are stored; `of_columns` is the inverse."""
        links = json.dumps([link.json() for link in self.links]) if self.links else None
        return dict(
            zip(
                COLUMNS,
                (self.id, self.collection, self.cloud_cover, self.asset, links, self.catalog),
                strict=True,
            )
        )

    @classmethod
    def of_columns(cls, record: Mapping[str, Any]) -> StacItem | None:
        """None where a row comes from no catalog, or from a version of evidex that knew none."""
        item, collection, cloud, asset, links, catalog = (record.get(name) for name in COLUMNS)
        if item is None:
            return None
        kept = tuple(Link(**link) for link in parse_json(links)) if links else ()
        return cls(item, collection, cloud, asset or "data", kept, catalog)


@dataclass(frozen=True)
class FoundAsset:
    """The asset of an item that is to be indexed, with what the item tells about it."""

    path: str
    """A file of this machine or an address."""
    item: StacItem
    footprint: Footprint | None = None
    acquired: datetime | None = None
    piece: Piece | None = None
    """Set where only a part of the file is meant, as by items that evidex has written."""
    told: Told = NOTHING_TOLD
    written: bool = False
    """Whether evidex itself wrote the item, of a row that it had."""
    updated: str = ""
    """When the item says it was last changed."""
