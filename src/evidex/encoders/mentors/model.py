"""A trained evidex model as a mentor of both modalities: what it knows of similarity, taught to a smaller one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from evidex.encoders.model import load_model

if TYPE_CHECKING:
    from PIL.Image import Image


class ModelMentor:
    """The features of the model ``name`` (``compact``, a file or a run's folder)."""

    def __init__(self, name: str, device: torch.device) -> None:
        self._model = load_model(name, device=str(device))
        self.dim = self._model.dim
        self.fingerprint = self._model.fingerprint


class ImageModelMentor(ModelMentor):
    def features(self, images: Sequence[Image]) -> np.ndarray:
        return self._model.encode_images(images)


class TextModelMentor(ModelMentor):
    def features(self, texts: Sequence[str]) -> np.ndarray:
        return self._model.encode_texts(texts)
