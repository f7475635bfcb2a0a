"""Answers as STAC: others read them, and indexed again they give the rows that they came from."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pystac
import pytest
from pystac.validation.local_validator import get_local_schema_cache

from evidex.data.discover import IMAGE_SUFFIXES
from evidex.data.items import ReadOptions
from evidex.data.rendering import TileOptions
from evidex.data.stac.item import UNKNOWN_TIME
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.indexing import IndexOptions
from evidex.retrieval.item_collection import _TYPES, item_collection
from evidex.retrieval.reindexing import reindex
from evidex.retrieval.retriever import Retriever
from evidex.retrieval.rows import Row
from tests.data.serving import serving
from tests.data.stac.catalogs import item, write, write_catalog
from tests.retrieval.archive import picture, tiny_model, write_images, write_raster
from tests.retrieval.indexing.conftest import pool  # noqa: F401 (a fixture)

pytestmark = pytest.mark.usefixtures("pool")


def _gallery(folder: Path, *places: Any, **options: Any) -> Gallery:
    gallery = Gallery.create(folder, tiny_model())
    report = gallery.add(places, options=IndexOptions(**options))
    assert report.skipped == ()
    return gallery


def _answer(gallery: Gallery, top: int = 100) -> dict[str, Any]:
    answer = Retriever(gallery).search(text="a lake", top=top, copies=True)  # the catalog shows some pictures again
    return json.loads(json.dumps(item_collection(answer), allow_nan=False))  # type: ignore[no-any-return]


def _same(row: Row) -> tuple[Any, ...]:
    """What is the same after a round trip; whose item it is and which document named it may differ."""
    told = (None, None) if row.item is None else (row.item.cloud_cover, row.item.collection)
    place = (row.window, row.footprint, row.crs)
    return (row.id, row.path, row.kind, *place, row.acquired, row.rendering, row.sha256, *told)


def _contents(gallery: Gallery) -> dict[str, tuple[Any, bytes]]:
    rows = gallery.rows(range(len(gallery)))
    return {row.id: (_same(row), vector.tobytes()) for row, vector in zip(rows, gallery.vectors, strict=True)}


def test_every_kind_of_picture_has_its_media_type() -> None:
    assert _TYPES.keys() == IMAGE_SUFFIXES


@pytest.fixture
def mixed(tmp_path: Path) -> Gallery:
    """Pictures with and without a place, a scene of 16 bits cut into tiles, and a catalog."""
    scenes = tmp_path / "scenes"
    write_images(scenes, 2)
    coarse = np.random.default_rng(0).integers(200, 9000, (3, 8, 8)).astype(np.uint16)
    write_raster(scenes / "large.tif", coarse.repeat(32, axis=1).repeat(32, axis=2))
    write_raster(scenes / "small.tif", coarse.repeat(4, axis=1).repeat(4, axis=2), tiled=False)
    tiles = ReadOptions(TileOptions(tile=64, overlap=0))
    return _gallery(tmp_path / "g", scenes, write_catalog(tmp_path / "c", 3), read=tiles)


def test_a_round_trip_gives_the_same_rows(mixed: Gallery, tmp_path: Path) -> None:
    answer = _answer(mixed)
    assert len(answer["features"]) == len(mixed) == 2 + 16 + 1 + 3
    again = _gallery(tmp_path / "again", write(tmp_path / "answer.json", answer))
    assert _contents(again) == _contents(mixed)
    told = {row.path: row.item for row in mixed.rows(range(len(mixed))) if row.item}
    for row in again.rows(range(len(again))):
        if row.path in told:
            assert row.item is not None
            assert replace(row.item, catalog=told[row.path].catalog) == told[row.path]
    # A third time: what it writes is what it was made from.
    features = _answer(again)["features"]
    assert [feature["geometry"] for feature in features] == [feature["geometry"] for feature in answer["features"]]


def test_some_tiles_of_a_scene_are_these_tiles(mixed: Gallery, tmp_path: Path) -> None:
    answer = _answer(mixed)
    tiles = [feature for feature in answer["features"] if feature["properties"]["evidex:kind"] == "tile"]
    some = write(tmp_path / "some.json", {**answer, "features": tiles[:3]})
    again = _gallery(tmp_path / "again", some)
    assert len(again) == 3
    assert _contents(again).items() <= _contents(mixed).items()
    assert again.add([some]).unchanged == 1
    more = write(tmp_path / "more.json", {**answer, "features": tiles[2:5]})
    again.add([more])
    assert len(again) == 5
    assert _contents(again).items() <= _contents(mixed).items()
    other = Gallery.create(tmp_path / "other", tiny_model())
    assert reindex(again, other, IndexOptions()).skipped == ()
    other.refresh()
    assert _contents(other) == _contents(again)
    before = _contents(mixed)
    assert mixed.add([some]).unchanged == 1  # a gallery that has the scene whole keeps it whole
    assert _contents(mixed) == before
    # Nor does it become the catalog's, to be dropped when that names other hits.
    assert {row.item.catalog for row in mixed.rows(range(len(mixed))) if row.item} == {
        str(tmp_path / "c/stac/catalog.json")
    }


def test_a_scene_of_which_some_tiles_are_there_is_read_whole_when_it_is_found_itself(
    mixed: Gallery, tmp_path: Path
) -> None:
    answer = _answer(mixed)
    tiles = [feature for feature in answer["features"] if feature["properties"]["evidex:kind"] == "tile"]
    some = write(tmp_path / "some.json", {**answer, "features": tiles[:3]})
    read = ReadOptions(TileOptions(tile=64, overlap=0))
    again = _gallery(tmp_path / "again", some, read=read)
    again.add([tmp_path / "scenes"], options=IndexOptions(read))
    whole = _gallery(tmp_path / "whole", tmp_path / "scenes", read=read)
    assert _contents(again) == _contents(whole)
    assert again.add([tmp_path / "scenes", some], options=IndexOptions(read)).encoded == 0
    assert _contents(again) == _contents(whole)


def test_items_are_valid_and_say_how_they_were_found(mixed: Gallery) -> None:
    import jsonschema  # type: ignore[import-untyped]
    from referencing import Registry, Resource

    schemas = get_local_schema_cache()
    registry: Any = Registry().with_resources((uri, Resource.from_contents(schema)) for uri, schema in schemas.items())
    schema = next(schema for uri, schema in schemas.items() if uri.endswith("/item.json"))
    answer = _answer(mixed)
    for rank, feature in enumerate(answer["features"], start=1):
        jsonschema.Draft7Validator(schema, registry=registry).validate(feature)
        found = feature["properties"]
        assert found["evidex:rank"] == rank
        assert found["evidex:verdict"] in ("answered", "refined", "abstained")
        assert ("bbox" in feature) == (feature["geometry"] is not None)
    scores = [feature["properties"]["evidex:score"] for feature in answer["features"]]
    assert scores == sorted(scores, reverse=True)
    assert len({feature["id"] for feature in answer["features"]}) == len(mixed)
    dated = [feature["properties"]["datetime"] for feature in answer["features"]]
    assert None in dated
    undated = answer["features"][dated.index(None)]["properties"]
    assert (undated["start_datetime"], undated["end_datetime"]) == UNKNOWN_TIME
    clouds = {feature["properties"].get("eo:cloud_cover") for feature in answer["features"]}
    assert clouds == {None, 0.0, 10.0, 20.0}


def test_pystac_and_its_client_open_it(mixed: Gallery, tmp_path: Path) -> None:
    from pystac_client.item_search import ItemSearch
    from pystac_client.stac_api_io import StacApiIO

    path = write(tmp_path / "answer.json", _answer(mixed, top=5))
    opened = pystac.ItemCollection.from_file(str(path))
    assert [one.properties["evidex:rank"] for one in opened] == [1, 2, 3, 4, 5]
    with serving(tmp_path) as server:
        search = ItemSearch(url=f"{server.address}/answer.json", method="GET", stac_io=StacApiIO(), max_items=5)
        assert [one.id for one in search.items()] == [one.id for one in opened]


def test_qgis_reads_places_and_pictures(mixed: Gallery, tmp_path: Path) -> None:
    """As its layers do: features by OGR's GeoJSON driver, assets by GDAL."""
    import pyogrio.raw
    import rasterio

    answer = _answer(mixed)
    path = write(tmp_path / "answer.geojson", answer)
    info = pyogrio.read_info(path)
    assert (info["driver"], info["features"], info["crs"]) == ("GeoJSON", len(mixed), "EPSG:4326")
    meta, _, shapes, values = pyogrio.raw.read(path)
    fields = dict(zip(meta["fields"], values, strict=True))
    assert fields["evidex:rank"].tolist() == list(range(1, len(mixed) + 1))
    assert np.allclose(
        fields["evidex:score"].astype(float), [f["properties"]["evidex:score"] for f in answer["features"]]
    )
    placed = [feature["geometry"] is not None for feature in answer["features"]]
    assert [shape is not None for shape in shapes] == placed
    west, south, east, north = pyogrio.read_bounds(path)[1][:, placed]
    boxes = [feature["bbox"] for feature in answer["features"] if feature["geometry"]]
    assert np.allclose(np.stack([west, south, east, north], axis=1), boxes)
    for feature in answer["features"]:
        (asset,) = feature["assets"].values()
        with rasterio.open(asset["href"]) as source:
            assert source.width > 0


def test_what_lies_on_another_machine_goes_round_too(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    picture(3).save(tmp_path / "site" / "a b.png")
    asset = {"href": "a%20b.png", "type": "image/png", "roles": ["data"]}
    write(tmp_path / "site" / "item.json", item("far", {"x": asset}, {"eo:cloud_cover": 5}, collection="s"))
    with serving(tmp_path / "site") as server:
        gallery = _gallery(tmp_path / "g", f"{server.address}/item.json")
        answer = _answer(gallery)
        (feature,) = answer["features"]
        assert feature["assets"]["x"]["href"] == f"{server.address}/a%20b.png"
        assert "collection" not in feature  # an item may name one only with a link to it
        again = _gallery(tmp_path / "again", write(tmp_path / "answer.json", answer))
        assert _contents(again) == _contents(gallery)


def test_names_that_are_no_utf8_lead_to_their_files(tmp_path: Path) -> None:
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/lat\xefin.png")
    picture(1).save(tmp_path / "plain.png")
    (tmp_path / "plain.png").rename(odd)
    gallery = _gallery(tmp_path / "g", odd)
    again = _gallery(tmp_path / "again", write(tmp_path / "answer.json", _answer(gallery)))
    assert _contents(again) == _contents(gallery)
