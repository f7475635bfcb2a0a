"""Figures of pictures and sentences: samples, answers right and wrong, extremes of uncertainty, degradation."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evidex.errors import InputError
from evidex.evaluation.figures.style import GRID, INK, MUTED, RIGHT, WRONG, bare, framed, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, FigureBase
    from PIL.Image import Image


@dataclass(frozen=True, eq=False)
class Answers:
    """A query (text or picture) with its first answers of the other kind, best first.

    Where several methods answer the same query, ``method`` names each, and their answers follow one another.
    """

    query: str | Image
    answers: Sequence[str | Image]
    right: Sequence[bool]
    uncertainty: float | None = None
    method: str = ""

    @property
    def note(self) -> str:
        """Who answers, and how uncertain."""
        u = "" if self.uncertainty is None else f"u = {self.uncertainty:.3f}"
        return "   ".join(part for part in (self.method, u) if part)


@dataclass(frozen=True, eq=False)
class Extremes:
    """The queries of one kind that are the least and the most uncertain, with their uncertainty."""

    title: str
    low: Sequence[tuple[str | Image, float]]
    high: Sequence[tuple[str | Image, float]]


@styled
def sample_sheet(
    pictures: Sequence[Image], captions: Sequence[str], titles: Sequence[str] = (), columns: int = 5
) -> Figure:
    """Pictures in rows with one caption below each."""
    if not pictures or len(pictures) != len(captions):
        raise InputError(f"{len(pictures)} pictures and {len(captions)} captions; give one caption a picture")
    columns = min(columns, len(pictures))
    rows = -(-len(pictures) // columns)
    figure = new_figure(2.0 * columns, 2.75 * rows)
    places = figure.subplots(rows, columns, squeeze=False).ravel()
    for i, axes in enumerate(places):
        bare(axes)
        if i < len(pictures):
            axes.imshow(pictures[i])
            axes.set_xlabel(_wrapped(captions[i], 30, 4), fontsize=7.5, loc="left")
            if titles:
                axes.set_title(titles[i], fontsize=8.5)
    return figure


@styled
def text_query_examples(examples: Sequence[Answers]) -> Figure:
    """One row a text query: the sentence, then its first pictures framed by right and wrong (Figs. 5 and 6)."""
    top = max(len(example.answers) for example in examples)
    figure = new_figure(2.1 + 1.45 * top, 1.75 * len(examples) + 0.2)
    grid = figure.add_gridspec(len(examples), top + 1, width_ratios=[1.45] + [1.0] * top)
    for row, example in enumerate(examples):
        axes = figure.add_subplot(grid[row, 0])
        bare(axes)
        _sentence(axes, example, width=24, lines=5, asked=row > 0 and example.query is examples[row - 1].query)
        for rank, (answer, right) in enumerate(zip(example.answers, example.right, strict=True)):
            axes = figure.add_subplot(grid[row, rank + 1])
            _picture(axes, answer)
            framed(axes, RIGHT if right else WRONG)
            axes.set_title(_marked(rank + 1, right), color=RIGHT if right else WRONG, fontsize=9)
    return figure


@styled
def image_query_examples(examples: Sequence[Answers]) -> Figure:
    """One row an image query: the picture, then its first sentences marked by right and wrong (Figs. 5 and 6).

    Answers of further methods stand below, without the picture again.
    """
    figure = new_figure(7.4, 1.9 * len(examples) + 0.1)
    grid = figure.add_gridspec(len(examples), 2, width_ratios=[1.0, 3.1])
    for row, example in enumerate(examples):
        axes = figure.add_subplot(grid[row, 0])
        if row and example.query is examples[row - 1].query:
            bare(axes)
            axes.text(0.5, 0.5, example.note, color=MUTED, ha="center", va="center", transform=axes.transAxes)
        else:
            _picture(axes, example.query)
            framed(axes, GRID, 1.0)
            axes.set_xlabel(example.note, color=MUTED)
        axes = figure.add_subplot(grid[row, 1])
        bare(axes)
        _sentences(axes, example)
    return figure


def _sentences(axes: Axes, example: Answers) -> None:
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    height = 1 / len(example.answers)
    for rank, (answer, right) in enumerate(zip(example.answers, example.right, strict=True)):
        y = 1 - (rank + 0.5) * height
        colour = RIGHT if right else WRONG
        axes.plot([0.0, 0.0], [y - 0.4 * height, y + 0.4 * height], color=colour, linewidth=4, solid_capstyle="butt")
        axes.text(0.02, y, _marked(rank + 1, right), color=colour, va="center", weight="bold", fontsize=9)
        axes.text(0.095, y, _wrapped(str(answer), 74, 2), va="center", fontsize=8.5)


@styled
def uncertainty_extremes(groups: Sequence[Extremes]) -> Figure:
    """The surest and the least sure queries, pictures or sentences, side by side (Fig. 8)."""
    count = max(max(len(group.low), len(group.high)) for group in groups)
    heights = [1.85 if _has_pictures(group) else 0.34 * count + 0.55 for group in groups]
    figure = new_figure(1.35 * 2 * count + 0.4, sum(heights))
    for part, group in zip(_split(figure, heights, axis=0), groups, strict=True):
        sides = ((group.low, "low"), (group.high, "high"))
        for half, (items, word) in zip(_split(part, [1.0, 1.0], axis=1), sides, strict=True):
            half.suptitle(f"{group.title}, {word} uncertainty", x=0.02, ha="left", fontsize=9.5, weight="bold")
            if _has_pictures(group):
                for axes, (item, u) in zip(half.subplots(1, len(items), squeeze=False)[0], items, strict=True):
                    _picture(axes, item)
                    axes.set_xlabel(f"u = {u:.3f}", color=MUTED, fontsize=8)
                continue
            axes = half.subplots()
            bare(axes)
            axes.set_xlim(0, 1)
            axes.set_ylim(0, len(items))
            for i, (item, u) in enumerate(items):
                y = len(items) - i - 0.5
                axes.text(0.0, y, f"{u:.3f}", color=MUTED, va="center", fontsize=8)
                axes.text(0.1, y, _wrapped(str(item), 18 * count, 2), va="center", fontsize=8)
    return figure


@styled
def degradation_steps(rows: Sequence[Sequence[tuple[str, Image]]], captions: Sequence[str] = ()) -> Figure:
    """Each row one scene on its way through the degradation, a named picture a step (Fig. 4).

    ``captions``, one a row, stand below the row.
    """
    columns = max(len(row) for row in rows)
    below = 0.25 if captions else 0.0  # of a picture's height
    figure = new_figure(1.75 * columns, 1.75 * (1 + below) * len(rows) + 0.35)
    heights = [1.0, below] if captions else [1.0]
    grid = figure.add_gridspec(len(heights) * len(rows), columns, height_ratios=heights * len(rows))
    for i, row in enumerate(rows):
        for j, (name, picture) in enumerate(row):
            axes = figure.add_subplot(grid[len(heights) * i, j])
            _picture(axes, picture)
            if i == 0:
                axes.set_title(name, fontsize=9)
        if captions:
            axes = figure.add_subplot(grid[len(heights) * i + 1, :])
            bare(axes)
            lines = "\n".join(_wrapped(line, 27 * columns, 1) for line in captions[i].splitlines())
            axes.text(0, 1, lines, va="top", fontsize=8.5, transform=axes.transAxes)
    return figure


def _split(figure: FigureBase, sizes: Sequence[float], axis: int) -> list[FigureBase]:
    """Parts of ``figure`` below each other (axis 0) or side by side (axis 1)."""
    parts: Any
    if axis == 0:
        parts = figure.subfigures(len(sizes), 1, height_ratios=list(sizes), squeeze=False)
    else:
        parts = figure.subfigures(1, len(sizes), width_ratios=list(sizes), squeeze=False)
    return list(parts.ravel())


def _has_pictures(group: Extremes) -> bool:
    return not isinstance([*group.low, *group.high][0][0], str)


def _picture(axes: Axes, picture: str | Image) -> None:
    bare(axes)
    axes.imshow(picture)


def _sentence(axes: Axes, example: Answers, *, width: int, lines: int, asked: bool) -> None:
    """The query, unless the row above has ``asked`` it, and who answers."""
    if not asked:
        axes.text(0.0, 0.98, _wrapped(str(example.query), width, lines), va="top", color=INK, transform=axes.transAxes)
    axes.text(0.0, 0.0, example.note, va="bottom", color=MUTED, transform=axes.transAxes)


def _marked(rank: int, right: bool) -> str:
    return f"{rank} ✓" if right else f"{rank} ✗"


def _wrapped(text: str, width: int, lines: int) -> str:
    return "\n".join(textwrap.wrap(text.replace("$", r"\$"), width, max_lines=lines, placeholder=" …"))
