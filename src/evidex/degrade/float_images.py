"""Between Pillow's 8-bit pictures and the float arrays that the operators work on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from PIL.Image import Image


def to_floats(picture: Image) -> NDArray[np.float32]:
    """An RGB picture as (height, width, 3) in [0, 1]."""
    return np.asarray(picture.convert("RGB"), dtype=np.float32) / np.float32(255)


def to_picture(image: NDArray[np.floating[Any]]) -> Image:
    """The nearest 8-bit RGB picture of an image in [0, 1]."""
    from PIL import Image as PillowImage

    return PillowImage.fromarray(np.rint(image * 255).astype(np.uint8), "RGB")
