"""Selective refinement: the most uncertain queries of each direction are asked again in other forms (Section III-E)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, overload

import numpy as np

from evidex.evaluation.features import Encoded, EvaluatedModel, Images, Split, match
from evidex.evaluation.query_uncertainty import Scores
from evidex.evaluation.recall import best_ranks_i2t, best_ranks_t2i, recall_of
from evidex.evaluation.result import Deferral
from evidex.evaluation.stages import Stages
from evidex.progress import Progress, silent

if TYPE_CHECKING:
    from PIL.Image import Image

    from evidex.retrieval.refine import Refiner


GateName = Literal["vacuity", "belief"]


@dataclass(frozen=True)
class Refinements:
    """Which queries are refined, and how."""

    ratios: tuple[float, ...] = ()
    """Shares of the most uncertain queries; recall is measured for each."""
    refiner: Refiner | None = None
    """RS-TTA where there is none."""
    seed: int = 0
    by: GateName = "vacuity"
    """The uncertainty that chooses the queries: the paper's, or the one that UCL by belief aligns with correctness."""


NO_REFINEMENTS = Refinements()


def refine_and_rank(
    model: EvaluatedModel,
    split: Split,
    encoded: Encoded,
    asked: Refinements,
    *,
    image_scores: Scores,
    text_scores: Scores,
    progress: Progress = silent,
) -> tuple[Deferral, ...]:
    """Recall for each ratio that is asked for; the gallery stays as it is.

    A query is refined alike at every ratio, so those of the largest ratio are refined once and serve all.
    """
    from evidex.retrieval.refine import deferred, refine_queries
    from evidex.retrieval.refiners import RsRefiner

    ratios, seed = asked.ratios, asked.seed
    image_uncertainty, text_uncertainty = image_scores[asked.by], text_scores[asked.by]
    if not ratios:
        return ()
    chosen = asked.refiner or RsRefiner()
    largest = max(ratios)
    images, texts = encoded.images.copy(), encoded.texts.copy()
    image_places = np.flatnonzero(deferred(image_uncertainty, largest)).tolist()
    text_places = np.flatnonzero(deferred(text_uncertainty, largest)).tolist()
    stages = Stages(progress, len(image_places) + len(text_places))
    if image_places:
        pictures = _Opened(split, image_places)
        watch = stages.next(len(image_places))
        images[image_places] = refine_queries(
            model, pictures, "image", chosen, seed, indices=image_places, progress=watch
        )
    if text_places:
        sentences = [split.captions[i] for i in text_places]
        watch = stages.next(len(text_places))
        texts[text_places] = refine_queries(model, sentences, "text", chosen, seed, indices=text_places, progress=watch)
    owner = encoded.image_of_caption
    steps = []
    for ratio in ratios:
        image_mask, text_mask = deferred(image_uncertainty, ratio), deferred(text_uncertainty, ratio)
        asked_images = np.where(image_mask[:, None], images, encoded.images)
        asked_texts = np.where(text_mask[:, None], texts, encoded.texts)
        i2t = best_ranks_i2t(match(asked_images, encoded.texts).similarity, owner)
        t2i = best_ranks_t2i(match(encoded.images, asked_texts).similarity, owner)
        steps.append(Deferral(ratio, int(image_mask.sum()), int(text_mask.sum()), recall_of(i2t, t2i), asked.by))
    return tuple(steps)


class _Opened(Sequence["Image"]):
    """The pictures at ``places``, opened when they are looked up."""

    def __init__(self, images: Images, places: Sequence[int]) -> None:
        self._images = images
        self._places = places

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> Image: ...

    @overload
    def __getitem__(self, index: slice) -> list[Image]: ...

    def __getitem__(self, index: int | slice) -> Image | list[Image]:
        if isinstance(index, slice):
            return [self._images.open_image(place) for place in self._places[index]]
        return self._images.open_image(self._places[index])
