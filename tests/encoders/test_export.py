"""A CLIP's folder and a run's model as one file that ONNX Runtime runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from evidex.config import EncoderConfig
from evidex.encoders.committee import CommitteeEncoder
from evidex.encoders.export import export_model
from evidex.encoders.model import Model, load_model
from evidex.encoders.onnx_encoder import OnnxEncoder
from evidex.encoders.torch_engine import torch_encoder
from evidex.encoders.towers import TowerEncoder, new_compact
from evidex.errors import ModelError
from tests.encoders.clip.tiny_clip import save_tiny_clip
from tests.untrained import untrained


@pytest.mark.parametrize("half", [False, True])
def test_a_clip_becomes_one_file(tmp_path: Path, half: bool) -> None:
    save_tiny_clip(tmp_path / "clip")
    done = export_model(str(tmp_path / "clip"), tmp_path / "clip.safetensors", half=half)
    assert done.difference < 1e-5
    assert done.bytes == (tmp_path / "clip.safetensors").stat().st_size
    clip, made = load_model(tmp_path / "clip", device="cpu"), load_model(tmp_path / "clip.safetensors", device="cpu")
    assert isinstance(made.encoder, OnnxEncoder)
    assert made.temperature == clip.temperature
    texts = ["a river", "", "many planes " * 50]
    np.testing.assert_allclose(made.encode_texts(texts), clip.encode_texts(texts), atol=5e-3 if half else 1e-5)


def test_a_runs_model_keeps_what_its_header_says(tmp_path: Path) -> None:
    model = untrained(["a river ."])
    model.card = {"note": {"1": 2.5}}
    (tmp_path / "run").mkdir()
    model.save(tmp_path / "run" / "model.safetensors")
    export_model(str(tmp_path / "run"), tmp_path / "out.safetensors")
    again = load_model(tmp_path / "out.safetensors", device="cpu")
    assert (again.card, again.fingerprint) == (model.card, model.fingerprint)


def test_a_committee_is_refused(tmp_path: Path) -> None:
    plain = untrained(["a river ."])
    member = torch_encoder(plain.encoder.spec(), plain.encoder.weights())
    assert isinstance(member, TowerEncoder)
    Model(CommitteeEncoder([member, member]), 0.1).save(tmp_path / "two.safetensors")
    with pytest.raises(ModelError, match="kind 'committee' runs with torch only"):
        export_model(str(tmp_path / "two.safetensors"), tmp_path / "out.safetensors")
    assert not (tmp_path / "out.safetensors").exists()


@pytest.mark.slow
def test_a_tower_that_multiplies_in_bytes_is_held_against_torch_in_full(tmp_path: Path) -> None:
    """Its vectors on a CPU are far from torch's by design; the file is right nonetheless."""
    spec = {
        **new_compact(EncoderConfig(image_size=32, dim=16), ["a lake ."]).spec(),
        "image_tower": "clip_vit_b16",
        "image_options": {"pooling": "cls_mean", "image_size": 32},
    }
    torch.manual_seed(0)
    Model(TowerEncoder(spec).eval(), 0.1).save(tmp_path / "model.safetensors")
    assert export_model(str(tmp_path / "model.safetensors"), tmp_path / "one.safetensors").difference < 1e-5
