"""What a repair gave up is told until it is back: file by file, and where they have no names until somebody says so."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from evidex.data.items import ReadOptions
from evidex.data.rendering import TileOptions
from evidex.retrieval.filters import Filters
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.indexing import IndexOptions
from evidex.retrieval.reindexing import reindex
from evidex.retrieval.retriever import Retriever
from evidex.retrieval.soundness.seal import read_seal
from evidex.retrieval.verifying.repair import forget_losses, repair
from evidex.retrieval.verifying.verify import SoundnessReport, verify
from tests.retrieval.archive import tiny_model, write_images, write_raster
from tests.retrieval.verifying.damaging import flip

_ONE = IndexOptions(workers=1)
_TILES = IndexOptions(workers=1, batch_size=4, read=ReadOptions(tiles=TileOptions(tile=64, overlap=0)))


@pytest.fixture(autouse=True)
def _in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small galleries are one piece, and lose all or nothing."""
    monkeypatch.setattr(Gallery, "compact", lambda _: None)


@pytest.fixture
def archive(tmp_path: Path) -> Gallery:
    """Four pictures in two pieces."""
    made = Gallery.create(tmp_path / "g", tiny_model())
    for name in ("a", "b"):
        write_images(tmp_path / name, 2, seed_of(name))
        made.add(tmp_path / name, options=_ONE)
    return made


def seed_of(name: str) -> int:
    return 10 * ord(name)


def pieces(gallery: Gallery) -> list[Path]:
    return sorted((gallery.path / "rows.lance" / "data").iterdir(), key=lambda path: path.stat().st_mtime_ns)


def damage(gallery: Gallery, number: int) -> None:
    """Flip a bit of a vector of one piece; the paths beside it can be read."""
    piece = pieces(gallery)[number]
    content = piece.read_bytes()
    opened = Gallery.open(gallery.path)
    flip(piece, next(place for vector in opened.vectors if (place := content.find(vector.tobytes())) >= 0))


def names(folder: Path) -> list[str]:
    seal = read_seal(folder)
    assert seal is not None
    return [Path(path).name for path in seal.lost.files]


def indexed(gallery: Gallery, place: Path, options: IndexOptions = _ONE) -> SoundnessReport:
    Gallery.open(gallery.path, tiny_model()).add(place, options=options)
    return verify(gallery.path)


def test_a_lost_file_is_missed_until_it_is_a_row_again(archive: Gallery, tmp_path: Path) -> None:
    damage(archive, 1)
    assert not repair(archive.path).sound
    lost = names(archive.path)
    assert len(lost) == 2
    write_images(tmp_path / "c", 1, 7)
    for other in (tmp_path / "a", tmp_path / "c"):
        assert [finding.kind for finding in indexed(archive, other).findings] == ["lost"]
    report = indexed(archive, tmp_path / "b" / lost[0])
    assert names(archive.path) == lost[1:]
    assert lost[1] in str(report.findings[0])
    assert indexed(archive, tmp_path / "b").sound
    assert len(Gallery.open(archive.path)) == 5


def test_a_lost_file_that_is_gone_is_missed_until_it_was_looked_for(archive: Gallery, tmp_path: Path) -> None:
    damage(archive, 1)
    repair(archive.path)
    (tmp_path / "b" / names(archive.path)[0]).unlink()
    assert not indexed(archive, tmp_path / "a").sound
    assert len(names(archive.path)) == 2
    assert indexed(archive, tmp_path / "b").sound


def test_what_was_lost_without_names_is_missed_until_somebody_says_it_is_back(archive: Gallery, tmp_path: Path) -> None:
    os.truncate(pieces(archive)[1], 100)
    repair(archive.path)
    report = indexed(archive, tmp_path)
    assert report.rows == 4
    assert "--forget-losses" in str(report.findings[0])
    forget_losses(archive.path)
    assert verify(archive.path).sound


def test_what_was_lost_before_is_not_forgotten_for_a_new_loss(archive: Gallery) -> None:
    for number in (1, 2):
        damage(archive, 0)
        repair(archive.path)
        assert len(names(archive.path)) == 2 * number


def test_a_name_that_is_damaged_itself_is_not_taken_for_a_file(archive: Gallery, tmp_path: Path) -> None:
    piece = pieces(archive)[1]
    flip(piece, piece.read_bytes().index(b"scene_"))
    repair(archive.path)
    assert not indexed(archive, tmp_path / "b" / "scene_0980.png").sound
    assert not indexed(archive, tmp_path / "a").sound


def _tiled(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Gallery:
    """A gallery of one scene, s/scene.tif, whose tiles lie in several pieces."""
    monkeypatch.setattr(Gallery, "rows_a_commit", 8)
    made = Gallery.create(folder / "g", tiny_model())
    (folder / "s").mkdir()
    values = np.random.default_rng(0).integers(1, 255, (3, 256, 256), dtype=np.uint8)
    write_raster(folder / "s" / "scene.tif", values)
    made.add(folder / "s", options=_TILES)
    return made


@pytest.mark.parametrize("place", [0, -1])
def test_a_scene_that_lost_some_of_its_tiles_is_cut_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    """Also where the last, by which a scene counts as whole, is left."""
    made = _tiled(tmp_path, monkeypatch)
    rows = len(made)
    assert made.pieces() > 1
    damage(made, place)
    repair(made.path)
    assert len(Gallery.open(made.path)) < rows
    assert names(made.path) == ["scene.tif"]
    report = indexed(made, tmp_path / "s", _TILES)
    assert report.sound
    assert report.rows == rows


def test_a_scene_that_lost_tiles_without_names_is_cut_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = _tiled(tmp_path, monkeypatch)
    rows = len(made)
    os.truncate(pieces(made)[0], 100)
    repair(made.path)
    assert indexed(made, tmp_path / "s", _TILES).rows == rows


def test_answers_say_what_the_gallery_lacks(archive: Gallery, tmp_path: Path) -> None:
    retriever = Retriever(Gallery.open(archive.path, tiny_model()))
    assert retriever.search(text="a river").json()["lacking"] is None
    damage(archive, 1)
    repair(archive.path)
    lost = names(archive.path)[0]
    retriever.refresh()
    for filters in (Filters(), Filters(glob="*/nowhere/*")):
        answer = retriever.search(text="a river", filters=filters)
        assert "lacks rows" in answer.json()["lacking"]
        assert lost in answer.json()["lacking"]
        assert answer.explanation.endswith(answer.json()["lacking"])
    indexed(archive, tmp_path / "b")
    retriever.refresh()
    answer = retriever.search(text="a river")
    assert (answer.json()["lacking"], "lacks" in answer.explanation) == (None, False)


def test_what_a_gallery_lacks_its_successor_lacks(archive: Gallery, tmp_path: Path) -> None:
    damage(archive, 1)
    repair(archive.path)
    made = Gallery.create(tmp_path / "new", tiny_model(1))
    reindex(Gallery.open(archive.path, tiny_model()), made, _ONE)
    assert names(made.path) == names(archive.path)
