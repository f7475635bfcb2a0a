"""How shards are asked where some of their processes are lost or fail; with actors that are no processes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from evidex.errors import ClusterError, DamagedError
from evidex.retrieval.sharded import rows
from evidex.retrieval.sharded.fleet import Fleet, ShardOptions
from evidex.retrieval.sharded.span import MovedError
from tests.retrieval.archive import arbitrary_gallery, tiny_model

pytest.importorskip("ray")
Answer = Callable[[], Any]


@dataclass(eq=False)
class Actor:
    """Answers whatever it is asked in one way."""

    answer: Answer

    def __getattr__(self, _: str) -> Any:
        return type("Method", (), {"remote": lambda *_: self.answer})()


class Slow:
    """Is looked for several times before it answers."""

    def __init__(self, looks: int) -> None:
        self._looks = self._left = looks

    def is_at_work(self) -> bool:
        self._left -= 1
        return self._left >= 0

    def __call__(self) -> str:
        self._left = self._looks
        return "answer"


class FakeRay:
    """As much of Ray as a fleet asks for; what fails does so at once, what answers is heard later."""

    def __init__(self, *answers: Answer) -> None:
        from ray import exceptions

        self.exceptions = exceptions
        self.answers = list(answers)

    def nodes(self) -> list[dict[str, Any]]:
        return [{"NodeID": "a" * 56, "Alive": True, "Resources": {"CPU": 2.0}}]

    def remote(self, _: type) -> Any:
        made = type("Made", (), {"remote": lambda *_: Actor(self.answers.pop(0))})()
        return type("Class", (), {"options": lambda *_, **__: made})()

    def wait(self, refs: list[Answer], *, timeout: float, **_: Any) -> tuple[list[Answer], list[Answer]]:
        if isinstance(refs[0], Slow) and refs[0].is_at_work():
            time.sleep(timeout)
            return [], refs
        return refs[:1], refs[1:]

    def get(self, ref: Answer) -> Any:
        return ref()


def fleet(monkeypatch: pytest.MonkeyPatch, *answers: Answer, **options: Any) -> Fleet:
    from ray.util import scheduling_strategies

    assert scheduling_strategies
    monkeypatch.setitem(sys.modules, "ray", FakeRay(*answers))
    return Fleet("/gallery", ShardOptions(1, **options))


def lost() -> Any:
    from ray.exceptions import ActorUnavailableError

    raise ActorUnavailableError("it is being started anew", None)


def failing(error: Exception) -> Answer:
    from ray.exceptions import RayTaskError

    def answer() -> Any:
        raise RayTaskError("scan", "its traceback", error, proctitle="shard", pid=1, ip="here")

    return answer


def test_a_shard_is_there_as_long_as_one_of_its_replicas_is(monkeypatch: pytest.MonkeyPatch) -> None:
    fleet(monkeypatch, lost, lambda: 17, replicas=2).check(1.0)
    with pytest.raises(ClusterError, match=r"shard 1 of 1 was not to be had in 1 s"):
        fleet(monkeypatch, lost, lost, replicas=2).check(1.0)


def test_a_shard_that_opens_the_gallery_has_longer_than_one_that_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evidex.retrieval.sharded.fleet._LOOK_SECONDS", 0.05)
    asked = fleet(monkeypatch, Slow(5), patience=0.1)
    assert asked.each("scan", {0: ()}) == {0: "answer"}
    with pytest.raises(ClusterError, match=r"shard 1 of 1 was not to be had in 0\.1 s \(it does not answer\)"):
        asked.each("scan", {0: ()})


def test_why_a_shard_failed_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DamagedError, match=r"^shard 1 of 1: its rows are gone$"):
        fleet(monkeypatch, failing(DamagedError("its rows are gone"))).each("scan", {0: ()})
    with pytest.raises(ClusterError, match=r"^shard 1 of 1 failed \(MemoryError: no room\); look into"):
        fleet(monkeypatch, failing(MemoryError("no\nroom"))).each("scan", {0: ()})
    with pytest.raises(MovedError):
        fleet(monkeypatch, failing(MovedError(7))).each("scan", {0: ()})


def test_a_cluster_is_let_go_of_where_no_process_can_be_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[str] = []

    class Cluster:
        def __init__(self, address: str) -> None:
            self._address = address

        def close(self) -> None:
            closed.append(self._address)

    def no_fleet(*_: object) -> None:
        raise ClusterError("no room")

    monkeypatch.setattr(rows, "Cluster", Cluster)
    monkeypatch.setattr(rows, "Fleet", no_fleet)
    with pytest.raises(ClusterError, match="no room"):
        rows.ShardedRows(arbitrary_gallery(tmp_path / "g", tiny_model(), 3), "local", ShardOptions())
    assert closed == ["local"]
