"""A tiny rendered archive and a configuration that trains on it in seconds."""

from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from evidex.config import Config, DataConfig, EncoderConfig, LossConfig, TrainConfig
from evidex.scenes import render_archive
from evidex.training.loop import Report, TrainedRun, train


@dataclass(frozen=True)
class Whole:
    """A run of the plain configuration that nothing disturbed, for tests that only read it."""

    config: Config
    run: TrainedRun
    reports: list[Report]


def _config(archive: Path, output: Path) -> Config:
    return Config(
        seed=1,
        output=str(output),
        data=DataConfig(path=str(archive)),
        encoder=EncoderConfig(kind="compact", image_size=32, dim=16, dropout=0.1),
        loss=LossConfig(relation=False, ucl_start_epoch=1.0, b2=0.1),
        train=TrainConfig(epochs=3, batch_size=16, learning_rate=1e-3, ema_decay=0.9, gradient_clip=1.0),
    )


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("training") / "archive"
    render_archive(folder, count=124, seed=3, size=32)
    return folder


@pytest.fixture
def config(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    monkeypatch.setenv("EVIDEX_CACHE", str(tmp_path / "cache"))
    return _config(archive, tmp_path / "run")


@pytest.fixture(scope="session")
def whole(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    folder = tmp_path_factory.mktemp("whole")
    config, reports = _config(archive, folder / "run"), list[Report]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVIDEX_CACHE", str(folder / "cache"))
        return Whole(config, train(config, device=torch.device("cpu"), watch=reports.append), reports)
