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
_PROBES = ("/health", "/ready")  # a server that is merely busy must not be taken for dead and restarted


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
        try:
            refusal = self._refusal(scope)
            if refusal is not None:
                await problem(*refusal)(scope, receive, noted)
            else:
                await self._app(scope, _Body(receive, self._settings), noted)
        finally:
            self._running -= 1
            self._metrics.running.set(self._running)
            route = getattr(scope.get("route"), "path", "(none)")
            self._metrics.requests.labels(route, _method(scope), str(status)).inc()
            self._metrics.seconds.labels(route).observe(time.perf_counter() - started)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        if self._running > self._settings.max_requests and scope["path"] not in _PROBES:
            return 429, f"{self._settings.max_requests} requests are under way already; try again in a moment"
        length = Headers(scope=scope).get("content-length", "0")
        if length.isdecimal() and int(length) > self._settings.max_body_bytes:
            return 413, _too_large(self._settings)
        return None


class _Body:
    """Receives the body of one request, up to so many bytes and so much time."""

    def __init__(self, receive: Receive, settings: Settings) -> None:
        self._receive = receive
        self._settings = settings
        self._bytes = 0
        self._end = time.monotonic() + settings.request_seconds
        self._complete = False

    async def __call__(self) -> Message:
        if self._complete:  # what is left to come is the client going away, at any time
            return await self._receive()
        try:
            async with asyncio.timeout(max(self._end - time.monotonic(), 0)):
                message = await self._receive()
        except TimeoutError:
            seconds = self._settings.request_seconds
            raise HTTPException(408, f"the body did not arrive within {seconds:g} s; send it faster") from None
        self._complete = not message.get("more_body", False)
        self._bytes += len(message.get("body", b""))
        if self._bytes > self._settings.max_body_bytes:
            raise HTTPException(413, _too_large(self._settings))
        return message


def _too_large(settings: Settings) -> str:
    return f"the body is larger than {settings.max_body_bytes} bytes; send a smaller picture or fewer queries"


def _method(scope: Scope) -> str:
    method: str = scope["method"]
    return method if method in ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH") else "(other)"
