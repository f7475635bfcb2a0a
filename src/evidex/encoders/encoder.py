"""What a model asks of the encoder inside it, whichever engine runs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from PIL.Image import Image

Floats = NDArray[np.float32]


class Encoder(Protocol):
    """Two towers into one space of unit rows, on some device."""

    dim: int
    image_size: int

    def prepare_image(self, image: Image) -> np.ndarray:
        """Return ``image`` (RGB) as uint8 (3, image_size, image_size)."""

    def embed_pixels(self, pixels: Any) -> Floats:
        """Prepared pictures (n, 3, image_size, image_size), uint8, to unit rows (n, dim)."""

    def embed_texts(self, texts: Sequence[str]) -> Floats:
        """Texts to unit rows (n, dim)."""

    def reads_all(self, text: str) -> bool:
        """Whether the whole of ``text`` is read: one word more would make a difference."""

    def spec(self) -> dict[str, Any]:
        """Return JSON that rebuilds the encoder without its weights; its ``kind`` names the class."""

    def weights(self) -> Mapping[str, Any]:
        """The weights under their names, in float32 or as they are stored: arrays, or what numpy makes arrays of."""

    def eval(self) -> Any:
        """Be ready to encode, with nothing random; returns itself."""
