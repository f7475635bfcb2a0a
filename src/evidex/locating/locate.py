"""Question → windows → encoder → likeness → map → peaks: where in a scene something is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evidex.data.footprints import Window
from evidex.errors import InputError
from evidex.locating.asked import Asked
from evidex.locating.heat import Blend, Heat
from evidex.locating.located import PRESENT, SURE, Finding, Located, Peak
from evidex.locating.peaks import spots_of
from evidex.locating.view import View
from evidex.locating.windows import Scale, scales_of
from evidex.progress import Progress, silent

if TYPE_CHECKING:
    from evidex.encoders.model import Model

_AT_ONCE = 64
"""Windows that are read and encoded together; what is held of each is the model's own small square."""


@dataclass(frozen=True)
class LocateOptions:
    """How to look."""

    sizes: tuple[int, ...] | None = None
    """Sides of the windows in pixels; None: those that suit the scene."""
    most_peaks: int = 20

    def __post_init__(self) -> None:
        if self.most_peaks < 1:
            raise InputError(f"{self.most_peaks} peaks are none; give 1 or more")
        if self.sizes is not None and (not self.sizes or min(self.sizes) < 16):
            given = ",".join(map(str, self.sizes))
            raise InputError(f"window {given}: give sides of at least 16 pixels, e.g. 512,256,128")


def locate(
    model: Model, view: View, asked: Asked, options: LocateOptions | None = None, progress: Progress = silent
) -> Located:
    """Look for ``asked`` all over ``view``.

    Holds `_AT_ONCE` windows and some numbers for at most 2048 × 2048 cells, whatever the size of the scene.
    """
    options = options or LocateOptions()
    scales = scales_of(view.width, view.height, options.sizes)
    smallest = min(scale.size for scale in scales)
    blend = Blend(view.width, view.height, min(smallest, view.width, view.height))
    best, seen = None, 0
    # A question that means nothing to the model finds nothing, however long it looks.
    for scale in scales if not asked.reading.new_words else []:
        for windows, vectors in encoded(model, view, scale, seen, sum(map(len, scales)), progress):
            similarity = vectors @ asked.vector
            blend.add(windows, asked.likeness(similarity))
            best = max(similarity.max().item(), -1.0 if best is None else best)
            seen += len(windows)
        blend.end_size()
    heat = blend.heat()
    finding = finding_of(asked, heat, seen)
    if finding.is_flat:
        return Located(asked, view.name, finding, _flat(heat, asked), (), seen, best)
    least = PRESENT if asked.is_judged else 0.0
    spots = spots_of(heat, least=least, apart=smallest, most=options.most_peaks)
    peaks = tuple(Peak(spot, view.place(spot.x, spot.y)) for spot in spots)
    return Located(asked, view.name, finding, heat, peaks, seen, best)


def encoded(
    model: Model, view: View, scale: Scale, before: int = 0, total: int = 0, progress: Progress = silent
) -> Iterator[tuple[list[Window], NDArray[np.float32]]]:
    """The windows of one size that show something, and their rows, a batch at a time."""
    windows: list[Window] = []
    pixels: list[NDArray[np.uint8]] = []
    for number, window in enumerate(scale, start=1):
        picture = view.picture(window)
        if picture is not None:
            windows.append(window)
            pixels.append(model.encoder.prepare_image(picture))
        if windows and (len(windows) == _AT_ONCE or number == len(scale)):
            yield windows, model.encode_pixels(np.stack(pixels), batch_size=_AT_ONCE)
            progress(min(before + number, total), total)
            windows, pixels = [], []


def finding_of(asked: Asked, heat: Heat, seen: int) -> Finding:
    """What a blended map of ``seen`` windows amounts to."""
    if asked.reading.new_words:
        return Finding.OUT_OF_DOMAIN
    if not seen:
        return Finding.EMPTY
    if not asked.is_judged:
        return Finding.UNJUDGED
    if heat.peak < PRESENT:
        return Finding.NOTHING
    return Finding.FOUND if heat.peak >= SURE else Finding.PERHAPS


def _flat(heat: Heat, asked: Asked) -> Heat:
    if not asked.reading.new_words:
        return heat.flattened()
    return Heat(np.zeros_like(heat.values), heat.cell, heat.width, heat.height)
