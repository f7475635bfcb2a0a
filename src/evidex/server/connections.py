"""How long a connection may be held: HTTP/1.1 as uvicorn speaks it, with a clock on what uvicorn waits for without end.

uvicorn bounds the pause between two requests, but not how long the first request or begun headers take, nor how long a
client may leave its answer unread. What a request itself may take is the application's matter (`evidex.server.limits`).
uvicorn's own limit on concurrency is not used: it refuses health checks as well.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from evidex.server.settings import Settings


class Crowd:
    """The connections of one server, and which of them have no request under way, the longest first."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.waiting: dict[Connection, None] = {}
        self.connected = 0

    def make_room(self) -> None:
        """Where there are too many, close the one that has waited longest."""
        if self.connected > self.settings.max_connections and self.waiting:
            next(iter(self.waiting)).give_up()


class Connection(H11Protocol):
    """One client. Without a request under way it must send the head of one in ``header_seconds``."""

    def __init__(self, *args: Any, crowd: Crowd, **options: Any) -> None:
        super().__init__(*args, **options)
        self._crowd = crowd
        self._waits: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._crowd.connected += 1
        self._keep_time()
        self._crowd.make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._crowd.connected -= 1
        self._crowd.waiting.pop(self, None)
        for timer in (self._waits, self._unread):
            if timer is not None:
                timer.cancel()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._keep_time()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._keep_time()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self.loop.call_later(self._crowd.settings.request_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()

    def _keep_time(self) -> None:
        """Start the clock where no request is under way, stop it where one is; more bytes do not set it back."""
        waits = self.cycle is None or self.cycle.response_complete
        if waits and self._waits is None:
            self._waits = self.loop.call_later(self._crowd.settings.header_seconds, self.give_up)
            self._crowd.waiting[self] = None
        elif not waits and self._waits is not None:
            self._waits.cancel()
            self._waits = None
            self._crowd.waiting.pop(self, None)

    def give_up(self) -> None:
        """Close the connection, in words if a request was begun."""
        self._crowd.waiting.pop(self, None)
        if self._waits is not None:
            self._waits.cancel()
        if not self.transport.is_closing():
            if self.conn.our_state is h11.IDLE and self.conn.trailing_data[0]:
                self._tell_too_slow()
            self.transport.close()
        # Closing waits for what was not read of the last answer.
        self._waits = self.loop.call_later(self._crowd.settings.request_seconds, self.transport.abort)

    def _tell_too_slow(self) -> None:
        seconds = self._crowd.settings.header_seconds
        line = f"the headers did not arrive within {seconds:g} s, or others needed the place; send them faster"
        body = json.dumps({"error": line}).encode()
        headers = [("Content-Type", "application/json"), ("Content-Length", str(len(body))), ("Connection", "close")]
        for event in (
            h11.Response(status_code=408, headers=headers, reason=b"Request Timeout"),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
