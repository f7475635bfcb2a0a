"""Uncertainty of clean and degraded queries as histograms with density estimates (Fig. 7)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evidex.errors import InputError
from evidex.evaluation.figures.style import CLEAN, DEGRADED, new_figure, styled
from evidex.evaluation.selective import auroc

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class UncertaintyPanel:
    """One histogram: the uncertainties of clean and of degraded queries."""

    title: str
    clean: NDArray[np.float64]
    degraded: NDArray[np.float64]


@styled
def uncertainty_histograms(panels: Sequence[UncertaintyPanel], xlabel: str = "uncertainty u", bins: int = 36) -> Figure:
    """Histogram and density of clean and degraded queries, one panel each, with the AUROC between the two."""
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    figure = new_figure(4.1 * columns, 2.8 * rows)
    places = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, panel in zip(places, panels, strict=False):
        both = np.concatenate([panel.clean, panel.degraded])
        low, high = float(both.min()), float(both.max())
        pad = 0.05 * (high - low) or 0.5
        edges = np.linspace(low, high, bins + 1) if high > low else np.linspace(low - pad, high + pad, bins + 1)
        grid = np.linspace(low - pad, high + pad, 400)
        for values, colour, name in ((panel.clean, CLEAN, "clean"), (panel.degraded, DEGRADED, "degraded")):
            if not len(values):
                continue
            axes.hist(values, bins=edges, density=True, color=colour, alpha=0.28, linewidth=0)
            if values.std() > 0:
                axes.plot(grid, gaussian_kde(values, grid), color=colour, label=f"{name} ({len(values):,})")
        axes.set(title=panel.title, xlabel=xlabel, ylabel="density")
        axes.grid(False, axis="x")
        separation = auroc(panel.degraded, panel.clean)
        if axes.lines:
            title = "" if math.isnan(separation) else f"AUROC {separation:.2f}"
            axes.legend(title=title, loc="best", alignment="left", title_fontsize=8.5)
        axes.margins(y=0.25)
        axes.locator_params(axis="x", nbins=6)
    for axes in places[len(panels) :]:
        axes.set_visible(False)
    return figure


def gaussian_kde(values: ArrayLike, grid: ArrayLike) -> NDArray[np.float64]:
    """Density estimate of ``values`` (n,) on ``grid`` (m,) with Gaussian kernels of Scott's width σ·n^(-1/5)."""
    sample, places = np.asarray(values, dtype=np.float64), np.asarray(grid, dtype=np.float64)
    spread = float(sample.std(ddof=1)) if sample.size > 1 else 0.0
    if spread <= 0 or not np.isfinite(spread):
        raise InputError(f"{sample.size} values without spread have no density; give at least two different ones")
    width = spread * sample.size ** (-0.2)
    density = np.empty(places.size)
    block = max(1, (1 << 20) // sample.size)
    for start in range(0, places.size, block):
        distance = (places[start : start + block, None] - sample) / width
        density[start : start + block] = np.exp(-0.5 * distance**2).sum(axis=1)
    density /= sample.size * width * np.sqrt(2 * np.pi)
    return density
