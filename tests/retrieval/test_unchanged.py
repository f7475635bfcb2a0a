"""What lies at a row's path is shown only while it is what was indexed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evidex.errors import NotFoundError
from evidex.retrieval.contact_sheet import write_contact_sheet
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.indexing import IndexOptions
from evidex.retrieval.retriever import Retriever
from evidex.retrieval.unchanged import _content, check_unchanged
from tests.retrieval.archive import tiny_model, write_images


@pytest.fixture
def gallery(tmp_path: Path) -> Gallery:
    write_images(tmp_path / "scenes", 2)
    made = Gallery.create(tmp_path / "gallery", tiny_model())
    made.add(tmp_path / "scenes", options=IndexOptions(workers=1))
    return made


def test_another_file_of_the_same_size_and_time_is_not_shown(gallery: Gallery) -> None:
    row = gallery.rows([0])[0]
    gallery.open_image(row)
    times = row.file.stat()
    content = bytearray(row.file.read_bytes())
    content[-3] ^= 1
    row.file.write_bytes(bytes(content))
    os.utime(row.file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert row.file.stat().st_mtime_ns == row.mtime_ns
    with pytest.raises(NotFoundError, match="has changed since it was indexed"):
        gallery.open_image(row)


def test_a_file_with_other_times_is_read_once_and_shown(gallery: Gallery) -> None:
    row = gallery.rows([0])[0]
    os.utime(row.file, ns=(1, 1))
    before = _content.cache_info()
    for _ in range(3):
        check_unchanged(row)
    after = _content.cache_info()
    assert (after.misses - before.misses, after.hits - before.hits) == (1, 2)


def test_a_contact_sheet_tells_what_is_no_longer_the_hit(gallery: Gallery, tmp_path: Path) -> None:
    first, second = (row.file for row in gallery.rows([0, 1]))
    first.write_bytes(second.read_bytes())
    with Retriever(gallery) as retriever:
        answer = retriever.search(text="a river", top=2)
    write_contact_sheet(gallery, answer, tmp_path / "sheet.html")
    page = (tmp_path / "sheet.html").read_text()
    assert page.count("(gone, or changed since indexed)") == 1
    assert page.count("data:image/jpeg") == 1
