"""Commands on a gallery in an object store: they work, or say in one line what is not possible there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from evidex.retrieval.gallery import Gallery
from evidex.retrieval.indexing import IndexOptions
from evidex.server.settings import Settings
from evidex.storage.objects import ObjectPlace
from tests.cli.running import Runner
from tests.data.serving import serving as web
from tests.data.stac.catalogs import item, write
from tests.retrieval.archive import picture, tiny_model, write_images
from tests.server.places import asking
from tests.storage.store import Store, fresh_place, serving


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with serving() as endpoint:
        yield endpoint


@pytest.fixture
def gallery(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Gallery:  # noqa: ARG001
    """Two pictures, one of them twice, and one on a machine that does not answer any more."""
    monkeypatch.setenv("EVIDEX_CACHE", str(tmp_path / "cache"))
    first, _ = write_images(tmp_path / "scenes", 2)
    (tmp_path / "scenes" / "again.png").write_bytes(first.read_bytes())
    (tmp_path / "site").mkdir()
    picture(7, (96, 80)).save(tmp_path / "site" / "far.png")
    write(tmp_path / "site" / "item.json", item("far", {"x": "far.png"}))
    made = Gallery.create(fresh_place(), tiny_model())
    with web(tmp_path / "site") as server:
        made.add([tmp_path / "scenes", f"{server.address}/item.json"], options=IndexOptions(workers=1))
    return made


def test_what_reads_a_gallery_reads_it_there(gallery: Gallery, evidex: Runner, tmp_path: Path) -> None:
    here = "--gallery", gallery.place
    assert "1 picture is there more than once, 1 of 4 rows are copies" in evidex("duplicates", *here).out
    far = next(row for row in gallery.rows(range(4)) if row.item is not None)
    for scene in (far.id, tmp_path / "scenes" / "again.png"):
        found = evidex("locate", "a lake", scene, *here, "--window", "32", "--json")
        assert found.code == 0, found.err
        assert json.loads(found.out)["peaks"]
    assert "is not in the gallery" in evidex("locate", "a lake", "nobody", *here).complaint


def test_marks_are_kept_in_folders_alone(gallery: Gallery, evidex: Runner) -> None:
    here, line = ("--gallery", gallery.place), f"'{gallery.place}' keeps no marks"
    assert line in evidex("marks", *here).complaint
    assert line in evidex("marks", "delete", *here).complaint
    assert line in evidex("calibrate", "--from-marks", *here).complaint
    assert line in evidex("serve", "--marks", *here).complaint
    assert "is no gallery" in evidex("marks", "--gallery", "/nowhere").complaint


def test_a_server_shows_what_is_kept_there_and_takes_no_marks(gallery: Gallery) -> None:
    far = next(row for row in gallery.rows(range(4)) if row.item is not None)

    async def ask(client: httpx.AsyncClient) -> list[httpx.Response]:
        mark = {"text": "a lake", "id": far.id, "says": "right"}
        return [
            await client.get("/gallery"),
            await client.get(f"/items/{far.id}/thumbnail"),
            await client.post("/search", json={"text": "a lake"}),
            await client.post("/locate", json={"text": "a lake", "item": far.id}),
            await client.get("/marks", params={"text": "a lake"}),
            await client.post("/marks", json=mark),
        ]

    whole, shown, found, located, marks, marked = asking(Settings(gallery.place), ask)
    assert (whole.json()["rows"], whole.json()["marks"]) == (4, False)
    assert (shown.status_code, shown.headers["content-type"]) == (200, "image/jpeg")
    assert len(found.json()["hits"]) == 3
    assert located.status_code == 200
    assert marks.json() == {"marks": []}
    assert (marked.status_code, "its gallery is in an object store" in marked.text) == (403, True)


def test_damage_there_is_told_and_mended(gallery: Gallery, evidex: Runner, tmp_path: Path) -> None:
    here = "--gallery", gallery.place
    assert "is sound" in evidex("verify", *here).out
    assert isinstance(gallery.place, ObjectPlace)
    name = next(name for name in gallery.place.listed() if name.startswith("rows.lance/data/"))
    held = gallery.place / name
    held.write_bytes(held.read_bytes()[:-9] + b"different")
    told = evidex("verify", *here)
    assert (told.code, f"damaged: {name} is not what was written" in told.out) == (2, True)
    told = evidex("verify", "--repair", *here)
    assert "run 'evidex index' on your folders and catalogs" in told.out
    with web(tmp_path / "site") as server:
        Gallery.open(gallery.place).add([tmp_path / "scenes", f"{server.address}/item.json"])
    told = evidex("verify", *here)  # the piece could not be read, so nobody knows that its rows are back
    assert (told.code, "--forget-losses' takes this off" in told.out) == (2, True)
    told = evidex("verify", "--forget-losses", *here)
    assert (told.code, "is sound" in told.out) == (0, True)
