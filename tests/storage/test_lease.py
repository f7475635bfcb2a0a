"""One writer at a time where there are no locks; a writer that is gone does not keep others out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading

import pytest

from evidex.errors import GalleryError
from evidex.storage import lease as leases
from evidex.storage.lease import lease
from evidex.storage.objects import ObjectPlace, place_of
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
