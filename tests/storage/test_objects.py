"""A gallery in an object store is used as one in a folder is: indexed, searched, calibrated, verified."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evidex.cli.app import main
from evidex.errors import DamagedError, GalleryError, InputError, StorageError
from evidex.retrieval.certainty.self_calibrating import self_calibrate
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.indexing import IndexOptions
from evidex.retrieval.retriever import Retriever
from evidex.retrieval.rows import Row, item_id
from evidex.retrieval.soundness.seal import digest_of
from evidex.retrieval.verifying.repair import repair
from evidex.retrieval.verifying.verify import verify
from evidex.retrieval.written_rows import write_rows
from evidex.storage import objects
from evidex.storage.objects import ObjectPlace, place_of
from tests.retrieval.archive import WORDS, arbitrary_gallery, tiny_model, write_images
from tests.storage.store import BUCKET, Store, fresh_place

pytestmark = pytest.mark.usefixtures("store")


def test_an_address_is_a_place_and_so_is_a_path(tmp_path: Path) -> None:
    assert place_of("s3://bucket/some/gallery/") == ObjectPlace("bucket", "some/gallery")
    assert str(place_of("s3://bucket/some") / "seal.json") == "s3://bucket/some/seal.json"
    assert place_of(str(tmp_path)) == tmp_path
    for wrong in ("s3://bucket", "s3://", "s3:///x", "gs://bucket/x", "s3://bucket/a//b", "s3://bucket/../b"):
        with pytest.raises(InputError, match="s3://BUCKET/PREFIX"):
            place_of(wrong)


class Failing(io.BytesIO):
    """Gives some of its bytes, and then an error."""

    def __init__(self, content: bytes, error: str = "the disk is broken") -> None:
        super().__init__(content)
        self._error = error

    def read(self, size: int | None = -1) -> bytes:
        if piece := super().read(min(size or 0, 4)):
            return piece
        raise OSError(self._error)


def test_an_upload_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = place_of(fresh_place())
    assert isinstance(place, ObjectPlace)
    (tmp_path / "file").write_bytes(b"new content")
    (place / "file").write_bytes(b"old")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", lambda *_: Failing(b"new content"))
        for name in ("file", "other"):
            with pytest.raises(StorageError, match="the disk is broken"):
                (place / name).copy_from(tmp_path / "file")
    assert {name: (place / name).read_bytes() for name in place.listed()} == {"file": b"old"}
    monkeypatch.setattr(objects, "_READ_AHEAD", 4)
    (place / "file").copy_from(tmp_path / "file")
    assert {name: (place / name).read_bytes() for name in place.listed()} == {"file": b"new content"}


def test_an_object_that_is_replaced_while_it_is_read_is_read_whole(store: Store) -> None:
    place = place_of(fresh_place()) / "file"
    assert isinstance(place, ObjectPlace)
    place.write_bytes(b"old")
    asked: list[str] = []

    def replaced(environ: dict[str, Any]) -> None:
        asked.append(environ["REQUEST_METHOD"])
        if asked == ["HEAD", "GET"]:
            store.client().put_object(Bucket=BUCKET, Key=place.key, Body=b"new and longer")

    store.meddling = replaced
    try:
        assert place.read_bytes() == b"new and longer"
    finally:
        store.meddling = None


def test_a_file_of_a_store_that_cannot_be_read_to_its_end_is_not_called_damaged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = place_of(fresh_place()) / "file"
    busy = Failing(b"some of it", "AWS Error SLOW_DOWN during GetObject operation")
    monkeypatch.setattr(ObjectPlace, "open", lambda *_, **__: busy)
    with pytest.raises(StorageError, match="answers that it cannot serve us now"):
        digest_of(place)


def test_a_gallery_opens_where_the_cache_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = arbitrary_gallery(fresh_place(), tiny_model(), 20).place  # type: ignore[arg-type]
    (tmp_path / "no folder").touch()
    monkeypatch.setenv("EVIDEX_CACHE", str(tmp_path / "no folder" / "cache"))
    gallery = Gallery.open(where)
    assert Retriever(gallery).search(text=WORDS[0]).hits
    assert gallery.derived == Gallery.open(where).derived, "one folder as long as the process lives"


def test_it_answers_as_a_folder_does(tmp_path: Path) -> None:
    write_images(tmp_path / "scenes", 12)
    answers = []
    for place in (str(tmp_path / "gallery"), where := fresh_place()):
        one = IndexOptions(workers=1)  # so that the rows come in the same order
        Gallery.create(place, tiny_model()).add([tmp_path / "scenes"], options=one)
        gallery = Gallery.open(place)  # with the model that lies in it
        assert self_calibrate(gallery, np.random.default_rng(0))
        answers.append(Retriever(Gallery.open(place)).search(text=WORDS[0], top=5))
    here, there = answers
    assert [(hit.id, hit.score) for hit in here.hits] == [(hit.id, hit.score) for hit in there.hits]
    assert (here.verdict, here.uncertainty) == (there.verdict, there.uncertainty)
    report = verify(where)
    assert report.sound
    assert (report.rows, report.gallery) == (12, where)


@pytest.mark.slow
def test_what_is_there_is_left_alone_and_what_is_new_is_added(tmp_path: Path) -> None:
    paths = write_images(tmp_path / "scenes", 6)
    gallery = Gallery.create(fresh_place(), tiny_model())
    gallery.add([tmp_path / "scenes"])
    write_images(tmp_path / "scenes", 2, first=6)
    paths[0].unlink()
    again = Gallery.open(str(gallery.place), tiny_model()).add([tmp_path / "scenes"])
    assert (again.added, again.unchanged, again.rows) == (2, 5, 8)
    assert len(gallery) == 6
    assert gallery.refresh()
    assert len(gallery) == 8


@pytest.mark.parametrize("how", ["other bytes", "shorter", "gone"])
def test_damage_is_told_and_never_answered_from(store: Store, how: str) -> None:
    gallery = arbitrary_gallery(fresh_place(), tiny_model(), 20)  # type: ignore[arg-type]
    assert Retriever(gallery).search(text=WORDS[0]).hits
    client, prefix = store.client(), f"{gallery.place.key}/rows.lance/data/"  # type: ignore[union-attr]
    (key,) = [each["Key"] for each in client.list_objects_v2(Bucket=BUCKET, Prefix=prefix)["Contents"]]
    content = client.get_object(Bucket=BUCKET, Key=key)["Body"].read()
    if how == "gone":
        client.delete_object(Bucket=BUCKET, Key=key)
    else:
        middle = len(content) // 2
        other = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
        client.put_object(Bucket=BUCKET, Key=key, Body=other if how == "other bytes" else content[:-1])
    with pytest.raises(DamagedError, match="is missing" if how == "gone" else "is not what was written"):
        Gallery.open(str(gallery.place), tiny_model())
    found = verify(str(gallery.place)).findings
    assert [finding.kind for finding in found] == ["rows"]


def test_the_mapped_copy_of_the_vectors_is_made_again_where_it_is_damaged() -> None:
    gallery = arbitrary_gallery(fresh_place(), tiny_model(), 20)  # type: ignore[arg-type]
    sound = gallery.vectors.copy()
    (file,) = gallery.derived.glob("vectors-*.f32")
    file.write_bytes(b"\0" * file.stat().st_size)
    assert np.array_equal(Gallery.open(str(gallery.place), tiny_model()).vectors, sound)


@pytest.mark.slow
def test_two_writers_lose_no_row(tmp_path: Path) -> None:
    """Each is a process of its own: threads of one take turns before the store is asked."""
    where = fresh_place()
    Gallery.create(where, tiny_model())
    for part in range(2):
        write_images(tmp_path / str(part), 5, first=10 * part)
    code = (
        "import sys\nfrom evidex import Gallery\nfrom evidex.retrieval.indexing import IndexOptions\n"
        "Gallery.open(sys.argv[1]).add([sys.argv[2]], options=IndexOptions(workers=1, rows_a_commit=1))"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, where, tmp_path / str(part)]) for part in range(2)]
    assert [writer.wait() for writer in writers] == [0, 0]
    assert len(Gallery.open(where, tiny_model())) == 10
    assert verify(where).sound


def test_writers_that_both_believe_to_hold_it_lose_no_row() -> None:
    first = arbitrary_gallery(fresh_place(), tiny_model(), 20)  # type: ignore[arg-type]
    second, vectors = Gallery.open(first.place, tiny_model()), first.vectors[:1]
    for number, gallery in enumerate((first, second)):
        row = Row(item_id(name := f"more {number}"), name, "image", f"{number:064x}")
        gallery.append_written([write_rows(gallery.place, [row], vectors)])
    assert len(Gallery.open(first.place, tiny_model())) == 22
    assert verify(str(first.place)).sound


def test_there_is_one_gallery_at_a_place() -> None:
    where = fresh_place()
    Gallery.create(where, tiny_model())
    with pytest.raises(GalleryError, match="is a gallery already"):
        Gallery.create(where, tiny_model())
    (place_of(where).parent / "other" / "file").write_bytes(b"something")
    with pytest.raises(GalleryError, match="is no gallery"):
        Gallery.create(str(place_of(where).parent / "other"), tiny_model())


@pytest.mark.slow
def test_a_repair_drops_what_is_lost_and_keeps_the_rest() -> None:
    gallery = arbitrary_gallery(fresh_place(), tiny_model(), 20)  # type: ignore[arg-type]
    data = gallery.place / "rows.lance" / "data"
    before = {path.name for path in data.glob("*")}
    gallery.append([Row(item_id("more"), "more", "image", "f" * 64)], gallery.vectors[:1])
    (lost,) = [path for path in data.glob("*") if path.name not in before]
    lost.unlink()
    report = repair(str(gallery.place))
    assert [finding.kind for finding in report.findings] == ["rows", "lost"]
    assert len(Gallery.open(str(gallery.place), tiny_model())) == 20
    (gallery.place / "gallery.json").write_bytes(b"{")
    assert [finding.kind for finding in repair(str(gallery.place)).findings if finding.mended] == ["info"]


@pytest.mark.slow
def test_an_index_that_finds_nothing_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "broken.png").write_bytes(b"no picture")
    where = fresh_place()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evidex.encoders.model.load_model", lambda _: tiny_model())
        patch.setattr(sys, "argv", ["evidex", "index", str(tmp_path), "--gallery", where])
        with pytest.raises(SystemExit):
            main()
    assert not place_of(where).exists()
