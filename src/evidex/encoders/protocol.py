"""What training asks of an encoder: two towers of torch into one space of unit vectors."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

if TYPE_CHECKING:
    from PIL.Image import Image

Modality = Literal["image", "text"]


class DualEncoder(nn.Module, ABC):
    """An image tower and a text tower whose outputs are compared by inner product.

    ``prepare_image`` and ``tokenize`` run on the CPU; the two ``*_features`` run on the module's device. The two
    ``embed_*`` are what a model asks of any encoder.
    """

    dim: int
    image_size: int
    inner_product: bool = True
    """Whether rows are unit vectors that an inner product compares; others know `similarity` alone."""

    object_graphs: bool = False
    """Whether it looks at the graph of a picture's objects besides its pixels; see `image_features_with`."""

    @abstractmethod
    def prepare_image(self, image: Image) -> np.ndarray:
        """Return ``image`` (RGB) as uint8 (3, image_size, image_size)."""

    @abstractmethod
    def tokenize(self, texts: Sequence[str]) -> dict[str, torch.Tensor]:
        """Return int64 tensors (n, length), padded to the longest text of the batch."""

    @abstractmethod
    def image_features(self, pixels: torch.Tensor) -> torch.Tensor:
        """Map (n, 3, image_size, image_size), uint8 or float in [0, 255], to unit rows (n, dim).

        Training may give towers with heads what they pooled before instead, (n, out_dim).
        """

    @abstractmethod
    def text_features(self, tokens: dict[str, torch.Tensor]) -> torch.Tensor:
        """Map the output of ``tokenize`` to unit rows (n, dim)."""

    @abstractmethod
    def spec(self) -> dict[str, Any]:
        """Return JSON that rebuilds the module without its weights; its ``kind`` names the class."""

    per_token: frozenset[str] = frozenset({"input_ids", "attention_mask"})
    """Which of the tensors of `tokenize` have a column a token, and may be cut to the longest text of a batch."""

    def image_outputs(self, pixels: torch.Tensor) -> torch.Tensor:
        """What a loss is given of the pictures, one row each: the features, unless a method needs more in training."""
        return self.image_features(pixels)

    def image_features_with(self, pixels: torch.Tensor, graphs: torch.Tensor) -> torch.Tensor:
        """`image_features` of pictures whose graphs of objects (n, 2, 20, 20) are known."""
        del graphs
        return self.image_features(pixels)

    def text_outputs(self, tokens: dict[str, torch.Tensor]) -> torch.Tensor:
        """The same of the sentences."""
        return self.text_features(tokens)

    def similarity(self, images: torch.Tensor, texts: torch.Tensor) -> torch.Tensor:
        """Compare rows of pictures (n, dim) with rows of sentences (m, dim): (n, m)."""
        return images @ texts.T

    def reranked(self, scores: NDArray[Any]) -> NDArray[np.float64] | None:
        """The similarities of queries to answers (n, m) as its method ranks them again; None where it does not."""
        del scores
        return None

    def own_uncertainty(self, rows: torch.Tensor, modality: Modality) -> torch.Tensor | None:
        """How unsure the encoder itself is of each of ``rows``; None where it has no such measure."""
        del rows, modality
        return None

    def loss_parameters(self) -> list[nn.Parameter]:
        """Parameters that the loss uses directly, and not through a row."""
        return []

    def after_step(self) -> None:
        """Called after the weights have moved; nothing, unless a method keeps state of its own."""

    def finished(self) -> DualEncoder:
        """What is kept as a model: without what only training needs."""
        return self

    @property
    def start_scale(self) -> float:
        """The logarithm of the logit scale that training starts from: CLIP's before its own training."""
        return math.log(1 / 0.07)

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    @torch.inference_mode()
    def embed_pixels(self, pixels: np.ndarray | torch.Tensor) -> NDArray[np.float32]:
        given = torch.from_numpy(np.array(pixels)) if isinstance(pixels, np.ndarray) else pixels
        return _rows(self.image_features(given.to(self.device)))

    @torch.inference_mode()
    def embed_with(self, pixels: np.ndarray | torch.Tensor, graphs: NDArray[np.float32]) -> NDArray[np.float32]:
        """The same of pictures whose graphs of objects are known."""
        given = torch.from_numpy(np.array(pixels)) if isinstance(pixels, np.ndarray) else pixels
        known = torch.from_numpy(np.array(graphs)).to(self.device)
        return _rows(self.image_features_with(given.to(self.device), known))

    @torch.inference_mode()
    def embed_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return _rows(self.text_features({name: ids.to(self.device) for name, ids in self.tokenize(texts).items()}))

    def reads_all(self, text: str) -> bool:
        whole, longer = (self.tokenize([each])["input_ids"] for each in (text, f"{text} a"))
        return not torch.equal(whole, longer)

    def weights(self) -> dict[str, NDArray[Any]]:
        return {name: value.detach().cpu().contiguous().numpy() for name, value in self.state_dict().items()}

    @torch.inference_mode()
    def compare_rows(self, images: NDArray[np.float32], texts: NDArray[np.float32]) -> NDArray[np.float32]:
        """`similarity` of rows as numpy has them."""
        rows, columns = (torch.from_numpy(np.array(part)).to(self.device) for part in (images, texts))
        return _rows(self.similarity(rows, columns))

    @torch.inference_mode()
    def doubt(self, rows: NDArray[np.float32], modality: Modality) -> NDArray[np.float64] | None:
        """`own_uncertainty` of rows as numpy has them."""
        found = self.own_uncertainty(torch.from_numpy(np.array(rows)).to(self.device), modality)
        return None if found is None else found.double().cpu().numpy()


def _rows(features: torch.Tensor) -> NDArray[np.float32]:
    rows: NDArray[np.float32] = features.float().cpu().numpy()
    return rows


@dataclass(frozen=True)
class Places:
    """What a tower knows of each place of a picture or word of a sentence, before its head."""

    rows: torch.Tensor
    """(n, length, width)"""
    mask: torch.Tensor
    """(n, length), bool: which of them count."""


class PlacedEncoder(DualEncoder, ABC):
    """A dual encoder that shows what is inside its towers, for methods that pool or compare parts."""

    @abstractmethod
    def image_places(self, pixels: torch.Tensor) -> Places:
        """The last grid of the image tower, place by place."""

    @abstractmethod
    def text_places(self, tokens: dict[str, torch.Tensor]) -> Places:
        """The last layer of the text tower, token by token."""

    @abstractmethod
    def word_mask(self, tokens: dict[str, torch.Tensor]) -> torch.Tensor:
        """Which tokens count, (n, length) bool."""

    @abstractmethod
    def new_place_head(self) -> nn.Linear:
        """A layer from a place into the common space; it starts from the tower's own where that has one."""

    @abstractmethod
    def new_word_head(self) -> nn.Linear:
        """The same for a token."""

    @abstractmethod
    def image_pyramid(self, pixels: torch.Tensor) -> list[torch.Tensor]:
        """Four grids (n, channels, side, side) of the image tower, from the first to the last."""

    @abstractmethod
    def pyramid_channels(self) -> list[int]:
        """How many channels each of these grids has."""

    @abstractmethod
    def image_entry_and_blocks(self) -> tuple[nn.Module, list[nn.Module]]:
        """The module whose output the image tower's blocks begin with, and these, in order."""

    @abstractmethod
    def text_entry_and_blocks(self) -> tuple[nn.Module, list[nn.Module]]:
        """The same of the text tower."""

    @abstractmethod
    def heads(self) -> list[nn.Module]:
        """What of the encoder starts from nothing, and so has to learn where the towers stay as they are."""
