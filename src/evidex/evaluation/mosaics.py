"""Scenes whose contents are known, made from labelled pictures laid side by side; and what is found in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evidex.data.datasets import Dataset
from evidex.data.footprints import Point, Window
from evidex.errors import InputError
from evidex.evaluation.localisation import Localisation, localisation
from evidex.locating.asked import Asked, ask
from evidex.locating.heat import Blend
from evidex.locating.locate import encoded, finding_of
from evidex.locating.located import PRESENT
from evidex.locating.peaks import spots_of
from evidex.locating.view import view_of_picture
from evidex.locating.windows import scales_of
from evidex.progress import Progress, silent

if TYPE_CHECKING:
    from PIL.Image import Image

    from evidex.encoders.model import Model

PICTURE, ACROSS, SIDE = 224, 5, 960
"""Pixels of a picture, pictures a side, and pixels of the part of them that is shown."""
_MOST_CENTRES = 20


@dataclass(frozen=True)
class Mosaic:
    """``ACROSS`` times ``ACROSS`` pictures of different labels, and of them a square cut out at a random place."""

    picture: Image
    whole: dict[str, Window]
    """Where the labels are whose picture is shown whole."""
    cut: frozenset[str]
    """Labels of which a part is shown: neither there nor absent."""


def draw_mosaics(dataset: Dataset, count: int, seed: int) -> Iterator[Mosaic]:
    """The same for the same seed. The cut is at no multiple of anything, so that no window fits a picture by design."""
    by_label: dict[str, list[int]] = {}
    for number, record in enumerate(dataset.records):
        if record.label is not None:
            by_label.setdefault(record.label, []).append(number)
    if len(by_label) <= ACROSS**2:
        raise InputError(f"{dataset.name} has {len(by_label)} labels; mosaics need more than {ACROSS**2}")
    rng = np.random.default_rng(seed)
    for _ in range(count):
        yield _draw(dataset, by_label, rng)


def _draw(dataset: Dataset, by_label: dict[str, list[int]], rng: np.random.Generator) -> Mosaic:
    from PIL import Image as PillowImage

    labels = [str(label) for label in rng.permutation(sorted(by_label))[: ACROSS**2]]
    sheet = PillowImage.new("RGB", (ACROSS * PICTURE, ACROSS * PICTURE))
    left, top = (int(place) for place in rng.integers(0, ACROSS * PICTURE - SIDE + 1, 2))
    whole, cut = {}, set()
    for number, label in enumerate(labels):
        down, across = divmod(number, ACROSS)
        shown = dataset.open_image(int(rng.choice(by_label[label]))).resize((PICTURE, PICTURE))
        sheet.paste(shown, (across * PICTURE, down * PICTURE))
        x, y = across * PICTURE - left, down * PICTURE - top
        if min(x, y) >= 0 and max(x, y) + PICTURE <= SIDE:
            whole[label] = Window(x, y, PICTURE, PICTURE)
        elif min(x, y) > -PICTURE and max(x, y) < SIDE:
            cut.add(label)
    return Mosaic(sheet.crop((left, top, left + SIDE, top + SIDE)), whole, frozenset(cut))


@dataclass(frozen=True, eq=False)
class Seen:
    """The windows of one scene, size by size, with their rows."""

    windows: list[list[Window]]
    vectors: list[NDArray[np.float32]]

    def similarity(self, asked: Asked) -> list[NDArray[np.float32]]:
        return [vectors @ asked.vector for vectors in self.vectors]


@dataclass(frozen=True, eq=False)
class Shown:
    """What one way makes of a scene: a map, centres of attention, and whether it says that the thing is there."""

    attention: NDArray[np.floating]
    cell: int
    centres: list[Point]
    present: bool


Way = Callable[[Seen, Asked], Shown]


def blended(seen: Seen, asked: Asked) -> Shown:
    """As `evidex locate` does it."""
    blend = Blend(SIDE, SIDE, min(windows[0].width for windows in seen.windows))
    for windows, similarity in zip(seen.windows, seen.similarity(asked), strict=True):
        blend.add(windows, asked.likeness(similarity))
        blend.end_size()
    heat = blend.heat()
    if finding_of(asked, heat, 1).is_flat:
        return Shown(np.zeros_like(heat.values), heat.cell, [], present=False)
    apart = min(windows[0].width for windows in seen.windows)
    spots = spots_of(heat, least=PRESENT, apart=apart, most=_MOST_CENTRES)
    return Shown(heat.values, heat.cell, [(spot.x, spot.y) for spot in spots], present=True)


def best_window(seen: Seen, asked: Asked, *, floor: float | None = None) -> Shown:
    """The plain baseline: all attention on the one window that is most alike; none below ``floor``, or a search's."""
    cell = 16
    tops = [(float(part.max()), size, int(part.argmax())) for size, part in enumerate(seen.similarity(asked))]
    best, size, place = max(tops)
    window = seen.windows[size][place]
    middles = (np.arange(SIDE // cell) + 0.5) * cell
    rows = (middles >= window.y) & (middles < window.y + window.height)
    columns = (middles >= window.x) & (middles < window.x + window.width)
    attention = (rows[:, None] & columns[None, :]).astype(np.float32)
    centre = window.x + window.width / 2, window.y + window.height / 2
    least = asked.bar.floor if floor is None else floor
    if least is not None and best < least:
        return Shown(np.zeros_like(attention), cell, [], present=False)
    return Shown(attention, cell, [centre], present=True)


STRICTER = 0.43
"""Similarity that one in eight absent things reaches somewhere in a mosaic, as many as the map finds."""
WAYS: Mapping[str, Way] = {
    "evidex locate": blended,
    "best window": best_window,
    "best window, stricter": partial(best_window, floor=STRICTER),
}


@dataclass(frozen=True)
class Figures:
    """Means over the questions of one way."""

    way: str
    there: int
    absent: int
    r_su: float
    r_as: float
    r_da: float
    r_mi: float
    inside: float
    hit: float
    """Share of things that are there whose first centre of attention lies in them."""
    distance: float
    """Median, in sides of the region, where there is a centre."""
    right: float
    """Share of all questions answered rightly: first centre in the thing, or absence said."""
    said_there: float
    """Share of things that are there of which it says so."""
    said_absent: float
    """Share of things that are not there of which it says that."""


def measure(
    model: Model,
    mosaics: Sequence[Mosaic],
    names: Mapping[str, str],
    ways: Mapping[str, Way] = WAYS,
    progress: Progress = silent,
) -> list[Figures]:
    """Ask every mosaic for every label of ``names``, in the words given there."""
    asked = {label: ask(model, words, "text") for label, words in names.items()}
    there: dict[str, list[Localisation]] = {way: [] for way in ways}
    said: dict[str, list[bool]] = {way: [] for way in ways}
    denied: dict[str, list[bool]] = {way: [] for way in ways}
    for number, mosaic in enumerate(mosaics, start=1):
        seen = _seen(model, mosaic)
        for label, question in asked.items():
            if label in mosaic.cut:
                continue
            for name, way in ways.items():
                shown = way(seen, question)
                if label in mosaic.whole:
                    region = [mosaic.whole[label]]
                    there[name].append(localisation(shown.attention, shown.cell, region, shown.centres))
                    said[name].append(shown.present)
                else:
                    denied[name].append(not shown.present)
        progress(number, len(mosaics))
    return [_figures(way, there[way], said[way], denied[way]) for way in ways]


def _seen(model: Model, mosaic: Mosaic) -> Seen:
    view = view_of_picture(mosaic.picture, "mosaic")
    windows, vectors = [], []
    for scale in scales_of(SIDE, SIDE):
        parts = list(encoded(model, view, scale))
        windows.append([window for part, _ in parts for window in part])
        vectors.append(np.concatenate([rows for _, rows in parts]))
    return Seen(windows, vectors)


def _figures(way: str, there: list[Localisation], said: list[bool], denied: list[bool]) -> Figures:
    def mean(values: Sequence[float]) -> float:
        return float(np.mean(values)) if len(values) else 0.0

    distances = [one.distance for one in there if one.distance is not None]
    return Figures(
        way=way,
        there=len(there),
        absent=len(denied),
        r_su=mean([one.area for one in there]),
        r_as=mean([one.shift for one in there]),
        r_da=mean([one.discreteness for one in there]),
        r_mi=mean([one.mean for one in there]),
        inside=mean([one.inside for one in there]),
        hit=mean([one.hit for one in there]),
        distance=float(np.median(distances)) if distances else 0.0,
        right=mean([*(one.hit for one in there), *denied]),
        said_there=mean(said),
        said_absent=mean(denied),
    )
