"""Galleries made from catalogs, served: filters by what items tell, and pictures of what lies elsewhere."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from PIL import Image

from evidex.data.items import ReadOptions
from evidex.data.rendering import TileOptions
from evidex.retrieval.filters import Filters
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.indexing import IndexOptions
from evidex.retrieval.sharded.holder import ShardHolder
from evidex.retrieval.sharded.span import cut
from evidex.server.settings import Settings
from tests.data.serving import serving
from tests.data.stac.catalogs import item, write, write_catalog
from tests.retrieval.archive import picture, tiny_model, write_raster
from tests.server.places import asking


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Gallery:
    """Three items here, and one whose server is gone."""
    folder = tmp_path_factory.mktemp("catalogs")
    made = Gallery.create(folder / "gallery", tiny_model())
    (folder / "site").mkdir()
    picture(7, (800, 600)).save(folder / "site" / "far.png")
    write(folder / "site" / "item.json", item("far", {"x": "far.png"}, {"eo:cloud_cover": 90.5}))
    with serving(folder / "site") as server:
        report = made.add([write_catalog(folder, 3), f"{server.address}/item.json"], options=IndexOptions(workers=1))
    assert report.added == 4
    return made


def test_questions_are_filtered_by_collection_and_clouds(gallery: Gallery) -> None:
    stream = io.BytesIO()
    picture(0).save(stream, "PNG")
    forms: list[dict[str, Any]] = [{"collection": "summer"}, {"max_cloud": 15}, {"collection": "winter"}]

    async def ask(client: httpx.AsyncClient) -> list[Any]:
        said = [(await client.post("/search", json={"text": "a lake", **form})).json() for form in forms]
        said.append((await client.post("/search", files={"image": stream.getvalue()}, data={"max_cloud": "15"})).json())
        said.append((await client.post("/search/batch", json={"texts": ["a lake"], "max_cloud": 95})).json())
        said.append((await client.post("/search", json={"text": "a", "max_cloud": 101})).status_code)
        return said

    summer, clear, winter, like, batch, refused = asking(Settings(gallery.path), ask)
    assert (summer["searched"], clear["searched"], winter["searched"], like["searched"]) == (3, 2, 0, 2)
    assert batch["answers"][0]["searched"] == 4
    assert refused == 422
    assert {hit["item"] for hit in summer["hits"]} == {"scene-0", "scene-1", "scene-2"}
    assert {hit["cloud_cover"] for hit in clear["hits"]} == {0.0, 10.0}
    assert "none of the 4 pictures is of the collection 'winter'; there are 'summer'" in winter["explanation"]


def test_what_lies_elsewhere_is_shown_from_the_gallery(gallery: Gallery) -> None:
    """Its server is gone, and is not asked: a gallery serves what it holds."""
    (row,) = (row for row in gallery.rows(range(len(gallery))) if row.path.startswith("http"))

    async def ask(client: httpx.AsyncClient) -> list[httpx.Response]:
        places = (f"/items/{row.id}", f"/items/{row.id}/thumbnail", f"/items/{row.id}/preview")
        said = [await client.get(place) for place in places]
        return [*said, await client.post("/search", json={"item": row.id})]

    about, thumbnail, preview, like = asking(Settings(gallery.path), ask)
    assert about.json()["cloud_cover"] == 90.5
    for response in (thumbnail, preview):
        assert response.status_code == 200
        shown = Image.open(io.BytesIO(response.content))
        assert shown.size == (320, 240)
    meant = np.asarray(picture(7, (320, 240)), float)
    assert np.abs(np.asarray(Image.open(io.BytesIO(thumbnail.content)), float) - meant).mean() < 8
    assert like.json()["hits"][0]["id"] == row.id


def test_a_scene_that_is_sent_is_read_as_the_gallerys_scenes(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for number in range(3):
        coarse = rng.integers(200, 3000, (12, 6, 6)).astype(np.uint16)
        write_raster(tmp_path / f"{number}.tif", coarse.repeat(16, axis=1).repeat(16, axis=2))
    made = Gallery.create(tmp_path / "gallery", tiny_model())
    made.add([tmp_path], options=IndexOptions(ReadOptions(TileOptions(sensor="sentinel-2")), workers=1))
    six = write_raster(tmp_path / "six.tif", rng.integers(1, 9, (6, 64, 64)).astype(np.uint16))
    wide = write_raster(tmp_path / "wide.tif", np.ones((3, 64, 9000), np.uint8), crs=None, transform=None)
    deep = write_raster(tmp_path / "deep.tif", np.ones((12, 512, 512), np.uint16), compress="deflate")
    files = [tmp_path / "0.tif", tmp_path / "2.tif", six, wide, deep]

    async def ask(client: httpx.AsyncClient) -> list[Any]:
        return [await client.post("/search", files={"image": (file.name, file.read_bytes())}) for file in files]

    first, third, unfit, *large = asking(Settings(made.path, max_pixels=100_000), ask)
    assert [said.json()["hits"][0]["path"][-5:] for said in (first, third)] == ["0.tif", "2.tif"]
    assert all(said.json()["hits"][0]["score"] > 0.999 for said in (first, third))
    assert [said.status_code for said in (unfit, *large)] == [415, 413, 413]
    assert large[1].json()["error"] == "'deep.tif' has 512×512 pixels, over 100000"
    assert unfit.json()["error"].startswith("'six.tif' has 6 bands; choose three")


def test_shards_are_asked_with_the_same_filters(gallery: Gallery) -> None:
    vectors = tiny_model().encode_texts(["a river"])
    (span,) = cut(gallery.version, len(gallery), 1)
    holder = ShardHolder(str(gallery.path), 1)
    assert holder.scan(span, vectors, Filters(collection="summer", max_cloud=10), "images", 5).count == 2
    assert holder.scan(span, vectors, Filters(max_cloud=95), "images", 5).count == 4
