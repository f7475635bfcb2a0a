"""Every method that can be trained is trained: it finds pairs better than chance and its model file says the same."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

from evidex.config import Config, DataConfig, EncoderConfig, LossConfig, MethodConfig, TrainConfig
from evidex.data.datasets import load_dataset
from evidex.encoders.model import load_model
from evidex.methods.protocol import implementation
from evidex.methods.registry import ON_CLIP_ALONE, TRAINABLE
from evidex.training.loop import train

CPU = torch.device("cpu")


@pytest.fixture
def config(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """Ten pairs, all of them in every step; triplet losses fall into one point at higher rates."""
    monkeypatch.setenv("EVIDEX_CACHE", str(archive.parent / "cache"))
    return Config(
        seed=1,
        output=str(tmp_path / "run"),
        data=DataConfig(path=str(archive), augment=False),
        encoder=EncoderConfig(kind="compact", image_size=32, dim=16),
        loss=LossConfig(mask_equal_captions=False),
        train=TrainConfig(
            checkpoint_every=40, epochs=40, batch_size=10, learning_rate=3e-4, gradient_clip=1.0, evaluate_every=40
        ),
    )


@pytest.mark.parametrize("name", [name for name in TRAINABLE if name not in ON_CLIP_ALONE])
def test_a_method_learns_and_keeps_what_it_learnt(name: str, config: Config) -> None:
    chosen = dataclasses.replace(config, method=MethodConfig(name=name))  # type: ignore[arg-type]
    run = train(chosen, device=CPU)
    model = load_model(run.model_path, device="cpu")
    assert model.card["config"]["method"]["name"] == name
    assert model.inner_product == implementation(name).inner_product  # what a report goes by that has no model
    dataset = load_dataset(Path(config.data.path), "train")
    images = model.encode_images([dataset.open_image(index) for index in range(len(dataset))])
    similarity = model.similarity(images, model.encode_texts(dataset.captions))
    own = similarity[dataset.image_of_caption, np.arange(len(dataset.captions))]
    before = (similarity > own).sum(0) + (similarity == own).sum(0) / 2 - 0.5  # pictures before the right one
    assert before.mean() < 0.4 * (len(dataset) - 1)  # chance: half of the others
