"""The figures of one evaluation, as files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
    from PIL.Image import Image

_SHOWN = 5


@dataclass(frozen=True, eq=False)
class Answering:
    """A model's evaluation with the name that figures show beside its answers."""

    name: str
    evaluation: Evaluation

    @property
    def encoded(self) -> Encoded:
        if self.evaluation.encoded is None:
            raise InputError("this evaluation holds no features; draw the figures of one that evaluate() returned")
        return self.evaluation.encoded


def write_figures(
    evaluation: Evaluation,
    split: Split,
    folder: Path,
    *,
    beside: Sequence[Answering] = (),
    examples: int = 4,
    seed: int = 0,
) -> list[Path]:
    """Draw what ``evaluation`` of ``split`` found into ``folder`` and return the files.

    ``split`` opens the pictures that were evaluated (the degraded ones of a noisy split). Half of the example queries
    are chosen by ``seed`` among those answered right at once, half among the others; where others are to be shown
    ``beside``, the first of these is the evaluation itself with its name.
    """
    shown = tuple(beside) or (Answering("", evaluation),)
    rng = np.random.default_rng(seed)
    of_texts = _right_and_wrong(evaluation.t2i.hits[1], examples, rng)
    of_images = _right_and_wrong(evaluation.i2t.hits[1], examples, rng)
    figures: dict[str, Figure] = {
        "risk_coverage": risk_coverage_curves(
            {f"{title}, R@1": _curves(side, 1) for title, side in _sides(evaluation).items()}
        ),
        "text_queries": text_query_examples(_text_examples(shown, split, of_texts)),
        "image_queries": image_query_examples(_image_examples(shown, split, of_images)),
        "uncertainty_samples": uncertainty_extremes(_extremes(evaluation, split)),
    }
    panels = uncertainty_panels(evaluation)
    if panels:
        figures["uncertainty"] = uncertainty_histograms(panels)
    if len(evaluation.deferral) > 1:
        curve = {step.ratio: step.recall.rsum for step in evaluation.deferral}
        gate = evaluation.deferral[0].by
        figures["deferral"] = deferral_curve({"RS-TTA" if gate == "vacuity" else f"RS-TTA, by {gate}": curve})
    return [save_figure(figure, folder / f"{name}.png") for name, figure in figures.items()]


def uncertainty_panels(evaluation: Evaluation) -> list[UncertaintyPanel]:
    """The vacuity of clean and degraded image queries, then of text queries; none of a clean split."""
    return [
        UncertaintyPanel(title, side.scores.vacuity[~side.degraded], side.scores.vacuity[side.degraded])
        for title, side in _sides(evaluation).items()
        if side.degraded is not None
    ]


def _sides(evaluation: Evaluation) -> Mapping[str, DirectionResult]:
    return {"Image queries": evaluation.i2t, "Text queries": evaluation.t2i}


def _curves(direction: DirectionResult, k: int) -> dict[str, Selective]:
    asked = ~np.isnan(direction.hits[k])
    return {name: selective(direction.scores[name][asked], direction.hits[k][asked]) for name in SCORE_NAMES}


def _text_examples(shown: Sequence[Answering], split: Split, chosen: Sequence[int]) -> list[Answers]:
    """The answers of all that are ``shown`` to one query after another."""
    similarities = [_compared(each, range(len(each.encoded.images)), chosen).T for each in shown]
    pictures: dict[int, Image] = {}

    def opened(index: int) -> Image:
        if index not in pictures:
            pictures[index] = split.open_image(index)
        return pictures[index]

    examples = []
    for place, query in enumerate(chosen):
        sentence = split.captions[query]
        for each, similarity in zip(shown, similarities, strict=True):
            first = np.argsort(-similarity[place], kind="stable")[:_SHOWN].tolist()
            right = [i == each.encoded.image_of_caption[query] for i in first]
            u = float(each.evaluation.t2i.scores.vacuity[query])
            examples.append(Answers(sentence, [opened(i) for i in first], right, u, each.name))
    return examples


def _image_examples(shown: Sequence[Answering], split: Split, chosen: Sequence[int]) -> list[Answers]:
    """Repeated sentences are shown once; a sentence is right if it is one of the image's captions."""
    similarities = [_compared(each, chosen, range(len(each.encoded.texts))) for each in shown]
    captions = split.captions
    examples = []
    for place, query in enumerate(chosen):
        picture = split.open_image(query)
        for each, similarity in zip(shown, similarities, strict=True):
            ranked = dict.fromkeys(captions[j] for j in np.argsort(-similarity[place], kind="stable").tolist())
            first = list(ranked)[:_SHOWN]
            own = {captions[j] for j in np.flatnonzero(each.encoded.image_of_caption == query).tolist()}
            u = float(each.evaluation.i2t.scores.vacuity[query])
            examples.append(Answers(picture, first, [sentence in own for sentence in first], u, each.name))
    return examples


def _compared(each: Answering, images: Sequence[int], texts: Sequence[int]) -> NDArray[np.float32]:
    """Similarities (images, texts) of some of what was evaluated."""
    encoded = each.encoded
    return match(encoded.images[list(images)], encoded.texts[list(texts)], encoded.compare).similarity


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
