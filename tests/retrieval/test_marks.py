"""Marks on hits: kept line by line, whatever happens to the process or the gallery."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import pytest

from evidex.errors import GalleryError, InputError
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.indexing import IndexOptions
from evidex.retrieval.marks import FILE, Asked, Mark, Marks, current
from evidex.retrieval.verifying.verify import verify
from tests.retrieval.archive import tiny_model, write_images

RIVER, LAKE = Asked("a river"), Asked("a lake")
RIGHT = Mark(RIVER, "one", "1" * 64, "right")


def _said(marks: Marks) -> list[tuple[str | None, str, str | None]]:
    return [(mark.asked.text, mark.id, mark.says) for mark in marks.all()]


def test_the_last_word_on_a_hit_holds_for_its_question_alone(tmp_path: Path) -> None:
    marks = Marks(tmp_path)
    assert marks.all() == []
    for mark in (RIGHT, replace(RIGHT, asked=LAKE), replace(RIGHT, id="two"), replace(RIGHT, says="wrong")):
        marks.add(mark)
    assert _said(marks) == [("a lake", "one", "right"), ("a river", "two", "right"), ("a river", "one", "wrong")]
    marks.add(replace(RIGHT, says=None))
    assert [mark.id for mark in Marks(tmp_path).of(Asked("  a   river "))] == ["two"]
    assert all(mark.time.endswith("+00:00") for mark in marks.all())


def test_a_torn_or_changed_line_is_passed_over_and_the_others_stay(tmp_path: Path) -> None:
    marks, file = Marks(tmp_path), tmp_path / FILE
    marks.add(RIGHT)
    whole = file.read_bytes()
    for torn in (whole[:-20], whole[:-1], whole.replace(b'"right"', b'"wrong"')):
        file.write_bytes(whole + torn)
        marks.add(replace(RIGHT, id="two"))
        assert {mark.id for mark in marks.all()} == {"one", "two"}
        assert {mark.says for mark in marks.all()} == {"right"}
        assert marks.damaged == (torn != whole[:-1])
    file.write_bytes(b"\xff\x00 nothing\n" + whole)
    assert _said(marks) == [("a river", "one", "right")]
    assert marks.damaged == 1


def _add_many(folder: str, name: str) -> None:
    for number in range(25):
        Marks(Path(folder)).add(replace(RIGHT, id=f"{name}{number}"))


def test_two_processes_lose_nothing(tmp_path: Path) -> None:
    context = get_context("fork")
    workers = [context.Process(target=_add_many, args=(str(tmp_path), name)) for name in "ab"]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(Marks(tmp_path).all()) == 50
    assert Marks(tmp_path).damaged == 0


def test_export_and_delete(tmp_path: Path) -> None:
    marks = Marks(tmp_path)
    marks.add(RIGHT)
    assert marks.export(tmp_path / "out.json") == 1
    (entry,) = json.loads((tmp_path / "out.json").read_text())
    assert (entry["asked"], entry["id"], entry["says"]) == ({"text": "a river", "item": None}, "one", "right")
    assert marks.delete() == 1
    assert marks.all() == []
    assert marks.delete() == 0


@pytest.mark.skipif(os.getuid() == 0, reason="nothing is closed to the superuser")
def test_a_folder_that_lets_nobody_write_is_told(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(GalleryError, match="lets nobody write"):
        Marks(tmp_path).add(RIGHT)


def test_a_question_without_words_or_item_is_none() -> None:
    with pytest.raises(InputError, match="the question is missing"):
        Asked()
    assert Asked("a river").is_plain
    assert not Asked("a river -boats").is_plain
    assert not Asked("a river", "one").is_plain


def test_indexing_leaves_marks_alone_and_those_of_what_is_gone_do_not_count(tmp_path: Path) -> None:
    first, second = write_images(tmp_path / "a", 2)
    gallery = Gallery.create(tmp_path / "gallery", tiny_model())
    gallery.add(tmp_path / "a", options=IndexOptions(workers=1))
    rows = {row.file: row for row in gallery.rows([0, 1])}
    marks = Marks(gallery.path)
    for row in rows.values():
        marks.add(Mark(RIVER, row.id, row.sha256, "right"))
    first.unlink()
    write_images(tmp_path / "a", 1, first=7)[0].replace(second)  # another picture in the place of the second
    third = write_images(tmp_path / "a", 1, first=9)[0]
    gallery.add(tmp_path / "a", options=IndexOptions(workers=1, prune=True))
    assert len(marks.all()) == 2
    digests = {record["id"]: record["sha256"] for record in gallery.records(["id", "sha256"])}
    assert current(marks.all(), digests) == []
    assert third.exists()
    with (gallery.path / FILE).open("ab") as stream:
        stream.write(b"torn")
    report = verify(gallery.path)
    assert report.sound
    assert [note for note in report.notes if "1 lines of marks.jsonl" in note]
