"""A tiny rendered archive and a configuration that trains on it in seconds."""

from pathlib import Path

import pytest

from evidex.config import Config, DataConfig, EncoderConfig, LossConfig, TrainConfig
from evidex.scenes import render_archive


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("training") / "archive"
    render_archive(folder, count=124, seed=3, size=32)
    return folder


@pytest.fixture
def config(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    monkeypatch.setenv("EVIDEX_CACHE", str(tmp_path / "cache"))
    return Config(
        seed=1,
        output=str(tmp_path / "run"),
        data=DataConfig(path=str(archive)),
        encoder=EncoderConfig(kind="compact", image_size=32, dim=16, dropout=0.1),
        loss=LossConfig(relation=False, ucl_start_epoch=1.0, b2=0.1),
        train=TrainConfig(epochs=3, batch_size=16, learning_rate=1e-3, ema_decay=0.9, gradient_clip=1.0),
    )
