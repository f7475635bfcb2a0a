"""A picture that lies in an archive several times is shown once, and nothing else changes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from evidex.data.footprints import Footprint, Window
from evidex.retrieval.copies import CopyIndex
from evidex.retrieval.filters import Filters
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.indexing import IndexOptions
from evidex.retrieval.refine import ALWAYS
from evidex.retrieval.retriever import Retriever
from evidex.retrieval.rows import Row, item_id
from tests.retrieval.archive import picture, tiny_model

QUESTION = "a lake in a forest"


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Gallery:
    """Twelve pictures; the third lies there four times, and the fifth once more as a JPEG of twice the size."""
    folder = tmp_path_factory.mktemp("copies")
    (folder / "backup").mkdir()
    for number in range(12):
        picture(number, (96, 80)).save(folder / f"scene_{number:02d}.png")
    content = (folder / "scene_03.png").read_bytes()
    for name in ("a.png", "b.png", "backup/c.png"):
        (folder / name).write_bytes(content)
    Image.open(folder / "scene_05.png").resize((192, 160)).save(folder / "backup" / "five.jpg", quality=80)
    made = Gallery.create(folder / "gallery", tiny_model())
    made.add(folder, options=IndexOptions(workers=1))
    return made


def _names(answer_hits: object) -> list[str]:
    return [Path(hit.path).name for hit in answer_hits]  # type: ignore[attr-defined]


def test_a_picture_is_one_hit_that_names_its_other_places(gallery: Gallery) -> None:
    hits = Retriever(gallery).search(text=QUESTION, top=12).hits
    assert len(hits) == 12
    places = {Path(hit.path).name: sorted(Path(place.path).name for place in hit.copies) for hit in hits if hit.copies}
    (three,) = (names | {name} for name, rest in places.items() if "a.png" in (names := set(rest)) | {name})
    assert three == {"scene_03.png", "a.png", "b.png", "c.png"}
    (five,) = (names | {name} for name, rest in places.items() if "five.jpg" in (names := set(rest)) | {name})
    assert five == {"scene_05.png", "five.jpg"}
    assert len(places) == 2
    exact = {place.exact for hit in hits for place in hit.copies if "five" in place.path or "five" in hit.path}
    assert exact == {False}


def test_the_rest_is_as_without_folding(gallery: Gallery) -> None:
    for refine in ({}, {"refine": ALWAYS}):
        once = Retriever(gallery).search(text=QUESTION, top=16, **refine)  # type: ignore[arg-type]
        every = Retriever(gallery).search(text=QUESTION, top=16, copies=True, **refine)  # type: ignore[arg-type]
        assert len(every.hits) == 16
        assert once.uncertainty == every.uncertainty
        assert once.searched == every.searched == 16
        assert once.standing == every.standing
        scores = {hit.id: hit.score for hit in every.hits}
        assert {hit.id: hit.score for hit in once.hits}.items() <= scores.items()
        assert not any(hit.copies for hit in every.hits)
        folded = {place.id for hit in once.hits for place in hit.copies}
        assert [hit.id for hit in once.hits] == [hit.id for hit in every.hits if hit.id not in folded]


@pytest.mark.parametrize("top", [1, 2, 5, 11])
def test_more_is_asked_for_until_enough_distinct_ones_are_found(gallery: Gallery, top: int) -> None:
    whole = Retriever(gallery).search(text=QUESTION, top=12).hits
    some = Retriever(gallery).search(text=QUESTION, top=top).hits
    assert some == whole[:top]  # with all other places, though these rank below


def test_very_many_copies_leave_room_for_the_others(tmp_path: Path) -> None:
    model = tiny_model()
    question = model.encode_texts([QUESTION])[0]
    others = np.linalg.qr(np.random.default_rng(0).standard_normal((model.dim, 5)))[0].T.astype(np.float32)
    made = Gallery.create(tmp_path / "gallery", model)
    rows = [Row(item_id(str(n)), str(n), "image", f"{max(n - 300, 0):064x}") for n in range(306)]
    made.append(rows, np.concatenate([np.tile(question, (301, 1)), others]))
    hits = Retriever(made).search(text=QUESTION, top=4).hits
    assert len(hits) == 4
    assert len(hits[0].copies) == 300


def test_no_search_waits_for_thousands_that_look_alike(gallery: Gallery, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Retriever(gallery).search(text=QUESTION, top=12).hits
    assert max(len(hit.copies) for hit in whole) > 1
    monkeypatch.setattr("evidex.retrieval.copies.MOST_LOOKED_AT", 2)
    assert max(len(hit.copies) for hit in Retriever(gallery).search(text=QUESTION, top=12).hits) == 1


def test_filters_hold_for_the_other_places_too(gallery: Gallery) -> None:
    hits = Retriever(gallery).search(text=QUESTION, top=12, filters=Filters(glob="backup/*")).hits
    assert sorted(_names(hits)) == ["c.png", "five.jpg"]
    assert not any(hit.copies for hit in hits)


def _alike(**changes: object) -> Row:
    row = Row("one", "/one.tif", "image", "1" * 64, phash=12345)
    return replace(row, **changes)  # type: ignore[arg-type]


def _square(west: float) -> Footprint:
    return Footprint(((west, 0.0), (west + 1, 0.0), (west + 1, 1.0), (west, 1.0)))


TIMES = datetime(2020, 1, 1, tzinfo=UTC), datetime(2020, 1, 6, tzinfo=UTC)


@pytest.mark.parametrize(
    ("one", "other", "merged"),
    [
        ({}, {}, True),
        ({}, {"phash": 12345 ^ 0b1111}, True),
        ({}, {"phash": 12345 ^ 0b111111111}, False),
        ({}, {"phash": None}, False),
        ({"phash": None}, {"phash": None}, False),
        ({"phash": None}, {"phash": None, "sha256": "1" * 64}, True),
        ({"acquired": TIMES[0]}, {"acquired": TIMES[1]}, False),
        ({"acquired": TIMES[0]}, {"acquired": TIMES[0]}, True),
        ({"acquired": TIMES[0]}, {}, True),
        ({"footprint": _square(10.0)}, {"footprint": _square(10.1)}, True),
        ({"footprint": _square(10.0)}, {"footprint": _square(10.6)}, False),
        ({"footprint": _square(10.0)}, {}, True),
        ({"window": Window(0, 0, 9, 9)}, {"window": Window(9, 0, 9, 9), "path": "/one.tif"}, False),
    ],
)
def test_what_counts_as_a_copy(tmp_path: Path, one: dict[str, object], other: dict[str, object], merged: bool) -> None:
    made = Gallery.create(tmp_path / "gallery", tiny_model())
    rows = [_alike(**one), replace(_alike(id="two", path="/two.tif", sha256="2" * 64), **other)]  # type: ignore[arg-type]
    made.append(rows, np.tile(tiny_model().encode_texts(["a river"]), (2, 1)))
    assert [len(group.copies) for group in CopyIndex(made).groups()] == [1] * merged


def test_alike_bits_are_not_enough_without_alike_vectors(tmp_path: Path) -> None:
    made = Gallery.create(tmp_path / "gallery", tiny_model())
    vectors = np.eye(2, tiny_model().dim, dtype=np.float32)
    made.append([_alike(), _alike(id="two", path="/two.tif", sha256="2" * 64)], vectors)
    assert list(CopyIndex(made).groups()) == []


def test_groups_hold_every_row_once(gallery: Gallery) -> None:
    groups = list(CopyIndex(gallery).groups())
    assert sorted((len(group.copies), group.is_exact) for group in groups) == [(1, False), (3, True)]
    ids = [row.id for group in groups for row in (group.row, *group.copies)]
    assert len(set(ids)) == len(ids) == 6


def test_a_gallery_from_before_there_were_hashes_finds_the_same_content(tmp_path: Path) -> None:
    import lance

    for name in ("a.png", "b.png"):
        picture(1).save(tmp_path / name)
    picture(2).save(tmp_path / "c.png")
    made = Gallery.create(tmp_path / "gallery", tiny_model())
    made.add(tmp_path, options=IndexOptions(workers=1))
    lance.dataset(str(made.path / "rows.lance")).drop_columns(["phash"])
    made._committed()
    old = Gallery.open(made.path)
    assert "phash" not in old.dataset.schema.names
    index = CopyIndex(old)
    assert index.unhashed == 3
    assert [len(group.copies) for group in index.groups()] == [1]
    assert [len(hit.copies) for hit in Retriever(old).search(image=tmp_path / "a.png").hits] == [1, 0]
    picture(3).save(tmp_path / "d.png")
    old.add(tmp_path, options=IndexOptions(workers=1))  # which gives the table its column
    assert CopyIndex(old).unhashed == 3
