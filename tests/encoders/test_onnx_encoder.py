"""The shipped model by ONNX Runtime: torch's vectors, the same bits in any batch, bounded memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from evidex.encoders.model import Model, load_model
from evidex.encoders.onnx_encoder import OnnxEncoder
from evidex.scenes.archive import scene_at
from tests.encoders.graphs.test_towers import nasty_pictures

TEXTS = [
    "many planes are parked in an airport .",
    "a river",
    "",
    "   ",
    "river " * 90,
    "日本 airport ½²",
    "\x00\ud800 x",
    "qwxz " * 20,
    "Café's AIRPORTS!  x1-x",
]


@pytest.fixture(scope="module")
def onnx() -> Model:
    model = load_model(device="cpu")
    assert isinstance(model.encoder, OnnxEncoder)
    return model


@pytest.fixture(scope="module")
def torch_model() -> Model:
    return load_model(device="cpu", engine="torch")


def test_the_vectors_are_those_of_torch(onnx: Model, torch_model: Model) -> None:
    scenes = [scene_at(index, seed=4, size=96) for index in range(6)]
    pictures: list[str | Path | Image.Image] = [Image.fromarray(scene.image) for scene in scenes]
    pictures += [Image.new("RGB", (1, 1), "red"), Image.new("L", (3000, 2)), Image.effect_noise((300, 200), 60)]
    pictures += [Image.fromarray(picture.transpose(1, 2, 0)) for picture in nasty_pictures(192)]
    np.testing.assert_allclose(onnx.encode_images(pictures), torch_model.encode_images(pictures), atol=1e-5, rtol=0)
    texts = [*TEXTS, *(caption for scene in scenes for caption in scene.captions)]
    np.testing.assert_allclose(onnx.encode_texts(texts), torch_model.encode_texts(texts), atol=1e-5, rtol=0)
    assert onnx.fingerprint == torch_model.fingerprint


def test_a_row_has_the_same_bits_in_any_batch(onnx: Model) -> None:
    pixels = nasty_pictures(192)
    alone = np.concatenate([onnx.encode_pixels(picture[None]) for picture in pixels])
    np.testing.assert_array_equal(onnx.encode_pixels(pixels), alone)
    np.testing.assert_array_equal(onnx.encode_pixels(pixels[::-1], batch_size=3), alone[::-1])
    alone = np.concatenate([onnx.encode_texts([text]) for text in TEXTS])
    np.testing.assert_array_equal(onnx.encode_texts(TEXTS), alone)
    np.testing.assert_array_equal(onnx.encode_texts(TEXTS[::-1], batch_size=2), alone[::-1])


def test_nothing_to_encode_gives_no_rows(onnx: Model) -> None:
    assert onnx.encode_texts([]).shape == onnx.encode_images([]).shape == (0, 512)
    assert onnx.encoder.embed_pixels(np.empty((0, 3, 192, 192), np.uint8)).shape == (0, 512)


def test_saved_by_either_engine_it_is_the_same_file(onnx: Model, torch_model: Model, tmp_path: Path) -> None:
    for model, name in ((onnx, "onnx"), (torch_model, "torch")):
        model.save(tmp_path / name, half=True)
    assert (tmp_path / "onnx").read_bytes() == (tmp_path / "torch").read_bytes()
    again = load_model(tmp_path / "onnx", device="cpu")
    assert again.fingerprint == onnx.fingerprint
    np.testing.assert_array_equal(again.encode_texts(TEXTS), onnx.encode_texts(TEXTS))


GROWTH = """
import numpy as np
import evidex
def resident():
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmRSS")).split()[1])
model = evidex.load_model(device="cpu")
pixels = np.zeros((24, 3, 192, 192), np.uint8)
def work():
    model.encode_pixels(pixels)
    model.encode_texts([f"{n} " * n for n in range(1, 60)])
work()
before = resident()
for _ in range(4):
    work()
print(resident() - before)
"""


@pytest.mark.slow
def test_memory_stays_flat() -> None:
    done = subprocess.run([sys.executable, "-c", GROWTH], capture_output=True, text=True, timeout=300, check=True)
    assert int(done.stdout) < 24 * 1024, "kibibytes more than after the first pass"
