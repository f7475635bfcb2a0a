"""VSE++ and VSE∞ begin with all negatives for as long as the configuration says, in the trainer's own epochs."""

import dataclasses
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from evidex.config import Config, DataConfig, EncoderConfig, LossConfig, MethodConfig, TrainConfig
from evidex.data.datasets import load_dataset
from evidex.encoders.model import load_model
from evidex.encoders.towers import TowerEncoder
from evidex.losses.total import Features
from evidex.methods.protocol import MethodLesson, implementation
from evidex.training.loop import train

Name = Literal["vsepp", "vse_infty"]


def _hinges(similarity: torch.Tensor, *, hardest: bool) -> float:
    total = 0.0
    for matrix in (similarity.tolist(), similarity.T.tolist()):
        for i, row in enumerate(matrix):
            hinges = [max(0.2 + row[j] - row[i], 0.0) for j in range(len(row)) if j != i]
            total += max(hinges) if hardest else sum(hinges)
    return total / len(similarity)


@pytest.mark.parametrize("name", ["vsepp", "vse_infty"])
@pytest.mark.parametrize(("epoch", "hardest"), [(0.0, False), (1.99, False), (2.0, True), (7.5, True)])
def test_all_negatives_count_in_the_first_epochs(name: Name, epoch: float, hardest: bool, towers: TowerEncoder) -> None:
    torch.manual_seed(0)
    image, text = (normalize(torch.randn(5, 8, dtype=torch.float64), dim=1) for _ in range(2))
    config = LossConfig(mask_equal_captions=False, all_negatives_epochs=2.0)
    lesson = MethodLesson(config, epoch, torch.tensor(1.0), towers)
    found = implementation(name).loss(Features(image, text), lesson)["triplet"]
    assert float(found) == pytest.approx(_hinges(image @ text.T, hardest=hardest), rel=1e-5)
    plain = dataclasses.replace(lesson, config=LossConfig(mask_equal_captions=False))  # as the papers define it
    assert float(implementation(name).loss(Features(image, text), plain)["triplet"]) == pytest.approx(
        _hinges(image @ text.T, hardest=True), rel=1e-5
    )


@pytest.mark.parametrize("name", ["vsepp", "vse_infty"])
def test_the_trainer_says_which_epoch_it_is(
    name: Name, archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVIDEX_CACHE", str(archive.parent / "cache"))
    config = Config(
        output=str(tmp_path / "run"),
        data=DataConfig(path=str(archive), augment=False),
        encoder=EncoderConfig(kind="compact", image_size=32, dim=16),
        method=MethodConfig(name=name),
        loss=LossConfig(mask_equal_captions=False, all_negatives_epochs=2.0),
        train=TrainConfig(epochs=4, batch_size=5, learning_rate=1e-12, evaluate_every=4),
    )
    history = train(config, device=torch.device("cpu")).history
    costs = [epoch["loss"]["triplet"] for epoch in history]
    # Nothing is learnt: a row of five has four hinges of about the margin, and the hardest is one of them.
    assert min(costs[:2]) > 2 * max(costs[2:])


@pytest.mark.parametrize("name", ["vsepp", "vse_infty"])
def test_it_learns_where_the_hardest_alone_falls_into_one_point(
    name: Name, archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVIDEX_CACHE", str(archive.parent / "cache"))
    config = Config(
        seed=1,
        output=str(tmp_path / "run"),
        data=DataConfig(path=str(archive), augment=False),
        encoder=EncoderConfig(kind="compact", image_size=32, dim=16),
        method=MethodConfig(name=name),
        loss=LossConfig(mask_equal_captions=False, all_negatives_epochs=10.0),
        train=TrainConfig(
            checkpoint_every=40, epochs=40, batch_size=10, learning_rate=3e-3, gradient_clip=1.0, evaluate_every=40
        ),
    )
    model = load_model(train(config, device=torch.device("cpu")).model_path, device="cpu")
    dataset = load_dataset(archive, "train")
    images = model.encode_images([dataset.open_image(index) for index in range(len(dataset))])
    similarity = model.similarity(images, model.encode_texts(dataset.captions))
    own = similarity[dataset.image_of_caption, np.arange(len(dataset.captions))]
    before = (similarity > own).sum(0) + (similarity == own).sum(0) / 2 - 0.5  # pictures before the right one
    assert before.mean() < 0.25 * (len(dataset) - 1)  # chance, and what is in one point: half of the others
