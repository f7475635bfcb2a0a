"""Degradations of the benchmark, the lexicon, and the augmentations that refine an uncertain query."""

from evidex.degrade.generic_tta import augment_image_generic, augment_text_generic
from evidex.degrade.image import (
    Degradation,
    DegradationSteps,
    degradation_steps,
    degrade_image,
    haze,
    radiometric,
    readout_noise,
    striping,
    transmission_map,
)
from evidex.degrade.lexicon import AXES, Entry, Lexicon, Match
from evidex.degrade.rs_tta import augment_image, augment_text, perturb_radiometry, rotate

__all__ = [
    "AXES",
    "Degradation",
    "DegradationSteps",
    "Entry",
    "Lexicon",
    "Match",
    "augment_image",
    "augment_image_generic",
    "augment_text",
    "augment_text_generic",
    "degradation_steps",
    "degrade_image",
    "haze",
    "perturb_radiometry",
    "radiometric",
    "readout_noise",
    "rotate",
    "striping",
    "transmission_map",
]
