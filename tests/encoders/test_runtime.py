"""A tower as ONNX Runtime runs it: one item with all cores, several with one each, the same bits."""

from __future__ import annotations

import numpy as np
import pytest

from evidex.encoders.model import load_model
from evidex.encoders.onnx_encoder import OnnxEncoder


def test_one_alone_and_several_together_have_the_same_bits_on_any_number_of_cores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts = ["ships", "a river", "many planes are parked near a terminal", "two rivers", "a green forest beside a lake"]
    pixels = np.random.default_rng(0).integers(0, 256, (3, 3, 192, 192), dtype=np.uint8)
    found = []
    for cores in ("1", "2", "3"):
        monkeypatch.setenv("OMP_NUM_THREADS", cores)
        encoder = load_model(device="cpu").encoder
        assert isinstance(encoder, OnnxEncoder)
        found.append(encoder.embed_texts(texts))
        found.append(np.concatenate([encoder.embed_texts([text]) for text in texts]))
        images = encoder.embed_pixels(pixels)
        assert np.array_equal(images, np.concatenate([encoder.embed_pixels(each[None]) for each in pixels]))
    assert all(np.array_equal(rows, found[0]) for rows in found)
    assert load_model(device="cpu").encoder.embed_texts([]).shape == (0, 512)
