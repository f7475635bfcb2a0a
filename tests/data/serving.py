"""A folder served over http, with ranges, that counts what it sends."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote


class Served(ThreadingHTTPServer):
    """What it was asked for and how many bytes it sent, by name."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder = folder
        self.asked: list[tuple[str, str]] = []
        self.sent: dict[str, int] = {}
        self.redirects: dict[str, str] = {}

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has enough closes the connection."""


class _Handler(BaseHTTPRequestHandler):
    server: Served

    def do_GET(self) -> None:
        self._answer(with_content=True)

    def do_HEAD(self) -> None:
        self._answer(with_content=False)

    def log_message(self, format: str, *arguments: Any) -> None:
        pass

    def _answer(self, *, with_content: bool) -> None:
        name = unquote(self.path.lstrip("/"))
        self.server.asked.append((self.command, name))
        if name in self.server.redirects:
            self.send_response(302)
            self.send_header("Location", self.server.redirects[name])
            self.end_headers()
            return
        path = self.server.folder / name
        if not path.is_file():
            self.send_error(404)
            return
        content = path.read_bytes()
        whole, status = len(content), 200
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if asked is not None:
            first, last = int(asked[1]), min(int(asked[2] or whole - 1), whole - 1)
            content, status = content[first : last + 1], 206
        self.send_response(status)
        if asked is not None:
            self.send_header("Content-Range", f"bytes {first}-{last}/{whole}")
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("ETag", f'"{path.stat().st_mtime_ns}"')
        self.send_header("Last-Modified", formatdate(path.stat().st_mtime, usegmt=True))
        self.end_headers()
        if with_content:
            self.server.sent[name] = self.server.sent.get(name, 0) + len(content)
            self.wfile.write(content)


@contextmanager
def serving(folder: Path) -> Iterator[Served]:
    server = Served(folder)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def raw_answer(head: bytes, drop: bytes) -> Iterator[str]:
    """A server that sends ``head`` and then, one by one and without end, ``drop``."""
    over = threading.Event()

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(4096)
            connection.sendall(head)
            while drop and not over.wait(0.05):
                try:
                    connection.sendall(drop)
                except OSError:
                    return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/x"
        over.set()
        thread.join()
