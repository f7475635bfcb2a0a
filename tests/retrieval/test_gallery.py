"""The gallery as a place to keep rows: identity, refusals, versions, the mapped vectors."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from evidex.errors import GalleryError, NotFoundError
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.rows import Row, item_id
from tests.retrieval.archive import WORDS, tiny_model, write_images


def _rows(count: int, first: int = 0) -> list[Row]:
    return [Row(item_id(f"/a/{n}.png"), f"/a/{n}.png", "image", f"{n:064x}") for n in range(first, first + count)]


def _vectors(count: int, seed: int = 0) -> np.ndarray:
    values = np.random.default_rng(seed).standard_normal((count, 32)).astype(np.float32)
    return np.asarray(values / np.linalg.norm(values, axis=1, keepdims=True))


@pytest.fixture
def gallery(tmp_path: Path) -> Gallery:
    return Gallery.create(tmp_path / "gallery", tiny_model())


def test_rows_come_back_as_they_were_put_in(gallery: Gallery) -> None:
    vectors = _vectors(50)
    gallery.append(_rows(30), vectors[:30])
    gallery.append(_rows(20, 30), vectors[30:])
    for opened in (gallery, Gallery.open(gallery.path)):
        assert len(opened) == 50
        assert np.array_equal(opened.vectors, vectors)
        assert opened.rows([49, 3, 30]) == [_rows(1, 49)[0], _rows(1, 3)[0], _rows(1, 30)[0]]
        assert opened.find(item_id("/a/7.png")) == _rows(1, 7)[0]
        assert opened.temperature == 0.1
    with pytest.raises(NotFoundError, match="nobody"):
        gallery.find("nobody")


def test_positions_and_vectors_agree_after_removals_replacements_and_compaction(gallery: Gallery) -> None:
    vectors = _vectors(60)
    by_id: dict[str, np.ndarray] = {}
    for start in range(0, 60, 6):
        rows = _rows(6, start)
        gallery.append(rows, vectors[start : start + 6])
        by_id.update(zip([row.id for row in rows], vectors[start : start + 6], strict=True))

    def check() -> None:
        for opened in (gallery, Gallery.open(gallery.path)):
            rows = opened.rows(range(len(opened)))
            assert sorted(row.id for row in rows) == sorted(by_id)
            assert np.array_equal(opened.vectors, np.stack([by_id[row.id] for row in rows]))

    check()
    gone = [row.id for row in _rows(9, 20)]
    gallery.remove(gone)
    for row_id in gone:
        del by_id[row_id]
    check()
    gallery.replace(_rows(4, 2), -vectors[2:6])
    by_id.update(zip([row.id for row in _rows(4, 2)], -vectors[2:6], strict=True))
    check()
    gallery.compact()
    check()
    gallery.append(_rows(3, 100), vectors[:3])
    by_id.update(zip([row.id for row in _rows(3, 100)], vectors[:3], strict=True))
    check()


def test_a_reader_keeps_its_version_until_it_refreshes(gallery: Gallery) -> None:
    vectors = _vectors(20)
    gallery.append(_rows(10), vectors[:10])
    reader = Gallery.open(gallery.path)
    before = reader.vectors
    gallery.append(_rows(10, 10), vectors[10:])
    assert len(gallery.vectors) == 20
    gallery.remove([_rows(1)[0].id])
    gallery.compact()
    assert len(gallery.vectors) == 19
    assert np.array_equal(before, vectors[:10])
    assert len(reader) == 10
    assert reader.refresh()
    assert len(reader) == 19
    assert len(reader.vectors) == 19
    assert not reader.refresh()


@pytest.mark.parametrize("damage", ["gone", "short", "nonsense", "no file"])
def test_the_mapped_vectors_are_made_again_when_they_are_damaged(gallery: Gallery, damage: str) -> None:
    vectors = _vectors(40)
    gallery.append(_rows(40), vectors)
    assert np.array_equal(gallery.vectors, vectors)
    state = gallery.path / "vectors.json"
    file = gallery.path / json.loads(state.read_text())["file"]
    if damage == "gone":
        state.unlink()
    elif damage == "short":
        os.truncate(file, 100)
    elif damage == "nonsense":
        state.write_text('{"format": 1}')
    else:
        file.unlink()
    assert np.array_equal(Gallery.open(gallery.path).vectors, vectors)


def test_another_models_gallery_is_refused(gallery: Gallery) -> None:
    with pytest.raises(GalleryError, match="another model"):
        Gallery.open(gallery.path, tiny_model(1))
    assert Gallery.open(gallery.path, tiny_model()).model is tiny_model()
    # The model lies in the gallery, so that it opens without one.
    assert Gallery.open(gallery.path).model.fingerprint == tiny_model().fingerprint


def test_what_is_no_gallery_is_refused_in_words(gallery: Gallery, tmp_path: Path) -> None:
    with pytest.raises(GalleryError, match="no gallery; make one"):
        Gallery.open(tmp_path / "nowhere")
    with pytest.raises(GalleryError, match="no gallery; make one"):
        Gallery.open(gallery.path / "gallery.json")
    with pytest.raises(GalleryError, match="already"):
        Gallery.create(gallery.path, tiny_model())
    write_images(tmp_path / "pictures", 1)
    with pytest.raises(GalleryError, match="is no gallery"):
        Gallery.create(tmp_path / "pictures", tiny_model())
    info = gallery.path / "gallery.json"
    content = json.loads(info.read_text())
    (gallery.path / "seal.json").unlink()
    info.write_text(json.dumps({**content, "format": 99}))
    with pytest.raises(GalleryError, match="format 99, newer"):
        Gallery.open(gallery.path)
    info.write_text("{")
    with pytest.raises(GalleryError, match="damaged"):
        Gallery.open(gallery.path)


def test_a_model_that_moved_is_named(tmp_path: Path) -> None:
    tiny_model().save(tmp_path / "model.safetensors")
    Gallery.create(tmp_path / "gallery", tiny_model(), source=tmp_path / "model.safetensors")
    (tmp_path / "model.safetensors").unlink()
    opened = Gallery.open(tmp_path / "gallery")
    with pytest.raises(GalleryError, match="--model"):
        opened.model  # noqa: B018


def test_one_writer_at_a_time(gallery: Gallery) -> None:
    with (
        gallery.writing(),
        pytest.raises(GalleryError, match="another process"),
        Gallery.open(gallery.path).writing(),
    ):
        pass
    with Gallery.open(gallery.path).writing():
        pass


def test_texts_are_kept_once(gallery: Gallery) -> None:
    assert gallery.add_texts(list(WORDS)) == len(WORDS)
    assert gallery.add_texts([*WORDS, "a new one"]) == 1
    assert sorted(row.caption or "" for row in gallery.rows(range(len(gallery)))) == sorted([*WORDS, "a new one"])
    assert np.array_equal(gallery.vectors[:4], tiny_model().encode_texts(list(WORDS)))


def test_a_folder_of_pictures_is_no_gallery_but_can_be_put_into_one(tmp_path: Path) -> None:
    (tmp_path / "scene.png").write_bytes(b"")
    with pytest.raises(GalleryError, match=f"evidex index {tmp_path} --gallery NEW_FOLDER"):
        Gallery.open(tmp_path)
    with pytest.raises(GalleryError, match="make one with"):
        Gallery.open(tmp_path / "nothing")
