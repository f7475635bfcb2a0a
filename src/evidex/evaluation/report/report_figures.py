"""The report's figures, drawn from what the jobs stored."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from evidex.data.datasets import load_dataset
from evidex.evaluation.figure_files import Answering, uncertainty_panels, write_figures
from evidex.evaluation.figures import (
    UncertaintyPanel,
    alignment_pairs,
    deferral_curve,
    degradation_steps,
    dirichlet_pair,
    save_figure,
    sensitivity_curves,
    uncertainty_histograms,
)
from evidex.evaluation.noisy import NoisySplit, noisy_stages
from evidex.evaluation.report.results import Results
from evidex.evaluation.report.work import comparing_model, stored_evaluation

_STEP_TITLES = ("clean", "cloud and haze", "radiometric drift", "readout noise", "striping")
_DEGRADED_SHOWN = 2


@dataclass(frozen=True)
class Drawing:
    """A picture file of a figure, with a text for those who cannot see it."""

    path: Path
    words: str
    dataset: str = ""
    """Of which dataset it is, where a report has several."""


Drawings = dict[str, list[Drawing]]


def draw(parts: Sequence[Results], folder: Path) -> Drawings:
    """Draw all figures into ``folder``; the keys are the figures' anchors in the report, in its order."""
    drawings: Drawings = {
        "figure-2": [_saved(folder, "figure_02", dirichlet_pair(), "Two Dirichlet distributions of equal uncertainty")],
        "figure-3": [
            _saved(folder, "figure_03", alignment_pairs(), "A right decision gets surer, a wrong one less sure")
        ],
    }
    panels: list[list[UncertaintyPanel]] = []
    several = len(parts) > 1
    for number, part in enumerate(parts, start=1):
        own = _Drawn(part, folder / f"{number}_{_slug(part.place.title)}" if several else folder)
        panels.append(own.panels)
        for anchor, made in own.drawings().items():
            title = part.place.title if several else ""
            drawings.setdefault(anchor, []).extend(replace(drawing, dataset=title) for drawing in made)
    # As the paper has it: a row of image queries, then one of text queries, a column a dataset.
    titles = [part.place.title for part in parts]
    placed = [
        replace(panel, title=f"({letter}) {panel.title}, noisy {title}")
        for letter, (panel, title) in zip(
            "abcdefghijklmnop",
            ((pair[side], title) for side in (0, 1) for pair, title in zip(panels, titles, strict=True)),
            strict=False,
        )
    ]
    histograms = _saved(folder, "figure_07", uncertainty_histograms(placed), "Uncertainty, clean against degraded")
    return _in_order(drawings | {"figure-7": [histograms]})


class _Drawn:
    """What is drawn of one dataset."""

    def __init__(self, results: Results, folder: Path) -> None:
        self._results, self._folder = results, folder
        place, noise = results.place, results.plan.noise
        self._dataset = load_dataset(place.dataset_path, place.split)
        self._noisy = NoisySplit(self._dataset, noise.seed, severity=noise.severity)
        self._shown = {condition: _shown(results, condition) for condition in ("clean", "noisy")}
        self.panels = uncertainty_panels(self._shown["noisy"][0].evaluation)

    def drawings(self) -> Drawings:
        results, folder = self._results, self._folder
        drawings: Drawings = {
            "figure-4": [_saved(folder, "figure_04", self._steps(), "Images and captions of the split, degraded")]
        }
        pages: dict[str, dict[str, Path]] = {}
        for condition, split in (("clean", self._dataset), ("noisy", self._noisy)):
            shown = self._shown[condition]
            paths = write_figures(shown[0].evaluation, split, folder / condition, beside=shown)
            pages[condition] = {path.stem: path for path in paths}
        for anchor, condition in (("figure-5", "clean"), ("figure-6", "noisy")):
            drawings[anchor] = [
                Drawing(pages[condition]["text_queries"], f"Text queries on the {condition} split, their first images"),
                Drawing(pages[condition]["image_queries"], f"Image queries on the {condition} split, their captions"),
            ]
        extremes = pages["noisy"]["uncertainty_samples"]
        drawings["figure-8"] = [Drawing(extremes, "The surest and the least sure images and captions")]
        drawings |= self._curves()
        drawings["risk-coverage"] = [
            Drawing(pages[condition]["risk_coverage"], f"Risk over coverage of every score, {condition} split")
            for condition in ("clean", "noisy")
        ]
        title = f"{results.plan.ours}, noisy split"
        curve = deferral_curve(results.deferral(), title)
        return drawings | {"figure-11": [_saved(folder, "figure_11", curve, "RSUM over the share of refined queries")]}

    def _curves(self) -> Drawings:
        """Figures 9 and 10, where weights were varied."""
        config = self._results.our_jobs()[0].config
        if config is None or not self._results.work.sensitivity:
            return {}
        chosen = {name: float(getattr(config.loss, name)) for name in self._results.work.sensitivity}
        return {
            "figure-9": [
                _saved(
                    self._folder,
                    f"figure_09_{condition}",
                    sensitivity_curves(self._results.sensitivity(condition), chosen, title=f"{condition} split"),
                    f"RSUM on the {condition} split over the loss weights",
                )
                for condition in ("clean", "noisy")
            ]
        }

    def _steps(self) -> Any:
        """Figure 4: the first degraded images of the split with a changed caption, exactly as they are measured."""
        split, noise = self._noisy, self._results.plan.noise
        rows, captions = [], []
        for index in _with_changed_captions(split)[:_DEGRADED_SHOWN]:
            stages = noisy_stages(self._dataset.open_image(index), noise.seed, index, severity=noise.severity)
            rows.append(list(zip(_STEP_TITLES, stages, strict=True)))
            pairs = zip(self._dataset.records[index].captions, split.captions_of(index), strict=True)
            clean, noisy = next(((a, b) for a, b in pairs if a != b), ("", ""))
            captions.append(f"clean:  {clean}\nnoisy:  {noisy}" if noisy else "no caption changed")
        return degradation_steps(rows, captions)


def _with_changed_captions(split: NoisySplit) -> list[int]:
    """The degraded images, those with a changed caption first."""
    changed = set(split.image_of_caption[split.changed_captions].tolist())
    return sorted(np.flatnonzero(split.noisy).tolist(), key=lambda index: index not in changed)


def _shown(results: Results, condition: str) -> list[Answering]:
    """Ours and its rival, as stored; the rival may compare its rows in a way of its own."""
    plan, place = results.plan, results.place
    job, measure = results.kept_measure(plan.ours, condition)
    shown = [Answering(plan.ours, stored_evaluation(place.measured(job, measure)))]
    rival = plan.rival_model()
    if rival is not None:
        job, measure = results.kept_measure(rival.name, condition)
        found = stored_evaluation(place.measured(job, measure), comparing_model(job, place))
        shown.append(Answering(rival.name, found))
    return shown


def _in_order(drawings: Drawings) -> Drawings:
    """By the figures' numbers, what has none last."""

    def number(anchor: str) -> float:
        return float(anchor.removeprefix("figure-")) if anchor.startswith("figure-") else np.inf

    return dict(sorted(drawings.items(), key=lambda item: number(item[0])))


def _saved(folder: Path, name: str, figure: Any, words: str) -> Drawing:
    return Drawing(save_figure(figure, folder / f"{name}.png"), words)


def _slug(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", title.lower()).strip("_") or "dataset"
