"""Answers over http that end in time: a limit on all of it, where that of a socket is one on each of its bytes."""

from __future__ import annotations

import io
import time
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from typing import TYPE_CHECKING, Any
from urllib.request import HTTPHandler, HTTPSHandler, Request

if TYPE_CHECKING:
    from socket import socket


class _Stream(io.RawIOBase):
    """The bytes of a socket, until the time is over that it may take for one of them."""

    def __init__(self, connected: socket) -> None:
        self._socket = connected
        self._raw = connected.makefile("rb", buffering=0)
        limit = connected.gettimeout()
        self._end = None if limit is None else time.monotonic() + limit

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if self._end is not None:
            left = self._end - time.monotonic()
            if left <= 0:
                raise TimeoutError("timed out")
            self._socket.settimeout(left)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Response(HTTPResponse):
    """Its head and all forms of its body are read through one stream."""

    def __init__(self, sock: socket, *arguments: Any, **named: Any) -> None:
        super().__init__(sock, *arguments, **named)
        self.fp.close()
        self.fp = io.BufferedReader(_Stream(sock))


class _Connection(HTTPConnection):
    response_class = _Response


class _SecureConnection(HTTPSConnection):
    response_class = _Response


class Plain(HTTPHandler):
    """http, each answer within the timeout of its request."""

    def http_open(self, req: Request) -> HTTPResponse:
        return self.do_open(_Connection, req)


class Secure(HTTPSHandler):
    """https, each answer within the timeout of its request."""

    def https_open(self, req: Request) -> HTTPResponse:
        return self.do_open(_SecureConnection, req)
