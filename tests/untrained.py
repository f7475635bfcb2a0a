"""The compact architecture with arbitrary weights, made without torch: a model for all that is not about models."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evidex.encoders.model import Model
from evidex.encoders.onnx_encoder import OnnxEncoder
from evidex.encoders.sizes import CONVNET_WIDTHS
from evidex.encoders.wordpiece import build_vocabulary

HIDDEN, INNER, LAYERS, HEADS, POSITIONS = 192, 512, 2, 4, 64


def untrained(texts: Iterable[str], seed: int = 0, *, image_size: int = 32, dim: int = 32) -> Model:
    """Its vectors are arbitrary but repeatable; its vocabulary is that of ``texts``."""
    vocabulary = build_vocabulary(texts)
    shape = {"vocabulary": len(vocabulary), "hidden": HIDDEN, "layers": LAYERS, "heads": HEADS}
    spec = {
        "kind": "towers",
        "image_tower": "convnet",
        "image_size": image_size,
        "text_shape": {**shape, "intermediate": INNER, "positions": POSITIONS},
        "vocabulary": vocabulary,
        "dim": dim,
        "dropout": 0.0,
    }
    return Model(OnnxEncoder(spec, _Weights(np.random.default_rng(seed)).of(len(vocabulary), dim)), 0.1)


class _Weights:
    """Drawn as torch draws those of new layers."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._made: dict[str, NDArray[Any]] = {}

    def of(self, vocabulary: int, dim: int) -> dict[str, NDArray[Any]]:
        self._image(dim)
        self._text(vocabulary, dim)
        return self._made

    def _image(self, dim: int) -> None:
        self._convolution("image_tower.stem.0", "image_tower.stem.1", 3, CONVNET_WIDTHS[0], 3)
        inputs = CONVNET_WIDTHS[0]
        for number in range(2 * len(CONVNET_WIDTHS)):
            name, outputs = f"image_tower.stages.{number}", CONVNET_WIDTHS[number // 2]
            self._convolution(f"{name}.body.0", f"{name}.body.1", inputs, outputs, 3)
            self._convolution(f"{name}.body.3", f"{name}.body.4", outputs, outputs, 3)
            if number % 2 == 0:
                self._convolution(f"{name}.skip.0", f"{name}.skip.1", inputs, outputs, 1)
            inputs = outputs
        self._head("image_head", 2 * CONVNET_WIDTHS[-1], dim)

    def _text(self, vocabulary: int, dim: int) -> None:
        name = "text_tower.embeddings"
        for part, rows in (("word", vocabulary), ("position", POSITIONS), ("token_type", 2)):
            self._made[f"{name}.{part}_embeddings.weight"] = self._small(rows, HIDDEN)
        self._norm(f"{name}.LayerNorm", HIDDEN)
        for number in range(LAYERS):
            name = f"text_tower.encoder.layer.{number}"
            for part in ("self.query", "self.key", "self.value", "output.dense"):
                self._dense(f"{name}.attention.{part}", HIDDEN, HIDDEN)
            self._norm(f"{name}.attention.output.LayerNorm", HIDDEN)
            self._dense(f"{name}.intermediate.dense", HIDDEN, INNER)
            self._dense(f"{name}.output.dense", INNER, HIDDEN)
            self._norm(f"{name}.output.LayerNorm", HIDDEN)
        self._head("text_head", HIDDEN, dim)

    def _convolution(self, name: str, norm: str, inputs: int, outputs: int, kernel: int) -> None:
        self._made[f"{name}.weight"] = self._even((outputs, inputs, kernel, kernel), inputs * kernel**2)
        self._norm(norm, outputs)
        self._made[f"{norm}.running_mean"] = np.zeros(outputs, np.float32)
        self._made[f"{norm}.running_var"] = np.ones(outputs, np.float32)
        self._made[f"{norm}.num_batches_tracked"] = np.array(0, np.int64)

    def _norm(self, name: str, width: int) -> None:
        self._made[f"{name}.weight"] = np.ones(width, np.float32)
        self._made[f"{name}.bias"] = np.zeros(width, np.float32)

    def _dense(self, name: str, inputs: int, outputs: int) -> None:
        self._made[f"{name}.weight"] = self._small(outputs, inputs)
        self._made[f"{name}.bias"] = np.zeros(outputs, np.float32)

    def _head(self, name: str, inputs: int, outputs: int) -> None:
        self._made[f"{name}.weight"] = self._even((outputs, inputs), inputs)
        self._made[f"{name}.bias"] = self._even((outputs,), inputs)

    def _small(self, *shape: int) -> NDArray[np.float32]:
        return 0.02 * self._rng.standard_normal(shape, np.float32)

    def _even(self, shape: tuple[int, ...], inputs: int) -> NDArray[np.float32]:
        return self._rng.uniform(-(inputs**-0.5), inputs**-0.5, shape).astype(np.float32)
