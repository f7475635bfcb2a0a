"""Dirichlet distributions on the 3-class simplex: two of equal uncertainty (Fig. 2), and what UCL asks for (Fig. 3)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evidex.errors import InputError
from evidex.evaluation.figures.style import INK, MUTED, bare, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, math.sqrt(3) / 2]])


@styled
def dirichlet_pair(
    left: Sequence[float] = (2.0, 2.0, 11.0),
    right: Sequence[float] = (5.0, 5.0, 5.0),
    truth: int = 2,
    titles: tuple[str, str] = ("Evidence on the right class", "The same evidence, torn"),
) -> Figure:
    """Densities of Dir(``left``) and Dir(``right``), which must have equal u = 3/Σα; the star marks class ``truth``."""
    if not math.isclose(sum(left), sum(right)):
        raise InputError(f"Σα is {sum(left):g} and {sum(right):g}; give two distributions of equal uncertainty 3/Σα")
    figure = new_figure(7.6, 3.7)
    for axes, alpha, title in zip(figure.subplots(1, 2), (left, right), titles, strict=True):
        _draw_density(axes, alpha, truth)
        axes.set_title(title)
    return figure


@styled
def alignment_pairs(truth: int = 2) -> Figure:
    """What UCL asks for: less uncertainty of a right decision, more of a wrong one; the star is class ``truth``."""
    panels = (
        ("(a) a right decision …", (2.0, 2.0, 5.0)),
        ("… shall be less uncertain", (2.0, 2.0, 16.0)),
        ("(b) a wrong decision …", (2.0, 9.0, 2.0)),
        ("… shall be more uncertain", (1.5, 3.0, 1.5)),
    )
    figure = new_figure(11.2, 2.8)
    for axes, (title, alpha) in zip(figure.subplots(1, len(panels)), panels, strict=True):
        _draw_density(axes, alpha, truth)
        axes.set_title(title)
    return figure


def _draw_density(axes: Axes, alpha: Sequence[float], truth: int) -> None:
    """Dir(``alpha``) as a heatmap inside the triangle, with α and u below."""
    from matplotlib.patches import Polygon

    bare(axes)
    axes.set_aspect("equal")
    outline = Polygon(_CORNERS, closed=True, facecolor="none", edgecolor=INK, linewidth=1.2, zorder=4)
    x, y, density = _density_grid(np.asarray(alpha, dtype=np.float64))
    image = axes.imshow(
        density, extent=(x[0], x[-1], y[0], y[-1]), origin="lower", cmap="cividis", interpolation="bilinear", vmin=0
    )
    image.set_clip_path(Polygon(_CORNERS, closed=True, transform=axes.transData))
    axes.add_patch(outline)
    offsets, aligns = ((-6, -6), (6, -6), (0, 8)), ("right", "left", "center")
    for i, (corner, offset, align) in enumerate(zip(_CORNERS, offsets, aligns, strict=True)):
        axes.annotate(
            f"class {i + 1}",
            corner,
            xytext=offset,
            textcoords="offset points",
            ha=align,
            va="center",
            annotation_clip=False,
        )
    inside = _CORNERS[truth] + 0.1 * (_CORNERS.mean(axis=0) - _CORNERS[truth])
    axes.plot(*inside, marker="*", markersize=15, color="white", markeredgecolor=INK, markeredgewidth=1.0, zorder=5)
    numbers = ", ".join(f"{a:g}" for a in alpha)
    note = f"α = ({numbers})     u = 3/{sum(alpha):g} = {3 / sum(alpha):.2f}"
    axes.text(0.5, -0.13, note, ha="center", va="top", color=MUTED)
    axes.set_xlim(-0.13, 1.13)
    axes.set_ylim(-0.2, 0.96)


def _density_grid(
    alpha: NDArray[np.float64], points: int = 400
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Dirichlet density (Eq. 3) over the plane of the triangle, zero outside."""
    x, y = np.linspace(0, 1, points), np.linspace(0, _CORNERS[2, 1], points)
    px, py = np.meshgrid(x, y)
    third = py / _CORNERS[2, 1]
    second = px - 0.5 * third
    p = np.stack([1 - second - third, second, third])
    inside = (p > 0).all(axis=0)
    log_norm = math.lgamma(float(alpha.sum())) - sum(math.lgamma(float(a)) for a in alpha)
    logs = np.log(np.where(inside, p, 1.0))
    density = np.exp(log_norm + np.tensordot(alpha - 1, logs, axes=1))
    return x, y, np.where(inside, density, 0.0)
