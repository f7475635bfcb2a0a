"""A gallery to damage, whose files are known to be as sealed."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import numpy as np
import pytest

from evidex.encoders import model as models
from evidex.retrieval.certainty.self_calibrating import self_calibrate
from evidex.retrieval.gallery import Gallery
from tests.retrieval.archive import arbitrary_gallery, tiny_model
from tests.retrieval.verifying.damaging import hits

SETTLED = 0.06


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = arbitrary_gallery(tmp_path_factory.mktemp("sound") / "g", tiny_model(), 60)
    self_calibrate(made, np.random.default_rng(0))
    return made.path


@pytest.fixture
def gallery(tmp_path: Path, template: Path, monkeypatch: pytest.MonkeyPatch) -> Gallery:
    """Used and left alone for a moment: its files are known to be as sealed."""
    content = (template / "model.safetensors").read_bytes()
    real = models.load_model
    # Loading takes longest, and most damages leave the model alone.
    same = lambda path: tiny_model() if path.read_bytes() == content else real(path)  # noqa: E731
    monkeypatch.setattr(models, "load_model", same)
    shutil.copytree(template, tmp_path / "g")
    time.sleep(SETTLED)
    hits(tmp_path / "g")
    return Gallery.open(tmp_path / "g", tiny_model())
