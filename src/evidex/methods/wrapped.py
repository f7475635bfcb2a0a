"""An encoder with what a method adds to it, as one module and one model file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from evidex.encoders.protocol import DualEncoder

if TYPE_CHECKING:
    from PIL.Image import Image


class MethodEncoder(DualEncoder):
    """The plain encoder as ``base``; what a method adds are further modules of a subclass, under ``head``."""

    method: str
    """The name that configurations and model files use."""

    def __init__(self, base: DualEncoder, options: dict[str, Any] | None = None) -> None:
        super().__init__()
        self.base = base
        self.options = options or {}
        self.dim = base.dim
        self.image_size = base.image_size

    def prepare_image(self, image: Image) -> np.ndarray:
        return self.base.prepare_image(image)

    def tokenize(self, texts: Sequence[str]) -> dict[str, torch.Tensor]:
        return self.base.tokenize(texts)

    def image_features(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.base.image_features(pixels)

    def text_features(self, tokens: dict[str, torch.Tensor]) -> torch.Tensor:
        return self.base.text_features(tokens)

    def spec(self) -> dict[str, Any]:
        return {"kind": "method", "method": self.method, "options": self.options, "base": self.base.spec()}

    @property
    def start_scale(self) -> float:
        return self.base.start_scale
