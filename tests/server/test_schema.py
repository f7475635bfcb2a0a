"""Requests made up from the schema: none makes the server fail, and all answers are as the schema says."""

from __future__ import annotations

import pytest

from evidex.retrieval.gallery import Gallery
from evidex.server.settings import Settings
from tests.server.fuzz import run
from tests.server.places import live


@pytest.mark.slow
def test_no_request_of_the_schema_fails_the_server(gallery: Gallery) -> None:
    with live(Settings(gallery.path, port=0)) as address:
        report = run(address, requests=300, seed=1)
    assert report.requests >= 300
    assert report.failures == []
    assert set(report.by_status) <= {200, 304, 400, 404, 405, 408, 413, 415, 422, 429}
    assert report.by_status[200] > 20
