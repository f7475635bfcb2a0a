"""Answers that never end are given up, whichever part of them drips."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from evidex.data import remote
from evidex.data.remote import fetch, first_bytes
from evidex.errors import DataError
from tests.data.serving import raw_answer

_DRIPS = {
    "body": b"HTTP/1.1 200 OK\r\nContent-Length: 60\r\n\r\n",
    "head": b"HTTP/1.1 200 OK\r\nX-Long: ",
    "chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
}


@pytest.mark.parametrize("part", _DRIPS)
@pytest.mark.parametrize("read", [partial(fetch, most=4096), partial(first_bytes, count=60)], ids=["all", "first"])
def test_a_server_that_drips_is_given_up(part: str, read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "SECONDS", 0.3)
    with raw_answer(_DRIPS[part], b"0") as address, pytest.raises(DataError, match=r"does not come within|timed out"):
        read(address, error=DataError)
