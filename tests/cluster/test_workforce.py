"""What a run does about workers that are lost and files that they cannot do; with workers that are no processes."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evidex.cluster.index_worker import Batch
from evidex.cluster.indexing import ClusterWorkforce, _shape
from evidex.data.discover import FoundFile
from evidex.data.items import ReadOptions
from evidex.errors import ClusterError, MissingPackageError, StorageError
from evidex.retrieval.indexing.decode_worker import DecodeTask, Failed, Finished, Same
from evidex.retrieval.indexing.workforce import EncodedFiles, Job

End = Finished | Failed | Same


@dataclass(eq=False)
class Ref:
    answer: Callable[[], Any]


@dataclass
class Method:
    call: Callable[..., Any]

    def remote(self, *arguments: Any) -> Ref:
        return Ref(lambda: self.call(*arguments))


@dataclass
class FakeRay:
    """As much of Ray as a run asks for; ``encode`` stands for what a worker does."""

    encode: Callable[[Batch], EncodedFiles]
    started: int = 0
    batches: list[Batch] = field(default_factory=list)

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Alive": True, "Resources": {"CPU": 2.0}}, {"Alive": False, "Resources": {"CPU": 64.0}}]

    def remote(self, _: type) -> FakeRay:
        return self

    def options(self, **_: Any) -> Any:
        outer = self

        class Starter:
            def remote(self, _: Any) -> Any:
                outer.started += 1
                return type("Actor", (), {"ready": Method(lambda: True), "encode": Method(outer._encode)})()

        return Starter()

    def _encode(self, batch: Batch) -> EncodedFiles:
        self.batches.append(batch)
        return self.encode(batch)

    def wait(self, refs: list[Ref], **_: Any) -> tuple[list[Ref], list[Ref]]:
        return refs[:1], refs[1:]

    def get(self, ref: Ref) -> Any:
        return ref.answer()

    def kill(self, _: Any) -> None:
        pass


def finished(task: DecodeTask) -> Finished:
    return Finished(task.file.path, "0" * 64, False, task.file, 1, 1, 0, None)


def told(batch: Batch, end: Callable[[DecodeTask], End] = finished) -> EncodedFiles:
    return EncodedFiles((), np.empty((0, 2), np.float32), None, (), tuple(end(task) for task in batch.tasks))


def work(monkeypatch: pytest.MonkeyPatch, encode: Callable[[Batch], EncodedFiles], files: int, **job: Any) -> Any:
    """The ends of all files, and the Ray that saw them."""
    pytest.importorskip("ray")
    fake = FakeRay(encode)
    monkeypatch.setitem(sys.modules, "ray", _with_exceptions(fake))
    tasks = [DecodeTask(FoundFile(f"/scenes/{number:03d}.png", 100, 1)) for number in range(files)]
    asked: dict[str, Any] = {"wanted": lambda _: False, "is_new": lambda _: True, **job}
    described = Job(tasks, ReadOptions(), "tile 512", lambda _: (), {}, workers=None, **asked)
    with ClusterWorkforce(Path("/gallery")).at_work(described) as results:
        return [end for result in results for end in result.ends], fake


def _with_exceptions(fake: FakeRay) -> Any:
    from ray import exceptions

    fake.exceptions = exceptions  # type: ignore[attr-defined]
    return fake


def lost() -> Exception:
    from ray.exceptions import RayActorError

    error: Exception = RayActorError()
    return error


def test_a_lost_batch_is_done_file_by_file_and_a_file_that_ends_workers_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def encode(batch: Batch) -> EncodedFiles:
        if any(task.file.path.endswith("017.png") for task in batch.tasks):
            raise lost()
        return told(batch)

    ends, fake = work(monkeypatch, encode, 64)
    failed = [end for end in ends if isinstance(end, Failed)]
    assert [(end.path, end.reason) for end in failed] == [("/scenes/017.png", "ended its worker 3 times")]
    assert failed[0].changed, "nothing is pruned for it"
    assert sorted(end.path for end in ends) == [f"/scenes/{number:03d}.png" for number in range(64)]
    assert fake.started == 2 + 3


def test_workers_that_never_answer_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def encode(_: Batch) -> EncodedFiles:
        raise lost()

    with pytest.raises(ClusterError, match="end before they answer"):
        work(monkeypatch, encode, 64)


def test_why_a_worker_failed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(error: Exception) -> Callable[[Batch], EncodedFiles]:
        def encode(_: Batch) -> EncodedFiles:
            cause = pickle.loads(pickle.dumps(error))
            raise RayTaskError("encode", "its traceback", cause, proctitle="worker", pid=1, ip="here")

        return encode

    from ray.exceptions import RayTaskError

    with pytest.raises(StorageError, match=r"^a worker of the cluster: the store does not answer$"):
        work(monkeypatch, failing(StorageError("the store does not answer")), 8)
    with pytest.raises(MissingPackageError, match="cluster: this model needs torch, which is not installed; pip"):
        work(monkeypatch, failing(MissingPackageError("this model", "torch")), 8)
    with pytest.raises(ClusterError, match=r"^a worker of the cluster failed \(ValueError: two lines\); look into"):
        work(monkeypatch, failing(ValueError("two\nlines")), 8)


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([{"CPU": 2.0}, {"CPU": 4.0}, {}], (6, 1, 0)),
        ([{"CPU": 32.0}, {"CPU": 8.0, "GPU": 1.0}], (1, 8, 1)),
        ([{"CPU": 8.0, "GPU": 2.0}, {"CPU": 32.0, "GPU": 4.0}], (6, 4, 1)),
    ],
)
def test_workers_are_of_a_shape_that_nodes_have_room_for(
    nodes: list[dict[str, float]], expected: tuple[int, float, int]
) -> None:
    shape = _shape(nodes, None, 10_000)
    assert (shape.workers, shape.cpus, shape.cards) == expected
    with pytest.raises(ClusterError, match="has no core to work with"):
        _shape([{}], None, 10)


def test_a_content_that_the_gallery_lacks_is_decoded_after_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def same(task: DecodeTask) -> End:
        number = int(Path(task.file.path).stem)
        return Same(task.file.path, f"{number:064x}", False, task.file) if task.ask else finished(task)

    def encode(batch: Batch) -> EncodedFiles:
        asking = Batch(tuple(DecodeTask(task.file, ask=len(fresh) < 64) for task in batch.tasks), {}, {}, batch.write)
        fresh.extend(asking.tasks)
        return told(asking, same)

    fresh: list[DecodeTask] = []
    ends, _ = work(monkeypatch, encode, 64, wanted=lambda content: int(content.sha256, 16) % 2 == 0)
    assert sum(isinstance(end, Same) for end in ends) == 32
    assert sum(isinstance(end, Finished) for end in ends) == 32


def test_a_node_that_does_not_see_the_archive_says_so_and_nothing_is_pruned_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("evidex.cluster.indexing.is_gone", lambda _: False)
    unseen = lambda task: Failed(task.file.path, "cannot be opened: no such file or directory")  # noqa: E731
    ends, _ = work(monkeypatch, lambda batch: told(batch, unseen), 8)
    assert all(end.changed and "mount the archive at the same place on every node" in end.reason for end in ends)


def test_files_that_the_gallery_knows_come_back_with_their_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    _, fake = work(monkeypatch, told, 64, is_new=lambda path: path >= "/scenes/032")
    for batch in fake.batches:
        assert {task.file.path >= "/scenes/032" for task in batch.tasks} == {batch.write}
