"""A small dataset of plain colours, and a model that knows colours only."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from evidex.progress import Progress, silent

COLOURS = {"red": (200, 40, 40), "green": (40, 180, 60), "blue": (50, 70, 200), "white": (235, 235, 235)}


class ColourModel:
    """Knows colours only: an image is its mean colour, a text the colour it names."""

    temperature = 0.1
    fingerprint = "c0102"

    def __init__(self) -> None:
        self.texts_seen: list[str] = []

    def encode_images(
        self, images: Sequence[Any], *, batch_size: int = 64, progress: Progress = silent
    ) -> NDArray[np.float32]:
        assert batch_size > 0
        progress(len(images), len(images))
        return _unit(np.stack([np.asarray(image.convert("RGB")).reshape(-1, 3).mean(axis=0) for image in images]))

    def encode_texts(
        self, texts: Sequence[str], *, batch_size: int = 64, progress: Progress = silent
    ) -> NDArray[np.float32]:
        assert batch_size > 0
        self.texts_seen.extend(texts)
        progress(len(texts), len(texts))
        named = [[COLOURS[word] for word in text.split() if word in COLOURS] for text in texts]
        rows = np.stack([np.sum(colours or [(1, 1, 1)], axis=0) for colours in named])
        # An encoder's rounding depends on where in a batch a text falls.
        return _unit(rows * (1 + 1e-6 * np.arange(len(texts)))[:, None])


def _unit(rows: NDArray[Any]) -> NDArray[np.float32]:
    centred = rows / np.linalg.norm(rows, axis=1, keepdims=True) - 0.45
    return np.asarray(centred / np.linalg.norm(centred, axis=1, keepdims=True), dtype=np.float32)


def write_colours(folder: Path) -> Path:
    """A dataset of 24 plain scenes in four colours, three captions each, two of them equal."""
    rng = np.random.default_rng(0)
    images = []
    for i in range(24):
        name = list(COLOURS)[i % 4]
        pixels = np.clip(rng.normal(COLOURS[name], 25, size=(16, 16, 3)), 0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"{i:02d}.png")
        captions = [f"many {name} buildings are near a river .", f"a {name} roof .", f"a {name} roof ."]
        images.append({"filename": f"{i:02d}.png", "split": "val", "label": name, "captions": captions})
    (folder / "captions.json").write_text(json.dumps({"dataset": "colours", "images": images}))
    return folder
