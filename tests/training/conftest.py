"""A tiny rendered archive and a configuration that trains on it in seconds."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch

from evidex.config import Config, DataConfig, EncoderConfig, LossConfig, SourceConfig, TrainConfig
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


@pytest.fixture
def several(config: Config, archive: Path, tmp_path: Path) -> Config:
    """The archive twice, once shown one and a half times, and its labels."""
    marked = _without_captions(archive, tmp_path / "marked")
    data = DataConfig(
        source=(
            SourceConfig(str(archive), terms="rendered here"),
            SourceConfig(str(archive), weight=1.5),
            SourceConfig(str(marked), role="labels"),
        ),
        labels_per_step=6,
    )
    train_config = replace(config.train, epochs=1)
    return replace(config, data=data, train=train_config, loss=replace(config.loss, twins=0.5, labels=0.7))


def _without_captions(archive: Path, folder: Path) -> Path:
    """The archive's labels alone, with no val part of its own."""
    folder.mkdir()
    document = json.loads((archive / "captions.json").read_text())
    images = [
        {"filename": f"images/{Path(entry['filename']).name}", "split": "train", "label": entry["label"]}
        for entry in document["images"]
    ]
    (folder / "labels.json").write_text(json.dumps({"dataset": "marked", "images": images}))
    (folder / "images").symlink_to(archive / "images")
    return folder
