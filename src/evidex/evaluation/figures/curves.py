"""Figures of numbers over a setting: training, sensitivity, deferral, risk and coverage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evidex.errors import InputError
from evidex.evaluation.figures.style import BLUE, CYCLE, INK, MUTED, RED, label_ends, new_figure, styled
from evidex.evaluation.selective import Selective

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@styled
def training_curve(history: Sequence[Mapping[str, Any]]) -> Figure:
    """Loss parts and validation RSUM by epoch.

    Each entry of ``history`` is as training writes it: ``epoch``, ``loss`` (numbers by name, among them ``total``) and,
    where it was measured, ``val_rsum``.
    """
    if not history:
        raise InputError("the training history is empty; train at least one epoch")
    figure = new_figure(8.2, 3.2)
    left, right = figure.subplots(1, 2)
    ends = []
    for i, name in enumerate(dict.fromkeys(name for entry in history for name in entry["loss"])):
        points = [(entry["epoch"], entry["loss"][name]) for entry in history if name in entry["loss"]]
        colour, weight = (INK, 2.2) if name == "total" else (CYCLE[(i - 1) % len(CYCLE)], 1.5)
        left.plot(*zip(*points, strict=True), color=colour, linewidth=weight, marker=_marker(len(points)))
        ends.append((*points[-1], name, colour))
    left.set(title="Training loss", xlabel="epoch")
    left.margins(x=0.02)
    label_ends(left, ends)
    measured = [(entry["epoch"], entry["val_rsum"]) for entry in history if entry.get("val_rsum") is not None]
    right.set(title="Validation RSUM", xlabel="epoch")
    if measured:
        right.plot(*zip(*measured, strict=True), color=BLUE, marker=_marker(len(measured)))
        epoch, best = max(measured, key=lambda point: point[1])
        right.plot([epoch], [best], marker="o", markersize=8, markerfacecolor="none", markeredgecolor=RED, linestyle="")
        right.margins(y=0.15)
        right.annotate(
            f"best {best:.1f}", (epoch, best), xytext=(0, 9), textcoords="offset points", ha="center", color=RED
        )
    for axes in (left, right):
        _whole_ticks(axes)
    return figure


@styled
def sensitivity_curves(
    curves: Mapping[str, Mapping[float, float | Sequence[float]]], chosen: Mapping[str, float], title: str = ""
) -> Figure:
    """RSUM over each hyperparameter, one panel a parameter (Figs. 9 and 10).

    ``curves[name][value]`` is an RSUM or those of several seeds, drawn as mean and spread; ``chosen[name]`` is marked.
    """
    figure = new_figure(max(2.7 * len(curves), 3.4), 2.9)
    panels = figure.subplots(1, len(curves), sharey=True, squeeze=False)[0]
    for axes, (name, results), colour in zip(panels, curves.items(), CYCLE * len(curves), strict=False):
        values = sorted(results)
        runs = [np.atleast_1d(np.asarray(results[value], dtype=np.float64)) for value in values]
        means = np.array([run.mean() for run in runs])
        spread = np.array([run.std() for run in runs])
        places = np.arange(len(values))
        if spread.any():
            axes.fill_between(places, means - spread, means + spread, color=colour, alpha=0.15, linewidth=0)
        axes.plot(places, means, color=colour, marker="o")
        axes.set_xticks(places, [f"{value:g}" for value in values])
        axes.set_title(name)
        if chosen.get(name) in values:
            place = values.index(chosen[name])
            axes.plot([place], [means[place]], marker="o", markersize=10, markerfacecolor="none", markeredgecolor=INK)
    panels[0].set_ylabel("RSUM")
    panels[0].margins(y=0.2)
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize=10)
    return figure


@styled
def deferral_curve(curves: Mapping[str, Mapping[float, float | Sequence[float]]], title: str = "") -> Figure:
    """RSUM over the share of queries that are refined, one line a method or dataset (Fig. 11)."""
    figure = new_figure(4.6, 3.1)
    axes = figure.subplots()
    ends = []
    for (name, results), colour in zip(curves.items(), CYCLE, strict=False):
        ratios = sorted(results)
        runs = [np.atleast_1d(np.asarray(results[ratio], dtype=np.float64)) for ratio in ratios]
        means, spread = np.array([run.mean() for run in runs]), np.array([run.std() for run in runs])
        if spread.any():
            axes.fill_between(ratios, means - spread, means + spread, color=colour, alpha=0.15, linewidth=0)
        axes.plot(ratios, means, color=colour, marker="o")
        ends.append((ratios[-1], float(means[-1]), name, colour))
    axes.set(title=title or "Refining the most uncertain queries", xlabel="deferral ratio ρ", ylabel="RSUM")
    axes.set_xticks(sorted({ratio for results in curves.values() for ratio in results}))
    axes.margins(y=0.2)
    if len(curves) > 1:
        label_ends(axes, ends)
    return figure


@styled
def risk_coverage_curves(panels: Mapping[str, Mapping[str, Selective]]) -> Figure:
    """Share of wrong answers among the most certain queries, one panel a title, one line a score.

    The dashed line is the risk of answering everything, which a worthless score keeps at any coverage.
    """
    figure = new_figure(5.2 * len(panels), 3.2)
    places = figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, (title, curves) in zip(places, panels.items(), strict=True):
        for (name, result), colour in zip(curves.items(), CYCLE, strict=False):
            coverage, risk = _thinned(result.coverage, result.risk)
            label = f"{result.aurc:.3f}  {name.replace('_', ' ')}"
            axes.plot(100 * coverage, 100 * risk, color=colour, linewidth=1.5, label=label)
        overall = 100 * float(next(iter(curves.values())).risk[-1])
        axes.axhline(overall, color=MUTED, linestyle=(0, (4, 3)), linewidth=1)
        axes.set(title=title, xlabel="coverage, %", ylabel="risk, %", xlim=(0, 100), ylim=(0, None))
        axes.legend(title="AURC", loc="upper left", bbox_to_anchor=(1.0, 1.0), alignment="left", title_fontsize=8.5)
    return figure


def _thinned(
    coverage: NDArray[np.float64], risk: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The first few answers make any curve jump; start at two per cent, and draw at most a thousand points."""
    start = min(len(risk) - 1, len(risk) // 50)
    places = np.unique(np.linspace(start, len(risk) - 1, 1000).astype(int))
    return coverage[places], risk[places]


def _marker(count: int) -> str:
    return "o" if count <= 12 else ""


def _whole_ticks(axes: Axes) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True, min_n_ticks=1))
