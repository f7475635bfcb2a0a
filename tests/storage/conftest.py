"""One S3 endpoint for the tests of a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.storage.store import Store, serving


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Store]:
    with serving() as store:
        yield store


@pytest.fixture
def store(endpoint: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """The endpoint, with a cache of the test's own."""
    monkeypatch.setenv("EVIDEX_CACHE", str(tmp_path / "cache"))
    return endpoint
