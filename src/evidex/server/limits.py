"""What keeps one client from taking all: limits on body, time and concurrency."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evidex.errors import BusyError
from evidex.server.failures import problem
from evidex.server.metrics import Metrics
from evidex.server.settings import Settings

T = TypeVar("T")
# A server that is merely busy must not be taken for dead and restarted, and must be able to say how busy it is.
_PROBES = ("/health", "/ready", "/metrics")
_PATIENCE_SECONDS = 1.0
"""So long a body may pause, as honest ones do, before another request may take its place."""
CLIENT_LEFT = 499  # as nginx counts it; nobody is there to be told


class BoundedPool:
    """A few threads and a bounded number of calls that wait for them; one more is refused at once."""

    def __init__(self, workers: int, waiting: int, name: str) -> None:
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix=name)
        self._room = workers + waiting
        self._name = name

    async def run(self, call: Callable[[], T]) -> T:
        if self._room == 0:
            raise BusyError(f"too many {self._name} are being made; try again in a moment")
        self._room -= 1
        loop = asyncio.get_running_loop()
        future = self._threads.submit(call)
        # A caller may give up; its thread still works, and keeps its place until it is done.
        future.add_done_callback(lambda _: loop.call_soon_threadsafe(self._leave))
        return await asyncio.wrap_future(future)

    def _leave(self) -> None:
        self._room += 1

    def close(self) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)


async def within(seconds: float, work: Awaitable[T]) -> T:
    """The result of ``work``, or 504 in words."""
    try:
        async with asyncio.timeout(seconds):
            return await work
    except TimeoutError:
        raise HTTPException(504, f"no answer within {seconds:g} s; ask for less, or again later") from None


class Limits:
    """ASGI middleware: refuses what is too much before the application sees it, and counts the rest."""

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics) -> None:
        self._app = app
        self._settings = settings
        self._metrics = metrics
        self._running = 0
        self._slots = _Slots(settings.max_requests)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        status = 500

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self._running += 1
        self._metrics.running.set(self._running)
        body = _Body(receive, self._settings, self._slots)
        try:
            refusal = self._refusal(scope, body)
            if refusal is not None:
                await problem(*refusal)(scope, receive, noted)
            else:
                await self._app(scope, body, noted)
        finally:
            self._slots.leave(body)
            self._running -= 1
            self._metrics.running.set(self._running)
            route = getattr(scope.get("route"), "path", "(none)")
            self._metrics.requests.labels(route, _method(scope), str(status)).inc()
            self._metrics.seconds.labels(route).observe(time.perf_counter() - started)

    def _refusal(self, scope: Scope, body: _Body) -> tuple[int, str] | None:
        if scope["path"] not in _PROBES and not self._slots.enter(body):
            return 429, f"{self._settings.max_requests} requests are under way already; try again in a moment"
        length = Headers(scope=scope).get("content-length", "0")
        if length.isdecimal() and int(length) > self._settings.max_body_bytes:
            return 413, _too_large(self._settings)
        return None


class _Slots:
    """Room for so many requests. One whose body has come to a halt has its place only until another needs it."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._held: set[_Body] = set()
        self.arriving: dict[_Body, float] = {}
        """Bodies that are waited for, and since when; the one that has not moved for longest comes first."""

    def enter(self, body: _Body) -> bool:
        if len(self._held) >= self._count:
            slowest = next((one for one in self.arriving if one in self._held), None)
            if slowest is None or asyncio.get_running_loop().time() - self.arriving[slowest] < _PATIENCE_SECONDS:
                return False
            self._held.remove(slowest)
            slowest.give_way()
        self._held.add(body)
        return True

    def leave(self, body: _Body) -> None:
        self._held.discard(body)


class _Body:
    """Receives the body of one request, up to so many bytes and so much time."""

    def __init__(self, receive: Receive, settings: Settings, slots: _Slots) -> None:
        self._receive = receive
        self._settings = settings
        self._slots = slots
        self._bytes = 0
        self._end = asyncio.get_running_loop().time() + settings.request_seconds
        self._late = f"the body did not arrive within {settings.request_seconds:g} s; send it faster"
        self._clock: asyncio.Timeout | None = None
        self._complete = False

    async def __call__(self) -> Message:
        if self._complete:  # what is left to come is the client going away, at any time
            return await self._receive()
        message = await self._next()
        if message["type"] == "http.disconnect":
            raise HTTPException(CLIENT_LEFT, "the client went away inside its body")
        self._complete = not message.get("more_body", False)
        self._bytes += len(message.get("body", b""))
        if self._bytes > self._settings.max_body_bytes:
            raise HTTPException(413, _too_large(self._settings))
        return message

    async def _next(self) -> Message:
        self._slots.arriving[self] = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout_at(self._end) as self._clock:
                return await self._receive()
        except TimeoutError:
            # What the client would still send is not read: the connection ends here.
            raise HTTPException(408, self._late, {"Connection": "close"}) from None
        finally:
            del self._slots.arriving[self]

    def give_way(self) -> None:
        """Wait no longer: another request needs the place."""
        self._late = "the body came too slowly while others waited; send it faster"
        self._end = asyncio.get_running_loop().time()
        if self._clock is not None and not self._clock.expired():
            self._clock.reschedule(self._end)


def _too_large(settings: Settings) -> str:
    return f"the body is larger than {settings.max_body_bytes} bytes; send a smaller picture or fewer queries"


def _method(scope: Scope) -> str:
    method: str = scope["method"]
    return method if method in ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH") else "(other)"
