"""A pool of decoding processes: tasks in, messages out, whatever the files do to the processes."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from types import TracebackType

from evidex.errors import EvidexError
from evidex.retrieval.indexing.decode_worker import (
    Content,
    DecodeTask,
    Failed,
    Finished,
    Message,
    Ready,
    Same,
    WorkerSettings,
)

_SILENCE_ALLOWED = 120.0
_FAILED_STARTS_ALLOWED = 5


@dataclass
class _Worker:
    process: subprocess.Popen[bytes]
    pipe: Connection
    task: DecodeTask | None = None
    heard: float = field(default_factory=time.monotonic)
    ready: bool = False


class DecodePool:
    """Iterate over it to get the messages of all tasks, in the order in which they come.

    At most ``capacity`` messages wait to be taken; then the workers wait. A process that dies or falls silent is
    replaced, and its file reported as failed. ``wanted`` is asked, from another thread, whether a content is to be
    decoded. With ``keep`` the processes wait for more tasks, which `add` gives, and the messages never end.
    """

    def __init__(
        self,
        tasks: Iterable[DecodeTask],
        settings: WorkerSettings,
        *,
        workers: int,
        wanted: Callable[[Content], bool],
        capacity: int = 128,
        keep: bool = False,
        patience: float = _SILENCE_ALLOWED,
    ) -> None:
        self._tasks = deque(tasks)
        self._settings = settings
        self._keep = keep
        self._more, self._more_end = Pipe(duplex=False)
        self._count = workers if keep else max(1, min(workers, len(self._tasks)))
        self._wanted = wanted
        self._patience = patience
        self._messages: queue.Queue[Message | EvidexError | None] = queue.Queue(capacity)
        self._stop = threading.Event()
        self._workers: list[_Worker] = []
        self._failed_starts = 0
        self._thread = threading.Thread(target=self._serve, name="decoding", daemon=True)

    def __enter__(self) -> DecodePool:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def __iter__(self) -> Iterator[Message]:
        while (message := self._messages.get()) is not None:
            if isinstance(message, EvidexError):
                raise message
            yield message

    def add(self, tasks: Iterable[DecodeTask]) -> None:
        """Hand more tasks to a pool that is kept."""
        self._tasks.extend(tasks)
        self._more_end.send(None)

    def _serve(self) -> None:
        try:
            self._workers = [self._started() for _ in range(self._count)]
            while not self._stop.is_set() and self._workers:
                self._hand_out()
                self._listen()
            self._put(None)
        except EvidexError as error:
            self._put(error)
        finally:
            for worker in self._workers:
                _end(worker)

    def _hand_out(self) -> None:
        for worker in list(self._workers):
            if worker.task is not None or (self._tasks and not worker.ready):
                continue
            if not self._tasks:
                if not self._keep:
                    self._workers.remove(worker)
                    _end(worker)
                continue
            worker.task = self._tasks.popleft()
            worker.heard = time.monotonic()
            try:
                worker.pipe.send(worker.task)
            except OSError:
                self._bury(worker)

    def _listen(self) -> None:
        pipes = {worker.pipe: worker for worker in self._workers}
        for pipe in wait([*pipes, self._more], timeout=1.0):
            if pipe is self._more:
                self._more.recv()
                continue
            worker = pipes[pipe]  # type: ignore[index]
            try:
                message = worker.pipe.recv()
                if isinstance(message, Content):
                    worker.pipe.send(self._wanted(message))
            except (EOFError, OSError):
                self._bury(worker)
                continue
            if isinstance(message, Ready):
                worker.ready, self._failed_starts = True, 0
            elif not isinstance(message, Content):
                self._put(message)
            worker.heard = time.monotonic()  # after the wait for room in the queue
            if isinstance(message, (Finished, Failed, Same)):
                worker.task = None
        for worker in list(self._workers):
            if (worker.task is not None or not worker.ready) and time.monotonic() - worker.heard > self._patience:
                worker.process.kill()
                self._bury(worker, f"gave no sign for {self._patience:g} s and was given up")

    def _bury(self, worker: _Worker, reason: str | None = None) -> None:
        """Report the file a dead worker had open, and start another worker in its place."""
        _end(worker)
        self._workers.remove(worker)
        code = worker.process.returncode
        if worker.task is not None:
            self._put(Failed(worker.task.file.path, reason or _death(code)))
        self._failed_starts += not worker.ready
        if self._failed_starts > _FAILED_STARTS_ALLOWED:
            raise EvidexError("decoding processes end before they begin; check memory and the installation of evidex")
        if self._tasks or self._keep:
            self._workers.append(self._started())

    def _started(self) -> _Worker:
        ours, theirs = Pipe()
        environment = dict(os.environ)
        root = str(Path(__file__).resolve().parents[3])
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [root, environment.get("PYTHONPATH")]))
        # One thread each: the processes are the parallelism.
        environment.update(OMP_NUM_THREADS="1", GDAL_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
        process = subprocess.Popen(
            # -P: the folder one stands in may be the archive, whose files must never be taken for modules.
            [sys.executable, "-P", "-m", "evidex.retrieval.indexing.decode_worker", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,  # decoders in C write warnings there
        )
        theirs.close()
        worker = _Worker(process, ours)
        ours.send(self._settings)
        return worker

    def _put(self, message: Message | EvidexError | None) -> None:
        while not self._stop.is_set():
            try:
                self._messages.put(message, timeout=0.2)
                return
            except queue.Full:
                continue


def _end(worker: _Worker) -> None:
    worker.pipe.close()
    try:
        worker.process.wait(timeout=1.0)
    except subprocess.TimeoutExpired:
        worker.process.kill()
        worker.process.wait()


def _death(code: int) -> str:
    if code == -9:
        return "killed the decoder, perhaps for want of memory"
    if code < 0:
        return f"crashed the decoder (signal {-code})"
    return "made the decoder fail"
