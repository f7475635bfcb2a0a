"""Queries that arrive together are answered together.

Jobs wait in one bounded queue. The oldest decides what is run next: all waiting jobs of its key go with it, up to the
largest batch. It waits a moment for company, unless it has waited that long already while another batch ran.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from evidex.errors import BusyError

Run = Callable[[Any, list[Any]], Sequence[Any]]


@dataclass(eq=False)
class _Job:
    key: Hashable
    payloads: list[Any]
    answers: asyncio.Future[list[Any]]
    since: float = field(default_factory=time.monotonic)


class Batcher:
    """Calls ``run(key, payloads)`` in ``executor``, one batch at a time; it returns one answer a payload."""

    def __init__(self, run: Run, executor: Executor, *, queue: int, largest: int, wait_seconds: float) -> None:
        self._run = run
        self._executor = executor
        self._queue = queue
        self._largest = largest
        self._wait_seconds = wait_seconds
        self._jobs: list[_Job] = []
        self._arrived = asyncio.Event()
        self._worker: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """Payloads in the queue."""
        return sum(len(job.payloads) for job in self._jobs)

    def start(self) -> None:
        self._worker = asyncio.get_running_loop().create_task(self._work())

    async def stop(self) -> None:
        """End the worker; jobs that still wait are told so."""
        if self._worker is not None:
            self._worker.cancel()
            with suppress(asyncio.CancelledError):
                await self._worker
        for job in self._jobs:
            if not job.answers.done():
                job.answers.set_exception(BusyError("the server is shutting down; ask again when it is back"))
        self._jobs.clear()

    async def submit(self, key: Hashable, payloads: Sequence[Any]) -> list[Any]:
        """The answers to ``payloads``; BusyError at once where the queue has no room for them."""
        if self.waiting + len(payloads) > self._queue:
            raise BusyError(f"{self.waiting} queries are waiting already; try again in a moment")
        job = _Job(key, list(payloads), asyncio.get_running_loop().create_future())
        self._jobs.append(job)
        self._arrived.set()
        try:
            return await job.answers
        finally:
            if job in self._jobs:
                self._jobs.remove(job)

    async def _work(self) -> None:
        while True:
            await self._arrived.wait()
            if not self._jobs:
                self._arrived.clear()
                continue
            await self._company(self._jobs[0])
            if batch := self._take():
                await self._answer(batch)

    async def _company(self, oldest: _Job) -> None:
        """Wait until ``oldest`` has waited long enough or a full batch is there."""
        end = oldest.since + self._wait_seconds
        while self.waiting < self._largest and (left := end - time.monotonic()) > 0:
            await asyncio.sleep(min(left, 0.001))

    def _take(self) -> list[_Job]:
        if not self._jobs:
            return []
        key, room = self._jobs[0].key, self._largest
        batch: list[_Job] = []
        for job in self._jobs:
            if job.key == key:
                if batch and len(job.payloads) > room:
                    break
                room -= len(job.payloads)
                batch.append(job)
        self._jobs = [job for job in self._jobs if job not in batch]
        return batch

    async def _answer(self, batch: list[_Job]) -> None:
        payloads = [payload for job in batch for payload in job.payloads]
        loop = asyncio.get_running_loop()
        try:
            answers = await loop.run_in_executor(self._executor, self._run, batch[0].key, payloads)
        except asyncio.CancelledError:
            for job in batch:
                job.answers.cancel()
            raise
        except Exception as error:  # whatever went wrong belongs to those who asked
            for job in batch:
                if not job.answers.done():
                    job.answers.set_exception(error)
            return
        first = 0
        for job in batch:
            if not job.answers.done():
                job.answers.set_result(list(answers[first : first + len(job.payloads)]))
            first += len(job.payloads)
