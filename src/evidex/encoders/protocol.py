"""What training and retrieval ask of an encoder: two towers into one space of unit vectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

if TYPE_CHECKING:
    from PIL.Image import Image


class DualEncoder(nn.Module, ABC):
    """An image tower and a text tower whose outputs are compared by inner product.

    ``prepare_image`` and ``tokenize`` run on the CPU; the two ``*_features`` run on the module's device.
    """

    dim: int
    image_size: int

    @abstractmethod
    def prepare_image(self, image: Image) -> np.ndarray:
        """Return ``image`` (RGB) as uint8 (3, image_size, image_size)."""

    @abstractmethod
    def tokenize(self, texts: Sequence[str]) -> dict[str, torch.Tensor]:
        """Return int64 tensors (n, length), padded to the longest text of the batch."""

    @abstractmethod
    def image_features(self, pixels: torch.Tensor) -> torch.Tensor:
        """Map (n, 3, image_size, image_size), uint8 or float in [0, 255], to unit rows (n, dim)."""

    @abstractmethod
    def text_features(self, tokens: dict[str, torch.Tensor]) -> torch.Tensor:
        """Map the output of ``tokenize`` to unit rows (n, dim)."""

    @abstractmethod
    def spec(self) -> dict[str, Any]:
        """Return JSON that rebuilds the module without its weights; its ``kind`` names the class."""

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device
