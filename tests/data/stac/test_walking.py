"""Catalogs as strangers write them: every item once, and a reason for whatever cannot be used."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from evidex.data.remote import is_remote
from evidex.data.stac import documents, walking
from evidex.data.stac.finding import Found, find
from evidex.data.stac.item import UNKNOWN_TIME, FoundAsset
from evidex.errors import InputError
from tests.data.serving import serving
from tests.data.stac.catalogs import item, items, write, write_catalog
from tests.retrieval.archive import picture


def _told(found: Found) -> list[FoundAsset]:
    return [asset for assets in found.assets.values() for asset in assets]


def _reasons(found: Found) -> str:
    return "\n".join(f"{skip.name}: {skip.reason}" for skip in found.skipped)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    picture(0).save(tmp_path / "a.png")
    picture(1).save(tmp_path / "b.png")
    return tmp_path


def test_a_catalog_leads_to_all_its_items_with_what_they_tell(tmp_path: Path) -> None:
    found = find([write_catalog(tmp_path, 3)])
    assert found.skipped == ()
    assert [Path(file.path).name for file in found.files] == ["0.png", "1.tif", "2.png"]
    first = _told(found)[0]
    assert (first.item.id, first.item.collection, first.item.cloud_cover) == ("scene-0", "summer", 0.0)
    assert first.item.asset == "image"
    assert str(first.acquired) == "2021-06-01 10:00:00+00:00"
    assert first.footprint is not None
    assert first.footprint.ring[0] == (13.0, 52.1)
    links = {link.rel: link.href for link in first.item.links}
    assert links["self"] == str(tmp_path / "stac" / "summer" / "scene-0" / "scene-0.json")
    assert links["collection"] == str(tmp_path / "stac" / "summer" / "collection.json")


def test_collections_items_and_item_collections_are_read_too(tmp_path: Path, folder: Path) -> None:
    catalog = write_catalog(tmp_path / "c", 2)
    assert len(find([catalog.parent / "summer" / "collection.json"]).files) == 2
    assert len(find([catalog.parent / "summer" / "scene-1" / "scene-1.json"]).files) == 1
    both = write(folder / "both.json", items(item("a", {"x": "a.png"}), item("b", {"x": "./b.png"})))
    assert [asset.item.id for asset in _told(find([both]))] == ["a", "b"]


def test_a_catalog_over_http_leads_to_addresses(tmp_path: Path) -> None:
    write_catalog(tmp_path, 2)
    with serving(tmp_path) as server:
        found = find([f"{server.address}/stac/catalog.json"])
        assert found.skipped == ()
        assert [file.path for file in found.files] == [f"{server.address}/pictures/{n}" for n in ("0.png", "1.tif")]
        assert all(file.size for file in found.files)
        assert ("GET", "pictures/0.png") not in server.asked  # its state is asked for, not its content


def test_links_that_lead_in_a_circle_end(folder: Path) -> None:
    for name, other in (("one", "two"), ("two", "one")):
        links = [{"rel": "child", "href": f"{other}.json"}, {"rel": "item", "href": "item.json"}]
        content = {"type": "Catalog", "stac_version": "1.0.0", "id": name, "description": "x", "links": links}
        write(folder / f"{name}.json", content)
    write(folder / "item.json", item("a", {"x": "a.png"}))
    found = find([folder / "one.json"])
    assert len(_told(found)) == 1
    assert found.skipped == ()


def test_a_ladder_without_end_is_left(folder: Path) -> None:
    for number in range(40):
        links = [{"rel": "child", "href": f"{number + 1}.json"}]
        content = {"type": "Catalog", "stac_version": "1.0.0", "id": str(number), "description": "x", "links": links}
        write(folder / f"{number}.json", content)
    assert "33.json: lies too deep" in _reasons(find([folder / "0.json"]))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (item("a", {}), "has no asset"),
        (item("a", {"x": "gone.png"}), "gone.png: does not exist"),
        (item("a", {"x": {"href": "a.xml", "type": "application/xml"}}), "has no asset that is a picture; it has x"),
        (item("a", {"x": "s3://bucket/a.tif"}), "'s3://bucket/a.tif' is neither a file nor an http address"),
        ({key: value for key, value in item("a", {"x": "a.png"}).items() if key != "geometry"}, "has no geometry"),
        (item("a", {"x": "a.png"}, geometry={"type": "Polygon", "coordinates": [[[500, 99]] * 4]}), "leaves the earth"),
        (item("a", {"x": "a.png"}, geometry={"type": "LineString", "coordinates": []}), "geometry is no polygon"),
        (item("a", {"x": "a.png"}, properties={"datetime": None}), "cannot be read as a STAC item"),
        ({**item("a", {"x": "a.png"}), "properties": 7}, "it has no properties"),
        (item("a", {"x": {"href": 7}}), "item.json: "),
        ({"type": "Feature", "properties": {}, "geometry": None}, "cannot be read as a STAC item"),
        ({"type": "Catalog", "id": "c", "stac_version": "1.0.0", "links": 7}, "cannot be read as STAC"),
        ({"hello": 1}, "is no STAC document"),
        ([1, 2], "is no STAC document"),
    ],
)
def test_what_cannot_be_used_is_told_with_its_reason(folder: Path, content: Any, reason: str) -> None:
    found = find([write(folder / "item.json", content)])
    assert found.files == ()
    assert reason in _reasons(found)
    assert len(found.skipped) == 1


def test_a_catalog_with_an_item_that_cannot_be_used_is_not_read_to_its_end(folder: Path) -> None:
    bad = item("b", {"x": "b.png"}, geometry={"type": "Polygon", "coordinates": [[[2, 0], [3, 95], [3, 1]]]})
    place = write(folder / "all.json", items(item("a", {"x": "a.png"}), bad))
    assert find([place]).read == frozenset()
    write(place, items(item("a", {"x": "a.png"})))
    assert find([place]).read == {str(place)}


def _branching(folder: Path, count: int) -> Path:
    """A catalog that names ``count`` item collections."""
    for number in range(count):
        write(folder / f"{number}.json", items())
    links = [{"rel": "child", "href": f"{number}.json"} for number in range(count)]
    content = {"type": "Catalog", "stac_version": "1.0.0", "id": "c", "description": "x", "links": links}
    return write(folder / "catalog.json", content)


def test_what_lies_behind_too_many_documents_is_told_of(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = _branching(folder, 6)
    assert find([place]).read == {str(place)}
    monkeypatch.setattr(walking, "_MOST_DOCUMENTS", 3)
    found = find([place])
    assert "2.json: lies too deep, or behind too many documents, and so do 3 others" in _reasons(found)
    assert found.read == frozenset()


def test_few_documents_are_in_memory_at_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    ahead: list[int] = []
    load, look = documents.load, walking.Walk._document

    def counted(place: str) -> Any:
        loaded.append(place)
        return load(place)

    def slow(walk: walking.Walk, place: str, content: Any) -> list[str]:
        if not ahead and not place.endswith("catalog.json"):
            time.sleep(0.2)  # the others may go on meanwhile, as far as they are let
            ahead.append(len(loaded) - 1)
        return look(walk, place, content)

    monkeypatch.setattr(walking, "load", counted)
    monkeypatch.setattr(walking.Walk, "_document", slow)
    find([_branching(folder, 40)])
    assert len(loaded) == 41
    assert ahead[0] <= walking._AT_ONCE


def test_bad_documents_do_not_hide_the_good_ones(folder: Path) -> None:
    (folder / "broken.json").write_text('{"type": ')
    write(folder / "good.json", item("a", {"x": "a.png"}))
    links = [{"rel": "item", "href": f"{name}.json"} for name in ("broken", "gone", "good")]
    content = {"type": "Catalog", "stac_version": "1.0.0", "id": "c", "description": "x", "links": links}
    found = find([write(folder / "catalog.json", content)])
    assert [asset.item.id for asset in _told(found)] == ["a"]
    assert "broken.json: is no JSON" in _reasons(found)
    assert "gone.json: does not exist" in _reasons(found)
    assert found.read == frozenset()  # so that nothing is dropped for not being named


def test_what_another_machine_sends_leads_to_no_file_of_this_one(folder: Path) -> None:
    secret = f"file://{folder}/a.png"
    write(folder / "item.json", item("a", {"x": secret}))
    links = [{"rel": "child", "href": f"file://{folder}/b.json"}, {"rel": "item", "href": "item.json"}]
    content = {"type": "Catalog", "stac_version": "1.0.0", "id": "c", "description": "x", "links": links}
    write(folder / "catalog.json", content)
    write(folder / "b.json", item("b", {"x": "b.png"}))
    own = [{"rel": "self", "href": f"file://{folder}/all.json"}]
    write(folder / "all.json", items(item("c", {"x": f"{folder}/a.png"}), item("d", {"x": "a.png"}, links=own)))
    with serving(folder) as server:
        found = find([f"{server.address}/catalog.json"])
        assert found.files == ()
        assert _reasons(found).count("is no http address") == 2
        found = find([f"{server.address}/all.json"])
        assert all(is_remote(file.path) for file in found.files)
        assert find([folder / "item.json"]).files[0].path == str(folder / "a.png")  # a file of one's own may


def test_documents_have_a_largest_size(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder / "item.json", item("a" * 3_000_000, {"x": "a.png"}))
    monkeypatch.setattr(documents, "MOST_REMOTE", 1 << 20)
    with serving(folder) as server:
        assert "has more than 1 MiB" in _reasons(find([f"{server.address}/item.json"]))


def test_an_asset_is_chosen_by_what_it_shows_or_by_name(folder: Path) -> None:
    assets = {
        "thumbnail": {"href": "a.png", "roles": ["thumbnail"]},
        "red": {"href": "a.png", "roles": ["data"], "eo:bands": [{"common_name": "red"}]},
        "untold": {"href": "a.png", "roles": ["data"]},
        "others": {"href": "a.png", "bands": [{"eo:common_name": name} for name in ("nir", "swir16")]},
        "overview": {"href": "a.png", "roles": ["overview"]},
        "stack": {"href": "a.png", "bands": [{"eo:common_name": name} for name in ("blue", "green", "red")]},
        "visual": {"href": "b.png", "roles": ["visual"]},
        "metadata": {"href": "a.png", "roles": ["metadata"]},
    }
    for expected in ("visual", "stack", "overview", "untold", "others", "thumbnail", "red"):
        place = write(folder / "item.json", item("a", assets))
        assert _told(find([place]))[0].item.asset == expected
        assert _told(find([place], "red"))[0].item.asset == "red"
        del assets[expected]
    assert "has no asset 'visual'; it has metadata" in _reasons(
        find([write(folder / "i.json", item("a", assets))], "visual")
    )


@pytest.mark.parametrize("role", ["cloud", "cloud-shadow", "snow-ice", "water-mask", "data-mask", "metadata"])
def test_a_mask_is_no_picture(folder: Path, role: str) -> None:
    assets = {
        "mask": {"href": "b.png", "roles": ["data", role]},
        "thumbnail": {"href": "a.png", "roles": ["thumbnail"]},
    }
    (found,) = _told(find([write(folder / "item.json", item("a", assets))]))
    assert found.item.asset == "thumbnail"


def test_bands_and_sensor_are_told_by_the_item(folder: Path) -> None:
    names = ("coastal", "blue", "green", "red")
    stack = {"href": "a.png", "bands": [{"eo:common_name": name, "raster:scale": 2e-4} for name in names]}
    stated = {"platform": "sentinel-2b", "s2:processing_baseline": "05.09"}
    (asset,) = _told(find([write(folder / "i.json", item("a", {"x": stack}, stated))]))
    told = asset.told
    assert (told.sensor, told.bands, told.scale, told.offset, told.later) == ("sentinel-2", (4, 3, 2), 2e-4, None, True)
    applied = {**stated, "earthsearch:boa_offset_applied": True}
    (asset,) = _told(find([write(folder / "i.json", item("a", {"x": stack}, applied))]))
    assert asset.told.offset == 0.0


def test_times_and_clouds_as_items_tell_them(folder: Path) -> None:
    span = {"datetime": None, "start_datetime": "2020-01-01T00:00:00Z", "end_datetime": "2020-02-01T00:00:00Z"}
    unknown = {"datetime": None, "start_datetime": UNKNOWN_TIME[0], "end_datetime": UNKNOWN_TIME[1]}
    told = [
        _told(find([write(folder / "i.json", item("a", {"x": "a.png"}, properties))]))[0]
        for properties in (span, unknown, {"eo:cloud_cover": "many"}, {"eo:cloud_cover": 101}, {"eo:cloud_cover": 3})
    ]
    assert [str(one.acquired)[:10] for one in told[:2]] == ["2020-01-01", "None"]
    assert [one.item.cloud_cover for one in told[2:]] == [None, None, 3.0]


def test_an_item_without_a_place_is_taken_and_told_of(folder: Path) -> None:
    content = {**item("a", {"x": "a.png"}), "geometry": None}
    del content["bbox"]
    found = find([write(folder / "i.json", content)])
    assert len(found.files) == 1
    assert "names no place" in found.remarks[0].reason


def test_items_that_share_a_file_are_told_of(folder: Path) -> None:
    found = find([write(folder / "all.json", items(item("a", {"x": "a.png"}), item("b", {"x": "a.png"})))])
    assert [asset.item.id for asset in _told(found)] == ["a"]
    assert "is the asset of 'b' too" in found.remarks[0].reason


def test_patterns_name_several_catalogs(folder: Path) -> None:
    for name in ("a", "b"):
        write(folder / f"{name}.json", item(name, {"x": f"{name}.png"}))
    assert [asset.item.id for asset in _told(find([folder / "*.json"]))] == ["a", "b"]
    with pytest.raises(InputError, match="nothing matches"):
        find([folder / "*.geojson"])


def test_pages_that_go_on_elsewhere_are_told_of(folder: Path) -> None:
    page = {**items(item("a", {"x": "a.png"})), "links": [{"rel": "next", "href": "https://example.org/2"}]}
    found = find([write(folder / "all.json", page)])
    assert "goes on on another page" in found.remarks[0].reason
    assert found.read == frozenset()  # so that nothing is dropped for lying on the next page


def test_names_with_escapes_and_spaces_lead_to_their_files(folder: Path) -> None:
    picture(2).save(folder / "my scene.png")
    for href in ("my scene.png", "my%20scene.png", f"file://{folder}/my%20scene.png", str(folder / "my scene.png")):
        found = find([write(folder / "i.json", item("a", {"x": {"href": href, "type": "image/png"}}))])
        assert [Path(file.path).name for file in found.files] == ["my scene.png"], href
