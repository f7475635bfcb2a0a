"""What an evaluation found, for tables, figures and JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evidex.evaluation.features import Encoded
from evidex.evaluation.fine_grain import FineGrain
from evidex.evaluation.query_uncertainty import Scores
from evidex.evaluation.recall import Recall
from evidex.evaluation.scene_names import SceneNames

FORMAT = 2


@dataclass(frozen=True)
class ScoreQuality:
    """How good one uncertainty score is; AUROC 0.5 is worthless, 1 perfect. None: was not asked for."""

    error_auroc: Mapping[int, float]
    """Of queries without a right answer among the first k against those with one; NaN if there is only one kind."""
    aurc: Mapping[int, float]
    """Area under the risk-coverage curve, where a risk is a miss among the first k; lower is better."""
    degraded_auroc: float | None = None
    """Of degraded against clean queries."""
    removed_class_auroc: float | None = None
    """Of queries whose scene class was taken out of the gallery against the same queries with it."""
    out_of_domain_auroc: float | None = None
    """Of queries from another world against the split's own."""
    error_auroc_spread: Mapping[int, float] | None = None
    """Standard deviation over the halves of the split, of a score that had to be learned from the other half."""

    def to_json(self) -> dict[str, Any]:
        spread = self.error_auroc_spread
        return {
            "error_auroc": {str(k): number(value) for k, value in self.error_auroc.items()},
            "aurc": {str(k): number(value) for k, value in self.aurc.items()},
            "degraded_auroc": number(self.degraded_auroc),
            "removed_class_auroc": number(self.removed_class_auroc),
            "out_of_domain_auroc": number(self.out_of_domain_auroc),
            **({} if spread is None else {"error_auroc_spread": {str(k): number(v) for k, v in spread.items()}}),
        }


@dataclass(frozen=True, eq=False)
class DirectionResult:
    """One direction of retrieval: a row of ``scores`` and ``hits`` for every query, and what they are worth."""

    scores: Scores
    hits: Mapping[int, NDArray[np.float64]]
    quality: Mapping[str, ScoreQuality]
    degraded: NDArray[np.bool_] | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "queries": len(self.scores.vacuity),
            "degraded": None if self.degraded is None else int(self.degraded.sum()),
            "mean_vacuity": number(float(self.scores.vacuity.mean())),
            "scores": {name: quality.to_json() for name, quality in self.quality.items()},
        }


@dataclass(frozen=True)
class Deferral:
    """Recall after the most uncertain share of the queries of each direction was refined."""

    ratio: float
    image_queries: int
    text_queries: int
    recall: Recall
    by: str = "vacuity"
    """The uncertainty that chose them."""

    def to_json(self) -> dict[str, Any]:
        return {
            "ratio": self.ratio,
            "by": self.by,
            "image_queries": self.image_queries,
            "text_queries": self.text_queries,
            "recall": self.recall.to_json(),
        }


@dataclass(frozen=True)
class Subject:
    """What was evaluated."""

    dataset: str = ""
    split: str = ""
    fingerprint: str = ""
    noisy_seed: int | None = None
    skipped: int = 0
    drawn: bool = False
    """Whether the split was drawn by the names of the files, as the authors have no val part."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """``i2t`` are image queries over captions, ``t2i`` text queries over images."""

    temperature: float
    images: int
    captions: int
    recall: Recall
    i2t: DirectionResult
    t2i: DirectionResult
    subject: Subject = Subject()
    clean_recall: Recall | None = None
    """Recall of the same split without degradation, where the split was degraded."""
    deferral: tuple[Deferral, ...] = ()
    scene_names: SceneNames | None = None
    """Where the split has labels: what asking for them by name finds."""
    fine_grain: FineGrain | None = None
    """Where it was asked for: captions against their twins."""
    encoded: Encoded | None = None
    """The features, for figures that show answers."""
    reranked: Recall | None = None
    """Recall after the method ranked the answers again, where it does."""

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "dataset": self.subject.dataset,
            "split": self.subject.split,
            "split_drawn": self.subject.drawn,
            "fingerprint": self.subject.fingerprint,
            "noisy_seed": self.subject.noisy_seed,
            "images": self.images,
            "captions": self.captions,
            "skipped": self.subject.skipped,
            "temperature": self.temperature,
            "recall": self.recall.to_json(),
            "clean_recall": None if self.clean_recall is None else self.clean_recall.to_json(),
            **({} if self.reranked is None else {"reranked": self.reranked.to_json()}),
            "uncertainty": {"i2t": self.i2t.to_json(), "t2i": self.t2i.to_json()},
            "deferral": [step.to_json() for step in self.deferral],
            "scene_names": None if self.scene_names is None else self.scene_names.to_json(),
            "fine_grain": None if self.fine_grain is None else self.fine_grain.to_json(),
        }


def number(value: float | None) -> float | None:
    """JSON has no NaN: an undefined figure is null."""
    return None if value is None or math.isnan(value) else float(value)
