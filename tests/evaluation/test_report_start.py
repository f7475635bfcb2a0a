from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from evidex.config import EncoderConfig
from evidex.data.datasets import load_dataset
from evidex.encoders.clip.encoder import ClipEncoder
from evidex.encoders.mentors.stored import StoredTextMentor
from evidex.encoders.model import Model
from evidex.encoders.towers import TowerEncoder, from_pretrained_towers, new_compact
from evidex.errors import ConfigError
from evidex.evaluation.report.start import TEXT_MENTOR, export_start, read_start
from tests.encoders.clip.tiny_clip import save_tiny_clip
from tests.evaluation.colours import write_colours


def test_towers_and_mentors_come_back_as_they_were(tmp_path: Path) -> None:
    dataset = load_dataset(write_colours(tmp_path), "val")
    settings = EncoderConfig(image_size=32, dim=16)
    model = Model(new_compact(settings, dataset.captions), 0.1)
    assert read_start(tmp_path / "start") is None
    export_start(model, dataset, tmp_path / "start")
    noted = read_start(tmp_path / "start")
    assert noted is not None
    tower = str(noted["image_tower"])
    again = from_pretrained_towers(
        EncoderConfig(kind="towers", source=str(tmp_path / "start"), image_tower=tower, text_tower="words", dim=8)
    ).eval()
    assert isinstance(model.encoder, TowerEncoder)
    pixels = torch.rand(3, 3, 32, 32)
    tokens, expected_tokens = again.tokenize(dataset.captions), model.encoder.tokenize(dataset.captions)
    assert all(torch.equal(tokens[name], expected_tokens[name]) for name in tokens)
    with torch.inference_mode():
        assert torch.equal(again.image_tower(pixels), model.encoder.image_tower(pixels))
        inputs = tokens["input_ids"], tokens["attention_mask"]
        assert torch.equal(again.text_tower(*inputs), model.encoder.text_tower(*inputs))
    stored = StoredTextMentor(tmp_path / "start" / TEXT_MENTOR).features(dataset.captions)
    np.testing.assert_allclose(stored, model.encode_texts(dataset.captions), atol=1e-3)


def test_only_two_towers_can_be_a_start(tmp_path: Path) -> None:
    dataset = load_dataset(write_colours(tmp_path), "val")
    save_tiny_clip(tmp_path / "clip")
    model = Model(ClipEncoder.from_pretrained(str(tmp_path / "clip")), 0.1)
    with pytest.raises(ConfigError, match="two towers"):
        export_start(model, dataset, tmp_path / "start")
    assert read_start(tmp_path / "start") is None
