"""Tasks in processes that share the cores, each begun when all that it needs has ended."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from graphlib import CycleError, TopologicalSorter
from multiprocessing import get_context
from pathlib import Path
from typing import Protocol, TypeVar

from evidex.errors import ConfigError, TrainingError


class Task(Protocol):
    """Something to do once: its name, and the names of the tasks that come before it."""

    @property
    def key(self) -> str: ...
    @property
    def needs(self) -> tuple[str, ...]: ...


SomeTask = TypeVar("SomeTask", bound=Task)
Result = TypeVar("Result")


def in_order(tasks: Sequence[Task]) -> TopologicalSorter[str]:
    """Which of ``tasks`` may begin when; what one needs beyond these is taken to be there. A circle is refused."""
    keys = {task.key for task in tasks}
    order = TopologicalSorter({task.key: [need for need in task.needs if need in keys] for task in tasks})
    try:
        order.prepare()
    except CycleError as error:
        circle = " → ".join(reversed(error.args[1]))
        raise ConfigError(f"'{error.args[1][0]}' needs itself ({circle}); take one of them out") from None
    return order


def results(tasks: Sequence[SomeTask], work: Callable[[SomeTask], Result], jobs: int) -> Iterator[Result]:
    """What ``work`` makes of each task, in the order in which it comes, ``jobs`` at a time; 0 = as many as fit."""
    by_key, order = {task.key: task for task in tasks}, in_order(tasks)
    jobs = jobs or _parallel()
    if jobs == 1 or not tasks:
        while order.is_active():
            for key in order.get_ready():
                yield work(by_key[key])
                order.done(key)
        return
    threads = max(1, _cores() // jobs)
    workers = min(jobs, len(tasks))
    with ProcessPoolExecutor(workers, get_context("spawn"), _prepare_worker, (threads, os.getpid())) as pool:
        running: dict[Future[Result], str] = {}
        try:
            while order.is_active():
                running |= {pool.submit(work, by_key[key]): key for key in order.get_ready()}
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    yield future.result()
                    order.done(running.pop(future))
        except BrokenProcessPool:
            raise TrainingError(
                "a training process died, perhaps for want of memory; lower jobs and run again, what is finished stays"
            ) from None
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def alone(output: Path) -> Iterator[None]:
    """Hold the output folder; the lock ends with the process, however that ends."""
    output.mkdir(parents=True, exist_ok=True)
    with (output / ".lock").open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ConfigError(f"'{output}' is in use by another plan; wait for it or choose --output") from None
        yield


def _prepare_worker(threads: int, parent: int) -> None:
    """Share the cores: as many threads as cores in every process would wait for each other most of the time."""
    import torch

    torch.set_num_threads(threads)
    os.environ["OMP_NUM_THREADS"] = str(threads)  # ONNX Runtime is told so
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    """A worker whose benchmark was killed must not go on beside the next one."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def _parallel() -> int:
    import torch

    return 1 if torch.cuda.is_available() else _cores()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
