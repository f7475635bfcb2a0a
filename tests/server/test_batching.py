"""Batches: who goes together, who waits, who is refused."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from evidex.errors import BusyError, InputError
from evidex.server.batching import Batcher


class Recorder:
    """Doubles numbers, notes its calls, and may be held up."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, list[int]]] = []
        self.open = threading.Event()
        self.open.set()
        self.entered = threading.Event()

    def __call__(self, key: Any, payloads: list[int]) -> list[int]:
        self.entered.set()
        assert self.open.wait(10)
        self.calls.append((key, list(payloads)))
        if key == "bad":
            raise InputError("bad key")
        return [2 * payload for payload in payloads]


def _with(recorder: Recorder, ask: Callable[[Batcher], Awaitable[None]], **options: Any) -> None:
    async def whole() -> None:
        settings = {"queue": 100, "largest": 8, "wait_seconds": 0.05, **options}
        with ThreadPoolExecutor(1) as executor:
            batcher = Batcher(recorder, executor, **settings)
            batcher.start()
            try:
                await ask(batcher)
            finally:
                recorder.open.set()
                await batcher.stop()

    asyncio.run(whole())


def test_what_arrives_together_goes_together_and_everyone_gets_his_own() -> None:
    recorder = Recorder()

    async def ask(batcher: Batcher) -> None:
        results = await asyncio.gather(*(batcher.submit("a" if n % 3 else "b", [n, n + 100]) for n in range(12)))
        assert results == [[2 * n, 2 * (n + 100)] for n in range(12)]

    _with(recorder, ask)
    assert sorted(len(payloads) for _, payloads in recorder.calls) == [8, 8, 8]
    assert {key for key, _ in recorder.calls} == {"a", "b"}


def test_no_batch_is_larger_than_the_largest_and_none_starves() -> None:
    recorder = Recorder()

    async def ask(batcher: Batcher) -> None:
        await asyncio.gather(*(batcher.submit(n % 2, [n] * (1 + n % 3)) for n in range(30)))

    _with(recorder, ask, wait_seconds=0.0)
    assert max(len(payloads) for _, payloads in recorder.calls) <= 8
    assert sum(len(payloads) for _, payloads in recorder.calls) == sum(1 + n % 3 for n in range(30))


def test_a_full_queue_refuses_at_once() -> None:
    recorder = Recorder()
    recorder.open.clear()

    async def ask(batcher: Batcher) -> None:
        running = asyncio.ensure_future(batcher.submit("a", [0]))
        await asyncio.to_thread(recorder.entered.wait, 5)
        waiting = [asyncio.ensure_future(batcher.submit("a", [n])) for n in range(1, 4)]
        await asyncio.sleep(0)
        with pytest.raises(BusyError, match="3 queries are waiting"):
            await batcher.submit("a", [9])
        recorder.open.set()
        assert await running == [0]
        assert await asyncio.gather(*waiting) == [[2], [4], [6]]
        assert await batcher.submit("a", [5]) == [10]

    _with(recorder, ask, queue=3, wait_seconds=0.0)
    assert [payloads for _, payloads in recorder.calls] == [[0], [1, 2, 3], [5]]


def test_who_gives_up_leaves_the_queue() -> None:
    recorder = Recorder()
    recorder.open.clear()

    async def ask(batcher: Batcher) -> None:
        running = asyncio.ensure_future(batcher.submit("a", [0]))
        await asyncio.to_thread(recorder.entered.wait, 5)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(batcher.submit("a", [1]), 0.02)
        assert batcher.waiting == 0
        recorder.open.set()
        await running
        assert await batcher.submit("a", [2]) == [4]

    _with(recorder, ask, wait_seconds=0.0)
    assert [payloads for _, payloads in recorder.calls] == [[0], [2]]


def test_an_error_reaches_those_who_asked_and_nobody_else() -> None:
    async def ask(batcher: Batcher) -> None:
        results: list[Any] = await asyncio.gather(
            batcher.submit("bad", [1]), batcher.submit("good", [1]), return_exceptions=True
        )
        assert isinstance(results[0], InputError)
        assert results[1] == [2]

    _with(Recorder(), ask)


def test_stopping_tells_those_who_wait() -> None:
    recorder = Recorder()
    recorder.open.clear()

    async def ask(batcher: Batcher) -> None:
        running = asyncio.ensure_future(batcher.submit("a", [0]))
        await asyncio.to_thread(recorder.entered.wait, 5)
        waiting = asyncio.ensure_future(batcher.submit("a", [1]))
        await asyncio.sleep(0)
        recorder.open.set()
        await batcher.stop()
        results = await asyncio.gather(running, waiting, return_exceptions=True)
        assert all(isinstance(result, (BusyError, asyncio.CancelledError)) for result in results)

    _with(recorder, ask, wait_seconds=0.0)
