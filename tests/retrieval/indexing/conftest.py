from __future__ import annotations

from collections.abc import Iterator

import pytest

from evidex.encoders.model import Model
from evidex.retrieval.indexing import run
from tests.retrieval.indexing.in_process import Pool, quickly_encoded


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Pool]]:
    monkeypatch.setattr(run, "DecodePool", Pool)
    monkeypatch.setattr(Model, "encode_pixels", quickly_encoded)
    yield Pool
    Pool.between = staticmethod(lambda: None)
