"""What a mentor is: a frozen model whose relations between items a student learns.

``features`` returns float32 unit rows. ``fingerprint`` covers weights and preparation: equal prints, equal features.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from PIL.Image import Image


class TextMentor(Protocol):
    @property
    def fingerprint(self) -> str: ...
    @property
    def dim(self) -> int: ...
    def features(self, texts: Sequence[str]) -> np.ndarray: ...


class ImageMentor(Protocol):
    @property
    def fingerprint(self) -> str: ...
    @property
    def dim(self) -> int: ...
    def features(self, images: Sequence[Image]) -> np.ndarray: ...
