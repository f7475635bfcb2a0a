"""The paper's encoder goes through the same training code: CLIP from a folder and from an open_clip state dict."""

import dataclasses
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from evidex.config import Config, EncoderConfig, LossConfig, TrainConfig
from evidex.data.datasets import load_dataset
from evidex.encoders.clip.encoder import ClipEncoder
from evidex.encoders.clip.open_clip_weights import expected_shapes, map_state_dict
from evidex.encoders.model import load_model
from evidex.errors import ModelError
from evidex.training.loop import train
from evidex.training.start import build_start
from evidex.training.state import TrainState
from tests.encoders.clip.tiny_clip import save_tiny_clip, tiny_architecture


@pytest.mark.slow
def test_clip_trains_and_its_model_stands_alone(config: Config, tmp_path: Path) -> None:
    save_tiny_clip(tmp_path / "clip")
    clip = dataclasses.replace(
        config,
        encoder=EncoderConfig(kind="clip", source=str(tmp_path / "clip")),
        train=dataclasses.replace(config.train, epochs=1, chunk_size=8),
    )
    run = train(clip, device=torch.device("cpu"))
    (tmp_path / "clip").rename(tmp_path / "gone")
    again = load_model(run.model_path)
    assert again.encode_texts(["a river ."]).shape == (1, 24)
    assert again.fingerprint == run.model.fingerprint


def test_an_open_clip_state_dict_is_a_start(config: Config, tmp_path: Path) -> None:
    save_tiny_clip(tmp_path / "clip")
    architecture = tiny_architecture()
    generator = torch.Generator().manual_seed(0)
    state = {name: torch.randn(shape, generator=generator) for name, shape in expected_shapes(architecture).items()}
    save_file(state, tmp_path / "remote.safetensors")
    settings = EncoderConfig(kind="clip", source=str(tmp_path / "remote.safetensors"), tokenizer=str(tmp_path / "clip"))
    dataset = load_dataset(Path(config.data.path), "train")
    encoder = build_start(dataclasses.replace(config, encoder=settings), dataset.captions)
    weights = map_state_dict(state, architecture, source="test")
    assert all(torch.equal(value, encoder.state_dict()[f"clip.{name}"]) for name, value in weights.items())
    with pytest.raises(ModelError):
        build_start(dataclasses.replace(config, encoder=dataclasses.replace(settings, tokenizer="")), dataset.captions)


def test_info_nce_starts_from_the_scale_that_clip_was_trained_with(tmp_path: Path) -> None:
    save_tiny_clip(tmp_path / "clip")
    clip = ClipEncoder.from_pretrained(tmp_path / "clip")
    with torch.no_grad():
        clip.clip.logit_scale.fill_(4.2)
    assert TrainState.begin(clip, TrainConfig(), LossConfig()).scale.item() == pytest.approx(4.2)
