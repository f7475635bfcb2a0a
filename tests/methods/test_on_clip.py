"""Every method stands around CLIP as it does around our towers: a step, and a model file that says the same."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from evidex.config import Config, LossConfig, MethodConfig
from evidex.encoders.clip.encoder import ClipEncoder
from evidex.encoders.model import Model, load_model
from evidex.methods.protocol import implementation
from evidex.methods.registry import TRAINABLE
from evidex.training.step import Pairs, compute_gradients
from tests.encoders.clip.tiny_clip import save_tiny_clip
from tests.methods.conftest import TEXTS


@pytest.mark.parametrize("name", TRAINABLE)
def test_a_method_on_clip(name: str, pixels: torch.Tensor, tmp_path: Path) -> None:
    save_tiny_clip(tmp_path / "clip")
    torch.manual_seed(0)
    method, captions = implementation(name), [[text, text] for text in TEXTS]
    encoder = method.wrap(ClipEncoder.from_pretrained(tmp_path / "clip"), captions).train()
    facts = method.facts(encoder, captions)
    pairs = Pairs(pixels, encoder.tokenize(TEXTS), None, None, torch.arange(len(TEXTS)), facts=facts)
    config = Config(
        method=MethodConfig(name=name),  # type: ignore[arg-type]
        loss=LossConfig(mask_equal_captions=False),
    )
    parts = compute_gradients(encoder, nn.Parameter(torch.tensor(2.0)), pairs, config, epoch=12.0, seed=1)
    assert torch.isfinite(parts.total)
    moved = [key for key, p in encoder.named_parameters() if p.grad is not None and p.grad.abs().sum() > 0]
    assert moved
    if name in ("pe_rsitr", "fgvla", "cup"):
        assert all(key.startswith("head") for key in moved)  # the towers are frozen
    kept = Model(encoder.finished().eval(), 0.1)
    kept.save(tmp_path / "model.safetensors")
    again = load_model(tmp_path / "model.safetensors", device="cpu")
    for model in (kept, again):
        assert np.isfinite(model.encode_texts(TEXTS)).all()
    rows = kept.encode_pixels(pixels.numpy())
    np.testing.assert_allclose(again.encode_pixels(pixels.numpy()), rows, atol=1e-5)
    if kept.inner_product:
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-4)
