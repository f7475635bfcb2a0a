"""Files on other machines: within bounds, by parts, and in one line where they do not come."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from evidex.data.remote import fetch, first_bytes, is_remote, state_at
from evidex.errors import DataError
from tests.data.serving import Served, raw_answer, serving


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    (tmp_path / "file.bin").write_bytes(bytes(range(256)) * 8)
    with serving(tmp_path) as served:
        yield served


def test_what_is_an_address() -> None:
    assert is_remote("https://example.org/x.tif")
    assert is_remote("HTTP://example.org")
    for path in ("/data/http/x.tif", "http:/x", "s3://bucket/x", "file:///etc/passwd", "httpx://a", "https://"):
        assert not is_remote(path)


def test_a_file_comes_whole_or_its_beginning_alone(server: Served) -> None:
    address = f"{server.address}/file.bin"
    assert fetch(address, DataError, most=4096) == bytes(range(256)) * 8
    sent = server.sent["file.bin"]
    assert first_bytes(address, 16, DataError) == bytes(range(16))
    assert server.sent["file.bin"] - sent == 16


def test_the_state_of_a_file_changes_with_it_and_costs_no_content(server: Served) -> None:
    address = f"{server.address}/file.bin"
    before = state_at(address, DataError)
    assert before.size == 2048
    assert before == state_at(address, DataError)
    assert server.sent == {}
    (server.folder / "file.bin").write_bytes(b"another")
    assert state_at(address, DataError) != before


@pytest.mark.parametrize(
    ("name", "most", "complaint"),
    [("file.bin", 100, "has more than"), ("none.bin", 100, "the server answers 404")],
)
def test_what_does_not_come_is_one_line(server: Served, name: str, most: int, complaint: str) -> None:
    with pytest.raises(DataError, match=complaint):
        fetch(f"{server.address}/{name}", DataError, most=most)


def test_nobody_at_an_address_is_one_line(server: Served) -> None:
    address = server.address
    server.shutdown()
    server.server_close()
    with pytest.raises(DataError, match=r"cannot be fetched .*refused"):
        fetch(address, DataError, most=100)


def test_an_address_never_leads_to_a_file_of_this_machine(server: Served, tmp_path: Path) -> None:
    server.redirects["away"] = f"file://{tmp_path}/file.bin"
    with pytest.raises(DataError, match=r"no http address|answers 302"):
        fetch(f"{server.address}/away", DataError, most=4096)


def test_of_a_server_that_tells_nothing_a_file_is_never_unchanged() -> None:
    states = []
    for _ in range(2):
        with raw_answer(b"HTTP/1.1 200 OK\r\n\r\n", b"") as address:
            states.append(state_at(address, DataError))
    assert states[0].number != states[1].number
