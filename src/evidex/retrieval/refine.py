"""Ask an uncertain query again in slightly different forms and let the mean of them decide (Section III-E)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from evidex.errors import InputError
from evidex.progress import Progress, silent

if TYPE_CHECKING:
    from PIL.Image import Image

Features = NDArray[np.float32]
Kind = Literal["text", "image"]
REFINE_RATIO = 0.1
"""The paper's deferral ratio."""
_QUERIES_AT_ONCE = {"text": 256, "image": 32}


class FeatureModel(Protocol):
    """What refinement asks of a model."""

    def encode_images(self, images: Sequence[Any], *, batch_size: int = 64) -> Features: ...

    def encode_texts(self, texts: Sequence[str], *, batch_size: int = 64) -> Features: ...


class Refiner(Protocol):
    """Makes the augmented copies of a query."""

    def texts(self, text: str, rng: np.random.Generator) -> list[str]: ...

    def images(self, image: Image, rng: np.random.Generator) -> list[Image]: ...


@dataclass(frozen=True)
class Refining:
    """Which queries of a search are asked again, and in which forms."""

    ratio: float = REFINE_RATIO
    """The share of usual queries that would be, the least certain ones."""
    refiner: Refiner | None = None
    """None: the one that calibrations are tested with."""
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0.0 <= self.ratio <= 1.0:
            raise InputError(f"refine ratio {self.ratio:g} is not between 0 and 1")

    @property
    def forms(self) -> Refiner:
        return _usual_refiner() if self.refiner is None else self.refiner


AS_CALIBRATED, NEVER, ALWAYS = Refining(), Refining(0.0), Refining(1.0)


@cache
def _usual_refiner() -> Refiner:
    from evidex.retrieval.refiners import RsRefiner  # with all that it augments by; most searches ask nothing again

    return RsRefiner()


def refine_features(original: Features, copies: Features) -> Features:
    """Mean of ``original`` (dim,) and its ``copies`` (n, dim) on the unit sphere, (dim,)."""
    if original.ndim != 1 or copies.ndim != 2 or copies.shape[1] != original.shape[0]:
        raise InputError(f"features {original.shape} and copies {copies.shape} do not fit; pass (dim,) and (n, dim)")
    return _unit(np.vstack([original[None], copies]).astype(np.float64).mean(axis=0), original)


def refine_queries(
    model: FeatureModel,
    queries: Sequence[str | Path | Image],
    kind: Kind,
    refiner: Refiner,
    rng_seed: int,
    *,
    indices: Sequence[int] | None = None,
    progress: Progress = silent,
) -> Features:
    """Refined unit features (queries, dim).

    Query i draws from a generator of ``rng_seed`` and ``indices[i]`` (its place in the whole query set; by default i),
    so that the same query is refined alike whichever others are refined with it. ``queries`` are texts, or pictures
    and paths of pictures, and are looked up one at a time.
    """
    if kind not in ("text", "image"):
        raise InputError(f"kind '{kind}' is unknown; use 'text' or 'image'")
    if rng_seed < 0:
        raise InputError(f"seed {rng_seed} is negative; give a whole number of at least 0")
    if not len(queries):
        raise InputError("there are no queries to refine; give at least one")
    places = range(len(queries)) if indices is None else indices
    if len(places) != len(queries):
        raise InputError(f"{len(places)} indices for {len(queries)} queries; give one for each")
    parts: list[Features] = []
    step = _QUERIES_AT_ONCE[kind]
    for start in range(0, len(queries), step):
        stop = min(start + step, len(queries))
        forms = [
            _forms(queries[i], kind, refiner, np.random.default_rng([rng_seed, int(places[i])]))
            for i in range(start, stop)
        ]
        parts.extend(_refine_forms(model, forms, kind))
        progress(stop, len(queries))
    return np.stack(parts)


def deferred(uncertainty: NDArray[np.floating[Any]], ratio: float) -> NDArray[np.bool_]:
    """(queries,) the most uncertain share ``ratio`` of the queries.

    Their number is ratio · n rounded to the nearest whole number, halves upwards; of equal uncertainties the earlier
    query is deferred first.
    """
    values = np.asarray(uncertainty)
    if values.ndim != 1:
        raise InputError(f"uncertainty of shape {values.shape} is no list; give one number a query")
    if not 0.0 <= ratio <= 1.0:
        raise InputError(f"deferral ratio {ratio} is not between 0 and 1")
    if np.isnan(values).any():
        raise InputError("uncertainty holds NaN; every query needs a number to be ranked")
    mask = np.zeros(len(values), dtype=np.bool_)
    # A product like 0.15 · 70 comes out just below its half.
    count = math.floor(ratio * len(values) + 0.5 + 1e-9)
    mask[np.argsort(-values, kind="stable")[:count]] = True
    return mask


def _forms(query: str | Path | Image, kind: Kind, refiner: Refiner, rng: np.random.Generator) -> list[Any]:
    """The query itself and its augmented copies."""
    if kind == "text":
        if not isinstance(query, str):
            raise InputError(f"{type(query).__name__} is no text; give texts with kind 'text'")
        return [query, *refiner.texts(query, rng)]
    picture = _picture(query)
    return [picture, *refiner.images(picture, rng)]


def _picture(query: str | Path | Image) -> Image:
    from evidex.data.images import ENOUGH_TO_ENCODE, decode_image, to_rgb

    return decode_image(query, at_least=ENOUGH_TO_ENCODE) if isinstance(query, str | Path) else to_rgb(query)


def _refine_forms(model: FeatureModel, forms: list[list[Any]], kind: Kind) -> list[Features]:
    flat = [form for group in forms for form in group]
    rows = _encode_texts(model, flat) if kind == "text" else model.encode_images(flat)
    ends = np.cumsum([len(group) for group in forms])
    return [refine_features(part[0], part[1:]) for part in np.split(rows, ends[:-1])]


def _encode_texts(model: FeatureModel, texts: list[str]) -> Features:
    """Each distinct text once: many copies of a short caption are the caption itself."""
    number = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    return model.encode_texts(list(number))[[number[text] for text in texts]]


def _unit(mean: NDArray[np.float64], fallback: Features) -> Features:
    """``mean`` at length one; copies that cancel the original out leave nothing, and the original stands."""
    length = float(np.sqrt(np.sum(mean**2)))
    if length > 1e-12:
        return (mean / length).astype(np.float32)
    return (fallback / max(float(np.linalg.norm(fallback)), 1e-12)).astype(np.float32)
