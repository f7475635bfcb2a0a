"""The report's figures, drawn from what the jobs stored."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evidex.data.datasets import load_dataset
from evidex.degrade import degradation_steps as steps_of
from evidex.degrade.float_images import to_floats, to_picture
from evidex.evaluation.figure_files import write_figures
from evidex.evaluation.figures import (
    deferral_curve,
    degradation_steps,
    dirichlet_pair,
    save_figure,
    sensitivity_curves,
)
from evidex.evaluation.noisy import NoisySplit, noisy_half
from evidex.evaluation.report.results import Results
from evidex.evaluation.report.work import stored_evaluation

if TYPE_CHECKING:
    from evidex.data.datasets import Dataset

_STEP_TITLES = ("clean", "cloud and haze", "radiometric drift", "readout noise", "striping")
_DEGRADED_SHOWN = 2


@dataclass(frozen=True)
class Drawing:
    """A picture file of a figure, with a text for those who cannot see it."""

    path: Path
    words: str


def draw(results: Results, folder: Path) -> dict[str, list[Drawing]]:
    """Draw all figures into ``folder``; the keys are the figures' anchors in the report."""
    place, plan = results.place, results.plan
    dataset = load_dataset(place.dataset_path, place.split)
    drawings = {
        "figure-2": [_saved(folder, "figure_02", dirichlet_pair(), "Two Dirichlet distributions of equal uncertainty")],
        "figure-4": [
            _saved(folder, "figure_04", _steps(dataset, results), "Images of the split, step by step degraded")
        ],
    }
    pages: dict[str, dict[str, Path]] = {}
    for condition, split in (("clean", dataset), ("noisy", _noisy(dataset, results))):
        evaluation = stored_evaluation(place.measured(*results.our_measure(condition)))
        pages[condition] = {path.stem: path for path in write_figures(evaluation, split, folder / condition)}
    for anchor, condition in (("figure-5", "clean"), ("figure-6", "noisy")):
        drawings[anchor] = [
            Drawing(pages[condition]["text_queries"], f"Text queries on the {condition} split and their first images"),
            Drawing(pages[condition]["image_queries"], f"Image queries on the {condition} split and their captions"),
        ]
    noisy = pages["noisy"]
    drawings["figure-7"] = [Drawing(noisy["uncertainty"], "Histograms of uncertainty, clean against degraded queries")]
    drawings["figure-8"] = [Drawing(noisy["uncertainty_samples"], "The surest and the least sure images and captions")]
    chosen = {name: _chosen(results, name) for name in results.work.sensitivity}
    if chosen:
        drawings["figure-9"] = [
            _saved(
                folder,
                f"figure_09_{condition}",
                sensitivity_curves(results.sensitivity(condition), chosen, title=f"{condition} split"),
                f"RSUM on the {condition} split over the loss weights",
            )
            for condition in ("clean", "noisy")
        ]
    title = f"{plan.ours}, noisy split"
    drawings["figure-11"] = [
        _saved(folder, "figure_11", deferral_curve(results.deferral(), title), "RSUM over the share of refined queries")
    ]
    drawings["risk-coverage"] = [
        Drawing(pages[condition]["risk_coverage"], f"Risk over coverage of every score, {condition} split")
        for condition in ("clean", "noisy")
    ]
    return drawings


def _saved(folder: Path, name: str, figure: Any, words: str) -> Drawing:
    return Drawing(save_figure(figure, folder / f"{name}.png"), words)


def _steps(dataset: Dataset, results: Results) -> Any:
    """Figure 4 for the first degraded images of the split."""
    noise = results.plan.noise
    rows = []
    for index in np.flatnonzero(noisy_half(len(dataset), noise.seed))[:_DEGRADED_SHOWN].tolist():
        image = to_floats(dataset.open_image(index))
        stages = steps_of(image, np.random.default_rng([noise.seed, index]), severity=noise.severity)
        pictures = (stages.clean, stages.hazy, stages.drifted, stages.noisy, stages.striped)
        rows.append([(title, to_picture(stage)) for title, stage in zip(_STEP_TITLES, pictures, strict=True)])
    return degradation_steps(rows)


def _noisy(dataset: Dataset, results: Results) -> NoisySplit:
    return NoisySplit(dataset, results.plan.noise.seed, severity=results.plan.noise.severity)


def _chosen(results: Results, name: str) -> float:
    config = results.our_jobs()[0].config
    assert config is not None
    return float(getattr(config.loss, name))
