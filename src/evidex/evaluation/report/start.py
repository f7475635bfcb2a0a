"""The common start of all trainings: one model's towers, written as pretrained towers and as mentors.

Objectives that pull evidence from similarities need features that are not all alike at the first step. The paper
starts from CLIP; where there is no such model, a short contrastive training on the same train split stands in.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evidex.data.datasets import Dataset
from evidex.documents import read_json
from evidex.errors import ConfigError, DataError
from evidex.files import write_atomic, write_json_atomic

if TYPE_CHECKING:
    from evidex.encoders.model import Model

DONE = "start.json"
TEXT_MENTOR = "text_mentor.safetensors"


def export_start(model: Model, train_split: Dataset, folder: Path) -> None:
    """Write ``model``'s towers and its features of the training captions into ``folder``, a marker last."""
    from safetensors.numpy import save

    from evidex.encoders.mentors.stored import store_text_features
    from evidex.encoders.published_text import published_config
    from evidex.encoders.text_towers import TextShape

    spec = model.encoder.spec()
    if spec["kind"] != "towers":
        raise ConfigError('start: only a model with two towers can be a start; use encoder.kind = "compact"')
    places = {
        "image_tower.": folder / f"{spec['image_tower']}.safetensors",
        "text_tower.": folder / "words" / "model.safetensors",
    }
    weights = model.encoder.weights()
    for prefix, path in places.items():
        names = [name for name in weights if name.startswith(prefix)]
        tensors = {name.removeprefix(prefix): np.asarray(weights[name], order="C") for name in names}
        write_atomic(path, save(tensors, {"image_size": str(model.encoder.image_size)}))
    write_json_atomic(folder / "words" / "config.json", published_config(TextShape(**spec["text_shape"])))
    write_atomic(folder / "words" / "vocab.txt", "\n".join(spec["vocabulary"]) + "\n")
    store_text_features(_TextFeatures(model), train_split.captions, folder / TEXT_MENTOR)
    write_json_atomic(folder / DONE, {"image_tower": spec["image_tower"], "fingerprint": model.fingerprint})


def read_start(folder: Path) -> dict[str, Any] | None:
    """What ``export_start`` noted, or None if it did not come to its end."""
    path = folder / DONE
    if not path.is_file():
        return None
    noted: dict[str, Any] = read_json(path, DataError)
    return noted


class _TextFeatures:
    """A model's texts as a mentor's."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.fingerprint = model.fingerprint
        self.dim = model.dim

    def features(self, texts: Sequence[str]) -> np.ndarray:
        return self._model.encode_texts(list(texts))
