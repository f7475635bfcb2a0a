"""The forms in which a query is asked again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from evidex.degrade.float_images import to_floats, to_picture
from evidex.degrade.generic_tta import Thesaurus, augment_image_generic, augment_text_generic
from evidex.degrade.lexicon import Lexicon
from evidex.degrade.rs_tta import augment_image, augment_text
from evidex.degrade.wordnet import load_wordnet

if TYPE_CHECKING:
    from PIL.Image import Image

_COPIES = 4


@dataclass(frozen=True)
class RsRefiner:
    """RS-TTA: radiometric drift and small rotations, phrases of the field."""

    copies: int = _COPIES
    lexicon: Lexicon = field(default_factory=Lexicon.load)

    def texts(self, text: str, rng: np.random.Generator) -> list[str]:
        return [augment_text(text, rng, self.lexicon) for _ in range(self.copies)]

    def images(self, image: Image, rng: np.random.Generator) -> list[Image]:
        pixels = to_floats(image)
        return [to_picture(augment_image(pixels, rng)) for _ in range(self.copies)]


@dataclass(frozen=True)
class GenericRefiner:
    """The augmentation of natural images and everyday texts that RS-TTA is compared with."""

    copies: int = _COPIES
    thesaurus: Thesaurus | None = None

    def texts(self, text: str, rng: np.random.Generator) -> list[str]:
        thesaurus = self.thesaurus or load_wordnet()
        return [augment_text_generic(text, rng, thesaurus) for _ in range(self.copies)]

    def images(self, image: Image, rng: np.random.Generator) -> list[Image]:
        pixels = to_floats(image)
        return [to_picture(augment_image_generic(pixels, rng)) for _ in range(self.copies)]
