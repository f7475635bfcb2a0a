"""Items and catalogs in which any one field is not what it should be: told with a reason, never the end of a run."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evidex.data.stac.finding import find
from evidex.data.stac.walking import Walk
from tests.data.stac.catalogs import item, items, write
from tests.retrieval.archive import picture

STRANGE = [None, 7, 1.5, True, "", "x", "\ud800", "a\0b", [], {}, [None], {"a": 1}, 10**30, "http://[", "x" * 5000]
FULL = item(
    "full",
    {
        "visual": {
            "href": "a.png",
            "type": "image/png",
            "roles": ["visual"],
            "bands": [{"name": "red", "eo:common_name": "red", "raster:scale": 0.1}],
            "eo:bands": [{"common_name": "red"}],
            "raster:bands": [{"scale": 1, "offset": 2}],
            "evidex:window": [0, 0, 1, 2],
            "evidex:rendering": {"bands": [1, 2, 3], "low": [0, 0, 0], "high": [1, 1, 1]},
        }
    },
    {"platform": "sentinel-2a", "eo:cloud_cover": 4, "s2:processing_baseline": "05.09", "updated": "2024"},
    collection="summer",
    links=[{"rel": "self", "href": "https://example.org/a.json"}, {"rel": "collection", "href": "c.json"}],
)
CATALOG = {
    "type": "Catalog",
    "stac_version": "1.1.0",
    "id": "all",
    "description": "Everything",
    "links": [{"rel": "child", "href": "below.json", "type": "application/json", "title": "Below"}],
}
COLLECTION = {
    **CATALOG,
    "type": "Collection",
    "license": "other",
    "extent": {"spatial": {"bbox": [[0, 0, 1, 1]]}, "temporal": {"interval": [[None, None]]}},
}


def _changed(content: Any) -> Iterator[Any]:
    """``content`` with one of its parts exchanged, each by each."""
    for place in _places(content):
        for value in STRANGE:
            changed = copy.deepcopy(content)
            inside = changed
            for name in place[:-1]:
                inside = inside[name]
            inside[place[-1]] = value
            yield changed


def _places(content: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    names = content if isinstance(content, dict) else range(len(content)) if isinstance(content, list) else ()
    for name in names:
        yield (*before, name)
        yield from _places(content[name], (*before, name))


@pytest.mark.parametrize("document", ["/archive/all.json", "https://example.org/all.json"])
def test_an_item_is_taken_or_left_with_a_reason(document: str) -> None:
    for content in _changed(FULL):
        walk = Walk(document, None)
        walk._document(document, items(content))
        assert len(walk.assets) + len(walk.skipped) == 1
        assert all(len(skip.reason.splitlines()) == 1 for skip in walk.skipped)
        for asset in walk.assets:  # as the table takes them
            "".join(value for value in asset.item.columns().values() if isinstance(value, str)).encode()


@pytest.mark.parametrize("whole", [CATALOG, COLLECTION], ids=["catalog", "collection"])
def test_a_catalog_is_followed_or_left_with_a_reason(whole: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # pystac's are for those who write catalogs
        for content in _changed(whole):
            walk = Walk("/archive/all.json", None)
            walk._document("/archive/all.json", content)
            assert all(len(skip.reason.splitlines()) == 1 for skip in walk.skipped)


def test_a_link_without_an_address_does_not_hide_the_others(tmp_path: Path) -> None:
    picture(0).save(tmp_path / "a.png")
    write(tmp_path / "a.json", item("a", {"x": "a.png"}))
    links = [{"rel": "item"}, "nowhere", {"rel": "item", "href": "a.json"}]
    found = find([write(tmp_path / "catalog.json", {**CATALOG, "links": links})])
    assert [Path(file.path).name for file in found.files] == ["a.png"]
    assert [skip.reason for skip in found.skipped] == ["has 2 links without an address; the others are followed"]
    assert not found.read
