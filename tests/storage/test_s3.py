"""What is wrong with a store is told in one line, at the command line with exit code 2; a busy one is asked again."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from evidex.cli.app import main
from evidex.errors import StorageError
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.indexing import IndexOptions
from evidex.retrieval.retriever import Retriever
from evidex.retrieval.rows import Row, item_id
from evidex.retrieval.written_rows import write_rows
from evidex.storage import s3
from evidex.storage.objects import ObjectPlace, place_of
from tests.retrieval.archive import WORDS, arbitrary_gallery, tiny_model, write_images
from tests.storage.store import Store, fresh_place

pytestmark = pytest.mark.usefixtures("store")


def failed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line that a command which fails leaves."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["evidex", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
    assert stop.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


@pytest.fixture
def scenes(tmp_path: Path) -> str:
    write_images(tmp_path / "scenes", 2)
    return str(tmp_path / "scenes")


@pytest.mark.parametrize("verb", ["index", "search", "verify"])
def test_a_bucket_that_is_not_there(verb: str, store: Store, scenes: str, capsys: pytest.CaptureFixture[str]) -> None:
    asked = {"index": [scenes], "search": ["a river"], "verify": []}[verb]
    line = failed(capsys, verb, *asked, "--gallery", "s3://nowhere/gallery")
    assert "'s3://nowhere/gallery" in line
    assert f"there is no bucket 'nowhere' at {store.url}; make it, or name another" in line


def test_a_place_without_a_gallery(capsys: pytest.CaptureFixture[str]) -> None:
    where = fresh_place()
    assert f"'{where}' is no gallery; make one with" in failed(capsys, "search", "a river", "--gallery", where)


def test_an_endpoint_that_does_not_answer(
    scenes: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    line = failed(capsys, "index", scenes, "--gallery", fresh_place())
    assert "AWS_ENDPOINT_URL 'http://127.0.0.1:9' does not answer (connection refused); check the address" in line


def test_an_endpoint_that_takes_calls_and_says_nothing(
    scenes: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        monkeypatch.setattr(s3, "_ANSWER_SECONDS", 0.2)
        line = failed(capsys, "index", scenes, "--gallery", fresh_place())
        assert f"AWS_ENDPOINT_URL '{url}' does not answer (timed out); check the address" in line


def test_a_store_that_falls_silent_later_is_told_and_one_that_is_started_anew_is_awaited(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = place_of(fresh_place()) / "note"
    assert isinstance(note, ObjectPlace)
    note.write_bytes(b"there")
    for name, seconds in {"_TRUSTED_SECONDS": 0.0, "_SILENT_SECONDS": 0.3}.items():
        monkeypatch.setattr(s3, name, seconds)
    assert note.read_bytes() == b"there"
    with monkeypatch.context() as patch:
        patch.setattr(store, "meddling", lambda _: time.sleep(1.0))
        with pytest.raises(StorageError, match=r"does not answer \(timed out\)"):
            note.read_bytes()
    assert note.read_bytes() == b"there"
    gone = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{gone.getsockname()[1]}"
    gone.close()
    monkeypatch.setitem(s3._ANSWERED, url, 0.0)
    monkeypatch.setenv("AWS_ENDPOINT_URL", url)
    s3.filesystem()  # refuses now, and was there: its clients ask again


def test_no_credentials(
    scenes: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("HOME", str(tmp_path))
    line = failed(capsys, "index", scenes, "--gallery", fresh_place())
    assert "no credentials were found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY" in line


def test_a_busy_store_is_asked_again(store: Store) -> None:
    gallery = arbitrary_gallery(fresh_place(), tiny_model(), 20)  # type: ignore[arg-type]
    before = store.refused
    store.be_busy(1.5)
    assert Retriever(Gallery.open(str(gallery.place), tiny_model())).search(text=WORDS[0]).hits
    assert store.refused > before


@pytest.mark.parametrize("written_by", ["this process", "others"])
def test_a_commit_that_is_done_though_the_store_says_it_is_busy_counts_once(
    written_by: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    gallery = arbitrary_gallery(fresh_place(), tiny_model(), 20)  # type: ignore[arg-type]
    rows, vectors = [Row(item_id("more"), "more", "image", "f" * 64)], gallery.vectors[:1]
    app = store._app
    denied: list[str] = []

    def done_and_denied(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        name = environ["PATH_INFO"]
        if denied or environ["REQUEST_METHOD"] != "PUT" or "rows.lance/_versions" not in name:
            return list(app(environ, start))
        list(app(environ, lambda status, *_: denied.append(status)))
        start("503 Slow Down", [("Content-Type", "application/xml")])
        return [b"<Error><Code>SlowDown</Code></Error>"]

    monkeypatch.setattr(store, "_app", done_and_denied)
    if written_by == "this process":
        gallery.append(rows, vectors)
    else:
        gallery.append_written([write_rows(gallery.place, rows, vectors)])
    assert denied == ["200 OK"]
    assert len(gallery) == len(Gallery.open(gallery.place, tiny_model())) == 21


def test_a_store_that_stays_busy_is_told(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    gallery = arbitrary_gallery(fresh_place(), tiny_model(), 20)  # type: ignore[arg-type]
    monkeypatch.setattr(s3, "_ATTEMPTS", 2)
    monkeypatch.setattr(s3, "_LANCE_PATIENCE", {"client_max_retries": "1", "client_retry_timeout": "1"})
    s3._filesystem.cache_clear()
    store.be_busy(60)
    try:
        with pytest.raises(StorageError, match="answers that it cannot serve us now"):
            Gallery.open(str(gallery.place), tiny_model())
        with pytest.raises(StorageError, match="answers that it cannot serve us now"):
            gallery.rows([0])
    finally:
        store.be_busy(0)
        s3._filesystem.cache_clear()


@pytest.mark.slow
def test_ten_busy_seconds_in_the_middle_of_indexing_lose_nothing(store: Store, tmp_path: Path) -> None:
    write_images(tmp_path / "scenes", 40)
    gallery = Gallery.create(fresh_place(), tiny_model())

    def busy(_: object) -> None:
        if not store.refused:
            store.be_busy(10)

    store.refused = 0
    report = gallery.add([tmp_path / "scenes"], options=IndexOptions(rows_a_commit=8, committed=busy))
    assert store.refused
    assert (report.added, report.rows) == (40, 40)
