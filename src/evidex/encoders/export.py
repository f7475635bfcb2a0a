"""A model of torch as one file that ONNX Runtime runs, held against torch before it is called done."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evidex.encoders.model import Model, load_model
from evidex.encoders.model_file import read_model_file
from evidex.encoders.onnx_encoder import OnnxEncoder
from evidex.errors import ModelError
from evidex.files import write_atomic

CLOSE = 1e-5
"""How far two engines' vectors of one model may be apart."""
_TEXTS = ("many planes are parked next to a terminal", "", "a river " * 60, "½ Café, 日本")


@dataclass(frozen=True)
class Exported:
    """What was written, and how far its vectors are from torch's."""

    bytes: int
    difference: float


def export_model(name: str, path: Path, *, half: bool = False, text_in_bytes: bool = False) -> Exported:
    """Write the model ``name`` to ``path``; ModelError where ONNX Runtime would not give the same vectors."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "model.safetensors"
        load_model(name, device="cpu", engine="torch").save(made, half=half, text_in_bytes=text_in_bytes)
        difference = held_against_torch(made, name)
        write_atomic(path, made.read_bytes())
    return Exported(path.stat().st_size, difference)


def held_against_torch(path: Path, name: str) -> float:
    """How far the vectors of the model ``name``, kept at ``path``, are from torch's; ModelError where that is far.

    Both engines read what was rounded; the card and the rest of the header come along.
    """
    difference = _difference(_exact(path), load_model(path, device="cpu", engine="torch"))
    if not difference <= CLOSE:
        raise ModelError(f"'{name}' gives other vectors without torch ({difference:.1e} apart); use it with torch")
    return difference


def _exact(path: Path) -> Model:
    """The model in ONNX Runtime, products in full: those in bytes differ by design, and say nothing of the graph."""
    stored = read_model_file(path)
    return Model(OnnxEncoder(stored.spec, stored.weights), stored.temperature)


def _difference(first: Model, second: Model) -> float:
    pixels = np.random.default_rng(0).integers(0, 256, (2, 3, *(2 * [first.encoder.image_size])), dtype=np.uint8)
    images = np.abs(first.encode_pixels(pixels) - second.encode_pixels(pixels))
    texts = np.abs(first.encode_texts(_TEXTS) - second.encode_texts(_TEXTS))
    return float(max(images.max(), texts.max()))
