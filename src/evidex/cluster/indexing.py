"""An index run whose files are decoded and encoded by workers all over a Ray cluster.

The run itself stays what it is: it finds the files, knows what is in the gallery, commits, and reports. Workers get
files in batches, write the rows of new ones beside the table, and tell what is to be committed. A worker that is lost,
with its node or alone, has committed nothing: its files go to another.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evidex.cluster.connection import failure_of
from evidex.cluster.index_worker import Batch, IndexWorker, WorkerJob
from evidex.errors import ClusterError
from evidex.retrieval.indexing.decode_worker import Content, DecodeTask, Failed, Finished, Same
from evidex.retrieval.indexing.pruning import is_gone
from evidex.retrieval.indexing.workforce import EncodedFiles, Job
from evidex.storage.objects import Place

_MOST_FILES, _FEWEST_FILES = 256, 8
_MOST_BYTES = 256 << 20
_BATCHES_A_WORKER = 4
_QUEUED = 2
"""Batches that a worker has at once: it need not wait for the driver between two."""
_ATTEMPTS = 3
_PARTS = 16
_LOOK_SECONDS = 1.0
_PATIENCE_SECONDS = 180.0
_OUT_OF_SIGHT = "cannot be opened: no such file"


@dataclass(eq=False)
class _Worker:
    actor: Any
    started: Any
    """Done once the model is loaded; None from then on."""
    batches: dict[Any, Batch] = field(default_factory=dict)


class ClusterWorkforce:
    """The workers of the cluster that this process drives, for one gallery; each has one core, or one card."""

    def __init__(self, gallery: Place) -> None:
        self._gallery = str(gallery.absolute() if isinstance(gallery, Path) else gallery)

    @contextmanager
    def at_work(self, job: Job) -> Iterator[Iterator[EncodedFiles]]:
        work = _Work(self._gallery, job)
        try:
            yield work.results()
        finally:
            work.end()


class _Work:
    """One job: batches that wait, and workers with those they have."""

    def __init__(self, gallery: str, job: Job) -> None:
        import ray

        self._ray, self._job = ray, job
        shape = _shape([node["Resources"] for node in ray.nodes() if node["Alive"]], job.workers, len(job.tasks))
        self._start = (
            ray.remote(IndexWorker)
            .options(num_cpus=shape.cpus, num_gpus=shape.cards, max_restarts=0, max_task_retries=0)
            .remote
        )
        self._told = WorkerJob(gallery, job.read, job.reading, max(1, int(shape.cpus)))
        self._most = min(_MOST_FILES, max(_FEWEST_FILES, len(job.tasks) // (shape.workers * _BATCHES_A_WORKER)))
        self._batches = deque(_batches(job, job.tasks, self._most))
        self._again: list[DecodeTask] = []
        """To be decoded after all: their content is not in the gallery."""
        self._workers = [self._started() for _ in range(shape.workers)]
        self._lost_in_a_row = 0

    def results(self) -> Iterator[EncodedFiles]:
        heard = time.monotonic()
        while self._batches or self._again or any(worker.batches for worker in self._workers):
            if len(self._again) >= self._most or not self._batches:
                self._batches.extend(_batches(self._job, self._again, self._most))
                self._again = []
            self._hand_out()
            refs = [ref for worker in self._workers for ref in (worker.started, *worker.batches) if ref is not None]
            done, _ = self._ray.wait(refs, num_returns=1, timeout=_LOOK_SECONDS)
            for ref in done:
                heard = time.monotonic()
                yield from self._taken(ref)
            starting = not any(worker.batches for worker in self._workers)
            if starting and time.monotonic() - heard > _PATIENCE_SECONDS:
                raise ClusterError(
                    f"the cluster has started no worker for {_PATIENCE_SECONDS:g} s; are its nodes there, and idle?"
                )

    def end(self) -> None:
        for worker in self._workers:
            self._ray.kill(worker.actor)

    def _started(self) -> _Worker:
        actor = self._start(self._told)
        return _Worker(actor, actor.ready.remote())

    def _hand_out(self) -> None:
        for depth in range(_QUEUED):
            for worker in self._workers:
                if self._batches and worker.started is None and len(worker.batches) == depth:
                    batch = self._batches.popleft()
                    worker.batches[worker.actor.encode.remote(batch)] = batch

    def _taken(self, ref: Any) -> Iterator[EncodedFiles]:
        """What a worker has told; one that is lost is replaced, and its batches wait again."""
        from ray.exceptions import ObjectLostError, RayActorError, RayTaskError

        worker = next(worker for worker in self._workers if ref is worker.started or ref in worker.batches)
        try:
            found = self._ray.get(ref)
        except RayTaskError as error:
            raise failure_of(error, "a worker of the cluster") from None
        except (RayActorError, ObjectLostError):  # an answer may be lost too, with the node where it lay
            yield from self._replaced(worker)
            return
        if worker.started is not None:
            worker.started = None
            return
        self._lost_in_a_row = 0
        yield self._judged(worker.batches.pop(ref), found)

    def _replaced(self, worker: _Worker) -> Iterator[EncodedFiles]:
        self._lost_in_a_row += 1
        if self._lost_in_a_row > 2 * len(self._workers) + _ATTEMPTS:
            raise ClusterError("the workers of the cluster end before they answer; look into Ray's logs for the cause")
        self._workers.remove(worker)
        self._ray.kill(worker.actor)
        self._workers.append(self._started())
        for number, batch in enumerate(worker.batches.values()):
            if number:
                self._batches.appendleft(batch)  # it had not begun
            elif batch.attempt < _ATTEMPTS:
                self._batches.extendleft(_parts(batch))
            else:
                # The file may be as good as ever, and its worker's machine not: no reason to prune it.
                reason = f"ended its worker {_ATTEMPTS} times"
                ends = tuple(Failed(task.file.path, reason, changed=True) for task in batch.tasks)
                yield EncodedFiles((), None, None, (), ends)

    def _judged(self, batch: Batch, found: EncodedFiles) -> EncodedFiles:
        """Files of a content that the gallery lacks are asked for again, to be decoded."""
        tasks = {task.file.path: task for task in batch.tasks}
        ends: list[Finished | Failed | Same] = []
        for end in found.ends:
            if isinstance(end, Same) and self._job.wanted(Content(end.path, end.sha256, end.raster)):
                self._again.append(replace(tasks[end.path], file=end.file, ask=False))
            elif isinstance(end, Failed) and end.reason.startswith(_OUT_OF_SIGHT) and not is_gone(end.path):
                reason = "is not there for a worker of the cluster; mount the archive at the same place on every node"
                ends.append(replace(end, reason=reason, changed=True))
            else:
                ends.append(end)
        return replace(found, ends=tuple(ends))


@dataclass(frozen=True)
class _Shape:
    workers: int
    cpus: float
    cards: int


def _shape(nodes: Sequence[Mapping[str, float]], asked: int | None, tasks: int) -> _Shape:
    """A worker for each card, with as many cores as every node has for its cards; without cards one for each core."""
    lent = [(int(node.get("CPU", 0)), int(node.get("GPU", 0))) for node in nodes]
    cores, cards = sum(cores for cores, _ in lent), sum(cards for _, cards in lent)
    if cores + cards < 1:
        raise ClusterError("the cluster has no core to work with; give its nodes some (--num-cpus)")
    workers = min(asked or cards or cores, -(-tasks // _FEWEST_FILES))
    if not cards:
        return _Shape(workers, 1, 0)
    return _Shape(workers, min(cores // cards for cores, cards in lent if cards), 1)


def _batches(job: Job, tasks: Sequence[DecodeTask], most: int) -> Iterator[Batch]:
    """Files in their order; those that the gallery knows apart from new ones, whose rows workers may write."""
    for is_new in (True, False):
        part: list[DecodeTask] = []
        size = 0
        for task in tasks:
            if job.is_new(task.file.path) != is_new:
                continue
            if part and (len(part) == most or size + task.file.size > _MOST_BYTES):
                yield _batch(job, part, is_new)
                part, size = [], 0
            part.append(task)
            size += task.file.size
        if part:
            yield _batch(job, part, is_new)


def _parts(batch: Batch) -> Iterator[Batch]:
    """A batch that was lost, in smaller ones, at last of one file: what ends workers shall not keep others out."""
    size = max(1, len(batch.tasks) // _PARTS)
    for start in range(0, len(batch.tasks), size):
        yield replace(batch, tasks=batch.tasks[start : start + size], attempt=batch.attempt + 1)


def _batch(job: Job, tasks: list[DecodeTask], is_new: bool) -> Batch:
    captions = {task.file.path: words for task in tasks if (words := job.captions(task.file.path))}
    assets = {task.file.path: job.assets[task.file.path] for task in tasks if task.file.path in job.assets}
    return Batch(tuple(tasks), captions, assets, is_new)
