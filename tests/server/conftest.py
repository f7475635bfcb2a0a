"""One gallery for all tests that only read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from evidex.retrieval.gallery import Gallery
from evidex.server.settings import Settings
from tests.server.places import make_gallery


@pytest.fixture(scope="session")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Gallery:
    return make_gallery(tmp_path_factory.mktemp("served"))


@pytest.fixture
def settings(gallery: Gallery, tmp_path: Path) -> Settings:
    return Settings(gallery.path, static=tmp_path / "no_page")
