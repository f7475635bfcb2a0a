"""What training asks of an encoder: two towers of torch into one space of unit vectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

if TYPE_CHECKING:
    from PIL.Image import Image


class DualEncoder(nn.Module, ABC):
    """An image tower and a text tower whose outputs are compared by inner product.

    ``prepare_image`` and ``tokenize`` run on the CPU; the two ``*_features`` run on the module's device. The two
    ``embed_*`` are what a model asks of any encoder.
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

    @torch.inference_mode()
    def embed_pixels(self, pixels: np.ndarray | torch.Tensor) -> NDArray[np.float32]:
        given = torch.from_numpy(np.array(pixels)) if isinstance(pixels, np.ndarray) else pixels
        return _rows(self.image_features(given.to(self.device)))

    @torch.inference_mode()
    def embed_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return _rows(self.text_features({name: ids.to(self.device) for name, ids in self.tokenize(texts).items()}))

    def reads_all(self, text: str) -> bool:
        whole, longer = (self.tokenize([each])["input_ids"] for each in (text, f"{text} a"))
        return not torch.equal(whole, longer)

    def weights(self) -> dict[str, NDArray[Any]]:
        return {name: value.detach().cpu().contiguous().numpy() for name, value in self.state_dict().items()}


def _rows(features: torch.Tensor) -> NDArray[np.float32]:
    rows: NDArray[np.float32] = features.float().cpu().numpy()
    return rows
