"""Items and their pictures: by id only, and only what the gallery holds."""

from __future__ import annotations

import io
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image

from evidex.retrieval.gallery import Gallery
from evidex.retrieval.indexing import IndexOptions
from evidex.server.settings import Settings
from tests.retrieval.archive import picture, tiny_model, write_images
from tests.server.places import asking


def test_an_item_tells_what_it_is(settings: Settings, gallery: Gallery) -> None:
    row = gallery.rows([3])[0]

    async def ask(client: httpx.AsyncClient) -> Any:
        return (await client.get(f"/items/{row.id}")).json()

    item = asking(settings, ask)
    assert (item["id"], item["path"], item["sha256"]) == (row.id, row.name, row.sha256)
    assert (item["width"], item["height"], item["crs"]) == (64, 64, "EPSG:32630")
    assert item["captions"] == list(row.captions)
    assert item["acquired"].startswith(str(row.acquired.date()) if row.acquired else "?")
    upper_left, upper_right, lower_right, lower_left = item["corners"]
    assert upper_left[0] < upper_right[0]
    assert lower_left[0] < lower_right[0]
    assert upper_left[1] > lower_left[1]
    assert upper_right[1] > lower_right[1]
    assert sorted(item["corners"]) == sorted(item["footprint"]["coordinates"][0][:-1])


def test_pictures_are_small_and_are_not_sent_twice(settings: Settings, gallery: Gallery) -> None:
    row = gallery.rows([0])[0]

    async def ask(client: httpx.AsyncClient) -> list[httpx.Response]:
        first = await client.get(f"/items/{row.id}/thumbnail")
        again = await client.get(f"/items/{row.id}/thumbnail", headers={"if-none-match": first.headers["etag"]})
        preview = await client.get(f"/items/{row.id}/preview")
        metrics = await client.get("/metrics")
        return [first, again, preview, metrics]

    first, again, preview, metrics = asking(settings, ask)
    assert (first.status_code, again.status_code, preview.status_code) == (200, 304, 200)
    assert first.headers["content-type"] == "image/jpeg"
    shown = Image.open(io.BytesIO(first.content)).convert("RGB").resize((4, 4), Image.Resampling.BOX)
    meant = gallery.open_image(row, longest=64).resize((4, 4), Image.Resampling.BOX)
    difference = [abs(a - b) for a, b in zip(shown.tobytes(), meant.tobytes(), strict=True)]
    assert max(difference) < 12
    assert again.content == b""
    assert first.headers["etag"] != preview.headers["etag"]
    assert 'evidex_pictures_total{source="file"} 2.0' in metrics.text


TRICKS = [
    "../../../../etc/passwd",
    "..%2f..%2f..%2fetc%2fpasswd",
    "%2e%2e%2fgallery.json",
    "....//....//etc/passwd",
    "/etc/passwd",
    "%2fetc%2fpasswd",
    "gallery.json",
    "' OR '1'='1",
    "x') OR id IS NOT NULL --",
    "%00",
    "a%00b",
    "*",
    "CON",
    "\u202e",
    "x" * 150,
    "%ff%fe",
]


@pytest.mark.parametrize("ending", ["", "/thumbnail", "/preview", "/neighbours"])
def test_ids_that_are_tricks_find_nothing(settings: Settings, ending: str) -> None:
    async def ask(client: httpx.AsyncClient) -> list[httpx.Response]:
        found = [await client.get(f"http://localhost/items/{trick}{ending}") for trick in TRICKS]
        for trick in TRICKS:
            found.append(await client.post("/search", json={"item": trick}))
        return found

    for response in asking(settings, ask):
        assert response.status_code == 404, (response.url, response.text)
        assert response.json()["error"]
        assert "root:" not in response.text


def test_assets_are_the_pages_files_only(settings: Settings, tmp_path: Path) -> None:
    static = tmp_path / "no_page"
    (static / "assets").mkdir(parents=True)
    (static / "index.html").write_text("<p>the page</p>")
    (static / "assets" / "main-1.js").write_text("1")
    (tmp_path / "secret").write_text("secret")

    async def ask(client: httpx.AsyncClient) -> list[httpx.Response]:
        names = ("main-1.js", "../index.html", "..%2findex.html", "..%2f..%2fsecret", "%2e%2e/secret", "nothing.js")
        return [await client.get("/"), *[await client.get(f"http://localhost/assets/{name}") for name in names]]

    page, script, *others = asking(settings, ask)
    assert page.text == "<p>the page</p>"
    assert script.headers["content-type"].startswith("text/javascript")
    assert "immutable" in script.headers["cache-control"]
    assert {response.status_code for response in others} == {404}


@pytest.fixture
def changing(tmp_path: Path) -> tuple[Gallery, list[Path]]:
    paths = write_images(tmp_path / "a", 4)
    made = Gallery.create(tmp_path / "gallery", tiny_model())
    made.add(tmp_path / "a", options=IndexOptions(workers=1))
    return made, paths


def test_only_the_file_that_was_indexed_is_shown(changing: tuple[Gallery, list[Path]], tmp_path: Path) -> None:
    gallery, (gone, replaced, touched, linked) = changing
    ids = {row.file: row.id for row in gallery.rows(range(4))}
    secret = tmp_path / "secret.png"
    picture(99).save(secret)
    gone.unlink()
    picture(98).save(replaced)
    os.utime(touched, (1, 1))
    linked.unlink()
    linked.symlink_to(secret)

    async def ask(client: httpx.AsyncClient) -> dict[Path, httpx.Response]:
        return {path: await client.get(f"/items/{ids[path]}/preview") for path in ids}

    found = asking(Settings(gallery.path), ask)
    assert found[touched].status_code == 200
    for path, words in ((gone, "no longer there"), (replaced, "has changed"), (linked, "has changed")):
        assert found[path].status_code == 404
        assert words in found[path].json()["error"]


def test_a_text_has_no_picture_but_can_be_the_query(tmp_path: Path) -> None:
    made = Gallery.create(tmp_path / "gallery", tiny_model())
    write_images(tmp_path / "a", 3)
    made.add(tmp_path / "a", options=IndexOptions(workers=1))
    made.add_texts(["a lake in a forest"])
    text = next(row for row in made.rows(range(4)) if row.kind == "text")

    async def ask(client: httpx.AsyncClient) -> list[httpx.Response]:
        return [
            await client.get(f"/items/{text.id}/thumbnail"),
            await client.get(f"/items/{text.id}"),
            await client.post("/search", json={"item": text.id}),
            await client.post("/search", json={"text": "a lake", "among": "texts"}),
        ]

    thumbnail, item, like, among = asking(Settings(made.path), ask)
    assert thumbnail.status_code == 404
    assert item.json()["kind"] == "text"
    assert like.json()["query"] == "a lake in a forest"
    assert [hit["caption"] for hit in among.json()["hits"]] == ["a lake in a forest"]


def test_rows_are_found_when_a_writer_has_removed_the_open_version(
    changing: tuple[Gallery, list[Path]], tmp_path: Path
) -> None:
    import lance

    gallery, _ = changing
    ids = [row.id for row in gallery.rows(range(4))]

    async def ask(client: httpx.AsyncClient) -> list[int]:
        assert (await client.get(f"/items/{ids[0]}")).status_code == 200
        write_images(tmp_path / "a", 2, first=4)
        Gallery.open(gallery.path, tiny_model()).add(tmp_path / "a", options=IndexOptions(workers=1))
        table = lance.dataset(str(gallery.path / "rows.lance"))
        table.optimize.compact_files()
        table.cleanup_old_versions(older_than=timedelta(0))
        addresses = [f"/items/{ids[1]}", f"/items/{ids[2]}/thumbnail", f"/items/{ids[3]}/neighbours"]
        return [(await client.get(address)).status_code for address in addresses]

    assert asking(Settings(gallery.path, refresh_seconds=1000.0), ask) == [200, 200, 200]
