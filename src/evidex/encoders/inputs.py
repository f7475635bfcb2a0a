"""What a model takes: how its pictures are prepared and its texts become token numbers, from its description alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from evidex.encoders.clip.tokenizer import ClipTokenizer
from evidex.encoders.preprocess import resize_and_crop, resize_to_square
from evidex.encoders.wordpiece import MAX_TOKENS, WordPiece
from evidex.errors import ModelError

if TYPE_CHECKING:
    from PIL.Image import Image


class Tokenizer(Protocol):
    def encode(self, text: str) -> list[int]:
        """The numbers of a text, whole or cut to what the model reads."""


@dataclass(frozen=True)
class Inputs:
    """The outside of a model."""

    dim: int
    image_size: int
    tokenizer: Tokenizer
    fit: Callable[[Image, int], np.ndarray]
    """A picture (RGB) to uint8 (3, size, size)."""

    def prepare_image(self, image: Image) -> np.ndarray:
        return self.fit(image, self.image_size)


def inputs_of(spec: dict[str, Any]) -> Inputs:
    """The inputs of the model that ``spec`` describes."""
    if spec["kind"] == "towers":
        dim, size = int(spec["dim"]), int(spec["image_size"])
        return Inputs(dim, size, WordPiece(spec["vocabulary"], MAX_TOKENS), resize_to_square)
    if spec["kind"] == "clip":
        sizes = spec["architecture"]
        tokenizer = ClipTokenizer.from_json(spec["tokenizer"], int(sizes["context"]))
        if len(tokenizer.tokens) > sizes["vocabulary"] or tokenizer.end_token != sizes["end_token"]:
            raise ModelError("the tokenizer is not the model's; save the model again")
        return Inputs(int(sizes["dim"]), int(sizes["image_size"]), tokenizer, resize_and_crop)
    raise ModelError(f"encoder kind '{spec['kind']}' runs with torch only")
