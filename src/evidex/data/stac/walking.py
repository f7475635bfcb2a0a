"""Walk a catalog: from one document over its links to all items, each once, whatever strangers have written."""

from __future__ import annotations

import math
import warnings
from collections import deque
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any

from evidex.data.acquired import parse_time
from evidex.data.discover import printable
from evidex.data.records import Skip
from evidex.data.remote import is_remote
from evidex.data.stac.assets import choose_asset, piece_of, told_of_bands
from evidex.data.stac.documents import load, resolved
from evidex.data.stac.item import PREFIX, UNKNOWN_TIME, FoundAsset, Link, StacItem
from evidex.data.stac.places import footprint_of_geometry
from evidex.errors import DataError

_DEEPEST = 32
_MOST_DOCUMENTS = 1_000_000
_MOST_LINKS = 16
_AT_ONCE = 8
"""Documents in memory, each of which may be large."""
_LONGEST_HREF = 4096


@dataclass
class Walk:
    """The assets that were found, and what could not be used."""

    catalog: str
    asset: str | None
    """The asset that is wanted; None: the one that shows most."""
    assets: list[FoundAsset] = field(default_factory=list)
    skipped: list[Skip] = field(default_factory=list)
    remarks: list[Skip] = field(default_factory=list)
    unread: int = 0
    """Documents, pages and items that could not be read, or were not: the catalog may name more than was found."""
    _seen: set[str] = field(default_factory=set)

    def run(self) -> None:
        """Read the catalog and all that it leads to. A document that is reached twice is read once."""
        level = [self.catalog]
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            for _ in range(_DEEPEST + 1):
                fresh = self._unseen(level)
                room = _MOST_DOCUMENTS - len(self._seen)
                self._seen.update(fresh[:room])
                level = fresh[room:] + self._documents(fresh[:room], threads)
                if len(fresh) > room:
                    break
        if left := self._unseen(level):
            others = f", and so do {len(left) - 1} others" if len(left) > 1 else ""
            self._leave(left[0], f"lies too deep, or behind too many documents{others}; give a smaller catalog")

    def _unseen(self, places: list[str]) -> list[str]:
        return [place for place in dict.fromkeys(places) if place not in self._seen]

    def _documents(self, places: list[str], threads: ThreadPoolExecutor) -> list[str]:
        """Read documents, some at once since each may be far away, in their order; returns where they lead."""
        below: list[str] = []
        coming = ((place, threads.submit(_loaded, place)) for place in places)
        ahead = deque(islice(coming, _AT_ONCE))
        while ahead:
            place, answer = ahead.popleft()
            below += self._document(place, answer.result())
            del answer  # it holds the document
            ahead.extend(islice(coming, 1))
        return below

    def _document(self, place: str, content: Any) -> list[str]:
        """Take the items of one document; returns where it leads."""
        if isinstance(content, DataError):
            self._leave(place, str(content).removeprefix(f"'{place}' "))
            return []
        kind = content.get("type") if isinstance(content, dict) else None
        if kind == "Feature":
            self._item(content, place, place)
        elif kind == "FeatureCollection":
            features = content.get("features")
            for number, feature in enumerate(features if isinstance(features, list) else ()):
                self._item(feature, place, f"{place}#{_name(feature, number)}")
            if any(_rel(link) == "next" for link in _list(content.get("links"))):
                self.unread += 1
                self.remarks.append(
                    Skip(printable(place), "goes on on another page, which is not read; fetch it whole")
                )
        elif kind in ("Catalog", "Collection") or (isinstance(content, dict) and "stac_version" in content):
            return self._links(content, place)
        else:
            self._leave(place, "is no STAC document: neither catalog, collection, item nor item collection")
        return []

    def _links(self, content: dict[str, Any], place: str) -> list[str]:
        """Where a catalog or collection leads, as pystac reads it."""
        import pystac

        given = _list(content.get("links"))
        whole = [link for link in given if _rel(link) and isinstance(link.get("href"), str)]
        if lost := len(given) - len(whole):
            self._leave(place, f"has {lost} link{'s' * (lost > 1)} without an address; the others are followed")
        try:
            kind = pystac.Collection if content.get("type") == "Collection" else pystac.Catalog
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                links = kind.from_dict({**content, "links": whole}, href=place, preserve_dict=False).links
        except _pystac_errors() as error:
            self._leave(place, f"cannot be read as STAC ({_line(error)})")
            return []
        targets = []
        for link in links:
            if link.rel in ("child", "item", "items"):
                try:
                    targets.append(resolved(str(link.target)[:_LONGEST_HREF], place, self.catalog))
                except ValueError as error:
                    self._leave(place, f"leads to what is not followed: {error}")
        return targets

    def _item(self, content: Any, document: str, name: str) -> None:
        try:
            self.assets.append(self._read(content, document, name))
        except ValueError as error:
            self._leave(name, str(error))

    def _read(self, content: Any, document: str, name: str) -> FoundAsset:
        """The item's asset; ValueError with the reason where there is none that can be indexed."""
        import pystac

        if not isinstance(content, dict) or not isinstance(content.get("properties"), dict):
            raise ValueError("is no STAC item: it has no properties")
        if "geometry" not in content:
            raise ValueError("has no geometry; an item without a place says so with null")
        raw_links = _list(content.get("links"))
        # Where an item lies in a document of its own, that is its address; among others it states one itself.
        leads = _Leads(self.catalog, document, _own_address(raw_links) if name != document else None)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                item = pystac.Item.from_dict(content, href=document)
        except _pystac_errors() as error:
            raise ValueError(f"cannot be read as a STAC item ({_line(error)})") from None
        key = choose_asset(item.assets, self.asset)
        asset, told = item.assets[key], item.properties
        raw = content["assets"][key]["href"]  # pystac makes it absolute by rules of its own
        footprint = footprint_of_geometry(content["geometry"], content.get("bbox"))
        if footprint is None:
            self.remarks.append(Skip(printable(name), "names no place; a box finds it only by its own coordinates"))
        return FoundAsset(
            path=leads.to(_text(raw, "its asset has no address")),
            item=StacItem(
                id=printable(_text(told.get(f"{PREFIX}item", item.id), "has no id")),
                collection=_optional(item.collection_id or told.get(f"{PREFIX}collection")),
                cloud_cover=_percent(told.get("eo:cloud_cover")),
                asset=printable(key),
                links=_kept(raw_links, leads, None if name != document else document),
                catalog=self.catalog,
            ),
            footprint=footprint,
            acquired=_time(told),
            piece=piece_of(asset),
            told=told_of_bands(asset, told),
            written=f"{PREFIX}row" in told,
            updated=str(asset.extra_fields.get("updated") or told.get("updated") or "")[:64],
        )

    def _leave(self, name: str, reason: str) -> None:
        self.unread += 1
        self.skipped.append(Skip(printable(name), reason))


def _loaded(place: str) -> Any:
    try:
        return load(place)
    except DataError as error:
        return error


def _pystac_errors() -> tuple[type[Exception], ...]:
    """All that pystac raises on documents that are no STAC."""
    import pystac

    return (
        pystac.STACError,
        pystac.STACTypeError,
        KeyError,
        ValueError,
        TypeError,
        AttributeError,
        IndexError,
        OverflowError,
        RecursionError,
    )


@dataclass(frozen=True)
class _Leads:
    """Where the addresses of an item lead: they are relative to its own, where it states one, else the document's."""

    catalog: str
    document: str
    own: str | None

    def to(self, href: str) -> str:
        here = not is_remote(self.document) and href.startswith("/")
        return resolved(href, self.document if here or self.own is None else self.own, self.catalog)


def _own_address(links: Iterable[Any]) -> str | None:
    own = next((link.get("href") for link in links if _rel(link) == "self"), None)
    return own if isinstance(own, str) and is_remote(own) else None


def _kept(links: Iterable[Any], leads: _Leads, own: str | None) -> tuple[Link, ...]:
    """The item's links with absolute addresses; ``own`` is that of a document that holds nothing but the item."""
    kept = list(_absolute(links, leads))
    if own is not None and all(link.rel != "self" for link in kept):
        kept.insert(0, Link("self", printable(own), "application/geo+json"))
    return tuple(kept)


def _absolute(links: Iterable[Any], leads: _Leads) -> Iterable[Link]:
    for link in list(links)[:_MOST_LINKS]:
        href = link.get("href") if isinstance(link, dict) else None
        if _rel(link) and isinstance(href, str) and len(href) <= _LONGEST_HREF:
            try:
                target = leads.to(href)
            except ValueError:
                continue
            yield Link(_rel(link), printable(target), _optional(link.get("type")), _optional(link.get("title")))


def _time(properties: dict[str, Any]) -> datetime | None:
    """When it was taken, or when that began."""
    if isinstance(properties.get("datetime"), str):
        return parse_time(properties["datetime"])
    begin, end = properties.get("start_datetime"), properties.get("end_datetime")
    return None if (begin, end) == UNKNOWN_TIME or not isinstance(begin, str) else parse_time(begin)


def _percent(value: Any) -> float | None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if number and math.isfinite(value) and 0 <= value <= 100 else None


def _text(value: Any, problem: str) -> str:
    if not isinstance(value, str) or not value or len(value) > _LONGEST_HREF:
        raise ValueError(problem)
    return value


def _optional(value: Any) -> str | None:
    return printable(value[:_LONGEST_HREF]) if isinstance(value, str) and value else None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _rel(link: Any) -> str:
    rel = link.get("rel") if isinstance(link, dict) else None
    return rel if isinstance(rel, str) else ""


def _name(feature: Any, number: int) -> str:
    name = feature.get("id") if isinstance(feature, dict) else None
    return name[:200] if isinstance(name, str) and name else str(number)


def _line(error: Exception) -> str:
    return (" ".join(str(error).split()) or type(error).__name__)[:160]
