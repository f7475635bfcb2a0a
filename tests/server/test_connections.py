"""Clients that are slow, rude or many, over real sockets: none of them keeps the others out."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import httpx
import pytest

from evidex.server import limits
from evidex.server.page import BUILT
from evidex.server.settings import Settings
from tests.server.places import live

HEAD = b"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
SLOW_BODY = HEAD + b'Content-Length: 100\r\n\r\n{"text":'
BEGUN = b"GET /gallery HTTP/1.1\r\nHost: localhost\r\nX-Slow: "


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return replace(settings, port=0)


@contextmanager
def connected(address: str, sent: bytes = b"") -> Iterator[socket.socket]:
    host, port = address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as one:
        one.sendall(sent)
        yield one


def read_all(one: socket.socket) -> bytes:
    """What comes until the server closes the connection; an error if it never does."""
    parts = []
    try:
        while part := one.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def counts(address: str) -> dict[tuple[str, str], float]:
    """Requests by route and status, as /metrics tells."""
    text = httpx.get(f"{address}/metrics").text
    line = re.compile(r'^evidex_requests_total\{method="\w+",route="([^"]+)",status="(\d+)"\} (\S+)', re.MULTILINE)
    return {(route, status): float(number) for route, status, number in line.findall(text)}


def counted(address: str, route: str, status: str, number: int) -> dict[tuple[str, str], float]:
    """The counts, once that one has come so far."""
    for _ in range(400):
        found = counts(address)
        if found.get((route, status), 0) >= number:
            return found
        time.sleep(0.025)
    raise AssertionError(f"{route} {status} never came to {number}: {found}")


def until_running(address: str, number: int) -> None:
    """Wait until so many requests are under way beside the one that asks."""
    for _ in range(400):
        if f"evidex_requests_running {number + 1}.0" in httpx.get(f"{address}/metrics").text:
            return
        time.sleep(0.025)
    raise AssertionError(f"there never were {number} requests under way")


@pytest.mark.parametrize("route", ["/search", "/search/batch"])
@pytest.mark.parametrize("kind", ["application/json", "multipart/form-data; boundary=x"])
def test_a_client_that_leaves_inside_its_body_is_counted_as_such_and_not_logged(
    settings: Settings,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    route: str,
    kind: str,
) -> None:
    head = f"POST {route} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: 100\r\n\r\n--x\r\n"
    with live(settings) as address:
        with connected(address, head.encode()):
            pass
        found = counted(address, route, "499", 1)
    assert {status for asked, status in found if asked == route} == {"499"}
    assert capsys.readouterr().err == ""
    assert caplog.records == []


@pytest.mark.parametrize("sent", [b"", b"GET", BEGUN], ids=["nothing", "a word", "headers"])
def test_a_head_that_never_ends_is_given_up(settings: Settings, sent: bytes) -> None:
    with live(replace(settings, header_seconds=0.3)) as address, connected(address, sent) as one:
        answer = read_all(one)
    assert answer == b"" if not sent else answer.startswith(b"HTTP/1.1 408 ") and b"did not arrive" in answer


def test_dripping_does_not_set_the_clock_back(settings: Settings) -> None:
    """Neither in headers, nor in a body that was refused already, nor in one that is waited for."""
    refused = b"POST /nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n"
    with live(replace(settings, header_seconds=0.5, request_seconds=0.5)) as address:
        for begun, status in ((BEGUN, b"408"), (refused, b"404"), (SLOW_BODY, b"408")):
            with connected(address, begun) as one:
                done = threading.Event()
                dripper = threading.Thread(target=_drip, args=(one, done), daemon=True)
                dripper.start()
                assert read_all(one).startswith(b"HTTP/1.1 " + status)
                done.set()
                dripper.join()


def _drip(one: socket.socket, done: threading.Event) -> None:
    try:
        while not done.wait(0.05):
            one.sendall(b"x")
    except OSError:
        pass


def test_a_connection_is_kept_for_the_next_request_but_not_for_ever(settings: Settings) -> None:
    whole = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with live(replace(settings, header_seconds=0.5)) as address, connected(address, whole) as one:
        answer = b""
        while b"alive" not in answer:
            answer += one.recv(65536)
        one.sendall(whole)
        answer += read_all(one)
    assert answer.count(b"HTTP/1.1 200") == 2


@pytest.mark.skipif(not (BUILT / "index.html").is_file(), reason="the page is not built; run make page")
def test_an_answer_that_is_never_read_frees_its_place(settings: Settings) -> None:
    script = next(path for path in (BUILT / "assets").glob("main-*.js"))
    asks = f"GET /assets/{script.name} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() * 40
    served = replace(settings, static=BUILT, request_seconds=0.5, header_seconds=0.5)
    with live(served) as address, connected(address, asks):
        until_running(address, 1)
        until_running(address, 0)


def test_whoever_waits_longest_makes_room_for_a_new_connection(settings: Settings) -> None:
    with live(replace(settings, max_connections=4, header_seconds=600)) as address, ExitStack() as stack:
        waiting = [stack.enter_context(connected(address, BEGUN)) for _ in range(6)]
        for _ in range(5):
            assert httpx.get(f"{address}/health").status_code == 200
        read_all(waiting[0])


def test_the_body_that_has_not_moved_for_longest_makes_room_for_a_new_request(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = {"text": "a river", "top": 1}
    monkeypatch.setattr(limits, "_PATIENCE_SECONDS", 600.0)
    with live(replace(settings, max_requests=3)) as address, ExitStack() as stack:
        slow = [stack.enter_context(connected(address, SLOW_BODY)) for _ in range(3)]
        until_running(address, 3)
        refused = httpx.post(f"{address}/search", json=ask)  # all of them have only just moved
        assert (refused.status_code, "try again" in refused.json()["error"]) == (429, True)
        slow[0].sendall(b" ")
        time.sleep(0.1)
        monkeypatch.setattr(limits, "_PATIENCE_SECONDS", 0.0)
        assert httpx.post(f"{address}/search", json=ask).status_code == 200
        answer = read_all(slow[1])
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b"while others waited" in answer
        assert httpx.post(f"{address}/search", json=ask).status_code == 200
        slow[0].sendall(b'"a lake"}'.ljust(100 - len(b'{"text": ')))
        assert slow[0].recv(15) == b"HTTP/1.1 200 OK"


@pytest.mark.slow
def test_hundreds_of_slow_clients_keep_nobody_out(settings: Settings) -> None:
    """As many slow bodies as there are places, and as many unfinished heads: everybody else is served as ever."""
    with live(settings) as address, ExitStack() as stack:
        for sent in (SLOW_BODY, BEGUN):
            for _ in range(256):
                stack.enter_context(connected(address, sent))
        time.sleep(1.2)  # a body that paused for less is not slow
        with httpx.Client(base_url=address, timeout=20) as client:
            for number in range(10):
                assert client.post("/search", json={"text": f"a river {number}"}).status_code == 200
                for path in ("/health", "/ready", "/metrics", "/gallery"):
                    assert client.get(path).status_code == 200, path
        for _ in range(5):
            assert httpx.post(f"{address}/search", json={"text": "a lake"}).status_code == 200
        found = counts(address)  # /ready says 503 until the model is loaded
        assert not [key for key in found if key[0] != "/ready" and (key[1].startswith("5") or key[1] == "429")]
