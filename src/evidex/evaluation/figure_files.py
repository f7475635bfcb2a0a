"""The figures of one evaluation, as files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evidex.errors import InputError
from evidex.evaluation.features import Encoded, Split, match
from evidex.evaluation.figures import (
    Answers,
    Extremes,
    UncertaintyPanel,
    deferral_curve,
    image_query_examples,
    risk_coverage_curves,
    save_figure,
    text_query_examples,
    uncertainty_extremes,
    uncertainty_histograms,
)
from evidex.evaluation.query_uncertainty import SCORE_NAMES
from evidex.evaluation.result import DirectionResult, Evaluation
from evidex.evaluation.selective import Selective, selective

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SHOWN = 5


def write_figures(
    evaluation: Evaluation, split: Split, folder: Path, *, examples: int = 4, seed: int = 0
) -> list[Path]:
    """Draw what ``evaluation`` of ``split`` found into ``folder`` and return the files.

    ``split`` opens the pictures that were evaluated (the degraded ones of a noisy split). Half of the example queries
    are chosen by ``seed`` among those answered right at once, half among the others.
    """
    if evaluation.encoded is None:
        raise InputError("this evaluation holds no features; draw the figures of one that evaluate() returned")
    rng = np.random.default_rng(seed)
    figures: dict[str, Figure] = {
        "risk_coverage": risk_coverage_curves(
            {f"{title}, R@1": _curves(side, 1) for title, side in _sides(evaluation).items()}
        ),
        "text_queries": text_query_examples(_text_examples(evaluation, evaluation.encoded, split, examples, rng)),
        "image_queries": image_query_examples(_image_examples(evaluation, evaluation.encoded, split, examples, rng)),
        "uncertainty_samples": uncertainty_extremes(_extremes(evaluation, split)),
    }
    panels = [
        UncertaintyPanel(title, side.scores.vacuity[~side.degraded], side.scores.vacuity[side.degraded])
        for title, side in _sides(evaluation).items()
        if side.degraded is not None
    ]
    if panels:
        figures["uncertainty"] = uncertainty_histograms(panels)
    if len(evaluation.deferral) > 1:
        curve = {step.ratio: step.recall.rsum for step in evaluation.deferral}
        figures["deferral"] = deferral_curve({"RS-TTA": curve})
    return [save_figure(figure, folder / f"{name}.png") for name, figure in figures.items()]


def _sides(evaluation: Evaluation) -> Mapping[str, DirectionResult]:
    return {"Image queries": evaluation.i2t, "Text queries": evaluation.t2i}


def _curves(direction: DirectionResult, k: int) -> dict[str, Selective]:
    asked = ~np.isnan(direction.hits[k])
    return {name: selective(direction.scores[name][asked], direction.hits[k][asked]) for name in SCORE_NAMES}


def _text_examples(
    evaluation: Evaluation, encoded: Encoded, split: Split, count: int, rng: np.random.Generator
) -> list[Answers]:
    chosen = _right_and_wrong(evaluation.t2i.hits[1], count, rng)
    similarity = match(encoded.images, encoded.texts[chosen], encoded.compare).similarity.T
    examples = []
    for row, query in zip(similarity, chosen, strict=True):
        first = np.argsort(-row, kind="stable")[:_SHOWN].tolist()
        examples.append(
            Answers(
                split.captions[query],
                [split.open_image(i) for i in first],
                [i == encoded.image_of_caption[query] for i in first],
                float(evaluation.t2i.scores.vacuity[query]),
            )
        )
    return examples


def _image_examples(
    evaluation: Evaluation, encoded: Encoded, split: Split, count: int, rng: np.random.Generator
) -> list[Answers]:
    """Repeated sentences are shown once; a sentence is right if it is one of the image's captions."""
    chosen = _right_and_wrong(evaluation.i2t.hits[1], count, rng)
    similarity = match(encoded.images[chosen], encoded.texts, encoded.compare).similarity
    captions = split.captions
    examples = []
    for row, query in zip(similarity, chosen, strict=True):
        ranked = dict.fromkeys(captions[j] for j in np.argsort(-row, kind="stable").tolist())
        first = list(ranked)[:_SHOWN]
        own = {captions[j] for j in np.flatnonzero(encoded.image_of_caption == query).tolist()}
        u = float(evaluation.i2t.scores.vacuity[query])
        examples.append(Answers(split.open_image(query), first, [sentence in own for sentence in first], u))
    return examples


def _extremes(evaluation: Evaluation, split: Split, count: int = 4) -> list[Extremes]:
    u = evaluation.i2t.scores.vacuity
    order = np.argsort(u, kind="stable").tolist()
    pictures = [
        [(split.open_image(i), float(u[i])) for i in part] for part in (order[:count], order[: -count - 1 : -1])
    ]
    u = evaluation.t2i.scores.vacuity
    sentences: dict[str, float] = {}
    for i in np.argsort(u, kind="stable").tolist():
        sentences.setdefault(split.captions[i], float(u[i]))
    listed = list(sentences.items())
    return [
        Extremes("Images", pictures[0], pictures[1]),
        Extremes("Texts", listed[:count], listed[: -count - 1 : -1]),
    ]


def _right_and_wrong(hits: NDArray[np.float64], count: int, rng: np.random.Generator) -> list[int]:
    """``count`` queries, half of them right at once if there are so many, the right ones first."""
    asked = np.flatnonzero(~np.isnan(hits))
    shuffled = rng.permutation(asked)
    right = [int(i) for i in shuffled if hits[i] >= 0.5]
    wrong = [int(i) for i in shuffled if hits[i] < 0.5]
    half = max(count // 2, count - len(wrong))
    chosen = right[:half]
    return chosen + wrong[: count - len(chosen)]
