"""A model small enough for tests, packed as the large one is: differences to towers that lie at an address."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from evidex.encoders import shipped
from evidex.encoders.model import Model
from evidex.encoders.model_file import fingerprint_of
from evidex.encoders.towers import TowerEncoder
from evidex.encoders.wordpiece import build_vocabulary
from evidex.files import sha256_of
from evidex.weights import bases
from evidex.weights.bases import Way, digest_of
from evidex.weights.downloads import PublicFile
from evidex.weights.packing import Base, packed_tensors, read_packed, taken_apart, unpacked_tensors, write_packed

WORDS = ["a river .", "many planes .", "a green field"]
TOWERS = {"image_tower.": "tiny_image", "text_tower.": "tiny_text"}
CARD = {"val": {"clean": {"rsum": 181.25}, "noisy": {"rsum": 179.5}}}


@dataclass(frozen=True)
class Tiny:
    """Where everything is, and the model as it was before it was packed."""

    model: Model
    packed: Path
    published: Path
    """The folder at whose address the bases are."""
    cache: Path

    def take_away(self) -> None:
        """No network from now on."""
        for path in self.published.iterdir():
            path.unlink()


def tiny_model(seed: int = 0) -> Model:
    torch.manual_seed(seed)
    words = build_vocabulary(WORDS)
    sizes = {"vocabulary": len(words), "hidden": 24, "layers": 2, "heads": 3, "intermediate": 40, "positions": 64}
    towers = {
        "image_tower": "convnet",
        "image_options": {"widths": [4, 6, 8, 12]},
        "image_size": 32,
        "text_shape": sizes,
    }
    return Model(TowerEncoder({"kind": "towers", "dim": 16, "vocabulary": words, **towers}), 0.1, card=CARD)


def make_tiny(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Tiny:
    """A packed model named ``large`` in a package folder of its own, its bases at addresses, an empty cache."""
    published, models, cache = folder / "published", folder / "models", folder / "cache"
    published.mkdir()
    models.mkdir()
    model = tiny_model()
    state = {name: np.array(value) for name, value in model.encoder.weights().items()}
    rng = np.random.default_rng(0)
    known, found = {}, []
    for prefix, name in TOWERS.items():
        tensors = {
            key.removeprefix(prefix): (value - 0.01 * rng.standard_normal(value.shape)).astype(np.float32)
            for key, value in state.items()
            if key.startswith(prefix) and value.dtype == np.float32
        }
        path = published / f"{name}.safetensors"
        save_file(tensors, path)
        source = PublicFile(path.as_uri(), sha256_of(path), path.stat().st_size)
        known[name] = (Way(source, load_file, digest_of(tensors)),)
        found.append(Base(prefix, name, tensors))
    monkeypatch.setattr(bases, "BASES", known)
    monkeypatch.setattr(shipped, "MODELS", models)
    monkeypatch.setenv("EVIDEX_CACHE", str(cache))
    return Tiny(model, write_tiny(models / "large.safetensors", model, found), published, cache)


def write_tiny(path: Path, model: Model, found: list[Base]) -> Path:
    state = {name: np.array(value) for name, value in model.encoder.weights().items()}
    kept, how = packed_tensors(state, taken_apart(state, found), found, share=0.002)
    described = {"spec": model.encoder.spec(), "temperature": 0.1, "card": CARD, "fingerprint": "", **how}
    write_packed(path, kept, described)  # what comes out of it says its fingerprint
    packed = read_packed(path)
    assert packed is not None
    tensors = unpacked_tensors(packed, lambda name, _: next(base.tensors for base in found if base.name == name))
    described["fingerprint"] = fingerprint_of(model.encoder.spec(), 0.1, tensors)
    write_packed(path, kept, described)
    return path
