"""One writer at a time where there are no locks; a writer that is gone does not keep others out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

from evidex.errors import GalleryError
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.rows import Row, item_id
from evidex.retrieval.soundness.seal import SEAL
from evidex.storage import lease as leases
from evidex.storage.lease import lease
from evidex.storage.objects import ObjectPlace, place_of
from tests.retrieval.archive import arbitrary_gallery, tiny_model
from tests.storage.store import Store, fresh_place


@pytest.fixture
def place(store: Store) -> ObjectPlace:
    assert store.url
    made = place_of(fresh_place())
    assert isinstance(made, ObjectPlace)
    return made


def held_by(place: ObjectPlace, host: str, pid: int) -> None:
    leases._table(place).update_config({"holder": json.dumps({"token": "another", "host": host, "pid": pid})})


def test_a_second_writer_is_refused_or_waits(place: ObjectPlace) -> None:
    done: list[str] = []

    def second() -> None:
        with lease(place, wait=True):
            done.append("second")

    with lease(place, wait=False):
        with lease(place, wait=False):  # the holder may hold it again
            pass
        waiting = threading.Thread(target=second)
        waiting.start()
        refusals: list[GalleryError] = []

        def third() -> None:
            try:
                with lease(place, wait=False):
                    done.append("third")
            except GalleryError as error:
                refusals.append(error)

        asking = threading.Thread(target=third)
        asking.start()
        asking.join()
        assert "is being indexed by another process" in str(refusals[0])
        done.append("first")
    waiting.join()
    assert done == ["first", "second"]


def test_a_writer_elsewhere_is_believed_as_long_as_it_gives_signs(
    place: ObjectPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    held_by(place, "another machine", 1)
    with pytest.raises(GalleryError, match="is being indexed by another process"), lease(place, wait=False):
        pass
    monkeypatch.setattr(leases, "_SILENCE_SECONDS", 0.5)
    monkeypatch.setattr(leases, "_LOOK_SECONDS", 0.1)
    with lease(place, wait=True):
        assert json.loads(leases._table(place).config()["holder"])["pid"] == os.getpid()
    assert leases._table(place).config()["holder"] == ""


def test_a_writer_of_this_machine_that_is_gone_is_not_waited_for(place: ObjectPlace) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    held_by(place, leases._host(), ended.pid)
    with lease(place, wait=False):
        pass


def test_of_several_that_take_it_at_once_one_gets_it(place: ObjectPlace) -> None:
    tables = [leases._table(place) for _ in range(4)]
    assert [leases._changed(place, table, str(number)) for number, table in enumerate(tables)].count(True) == 1


def test_a_place_that_takes_no_change_is_not_asked_for_ever(
    place: ObjectPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "_REFUSALS", 3)
    monkeypatch.setattr(leases, "_changed", lambda *_: False)
    with pytest.raises(GalleryError, match="3 changes in a row were refused; run this again"), lease(place, wait=True):
        pass


def test_a_writer_that_lost_its_place_changes_nothing_more(store: Store) -> None:
    assert store.url
    gallery = arbitrary_gallery(fresh_place(), tiny_model(), 20)  # type: ignore[arg-type]
    place, vectors = gallery.place, gallery.vectors[:1]
    assert isinstance(place, ObjectPlace)
    row = Row(item_id("more"), "more", "image", "f" * 64)
    with gallery.writing():
        held_by(place, "another machine", 1)
        sealed = (place / SEAL).read_bytes()
        changes: list[Callable[[], None]] = [
            lambda: gallery.append([row], vectors),
            lambda: gallery.replace([row], vectors),
            lambda: gallery.remove([gallery.rows([0])[0].id]),
            lambda: gallery.note({"a": "b"}),
            gallery.compact,
            gallery._committed,
        ]
        for change in changes:
            with pytest.raises(GalleryError, match="was taken over by another process"):
                change()
    assert (place / SEAL).read_bytes() == sealed
    assert json.loads(leases._table(place).config()["holder"])["token"] == "another"
    again = Gallery.open(str(place), tiny_model())
    assert (again.version, len(again)) == (gallery.version, 20)


def test_who_lost_its_place_gives_no_signs(place: ObjectPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "_SIGN_SECONDS", 0.01)
    held_by(place, "another machine", 1)
    signs = threading.Thread(target=leases._give_signs, args=(place, "ours", over := threading.Event()), daemon=True)
    signs.start()
    signs.join(20)
    over.set()
    signs.join()
    assert leases._sign(place) is None
