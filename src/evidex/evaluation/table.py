"""An evaluation as tables for a terminal."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from evidex.data.val_part import RULE
from evidex.evaluation.fine_grain import FineGrain
from evidex.evaluation.recall import Recall
from evidex.evaluation.result import DirectionResult, Evaluation, ScoreQuality
from evidex.evaluation.scene_names import FIRST, SceneNames

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

SCORE_TITLES = {
    "vacuity": "vacuity K/S",
    "max_similarity": "max similarity",
    "margin": "margin",
    "entropy": "softmax entropy",
    "belief": "belief 1 − α/S",
    "dissonance": "dissonance",
    "learned": "learned, cross-fitted",
    "own": "the method's own",
}
_COLUMNS: tuple[tuple[str, Callable[[ScoreQuality], float | None], bool], ...] = (
    ("wrong@1", lambda quality: quality.error_auroc[1], True),
    ("wrong@10", lambda quality: quality.error_auroc[10], True),
    ("degraded", lambda quality: quality.degraded_auroc, True),
    ("class gone", lambda quality: quality.removed_class_auroc, True),
    ("out of domain", lambda quality: quality.out_of_domain_auroc, True),
    ("AURC@1", lambda quality: quality.aurc[1], False),
    ("AURC@10", lambda quality: quality.aurc[10], False),
)


def print_evaluation(evaluation: Evaluation, console: Console) -> None:
    """Print recall, then what each uncertainty score is worth in each direction."""
    console.print(recall_table(evaluation))
    if evaluation.scene_names is not None:
        console.print(f"[bold]Asked by name[/bold]\n{by_name(evaluation.scene_names)}\n")
    if evaluation.fine_grain is not None:
        console.print(fine_grain_table(evaluation.fine_grain))
    console.print(uncertainty_table(evaluation.i2t, "Image queries: AUROC of each score, and area under risk-coverage"))
    console.print(uncertainty_table(evaluation.t2i, "Text queries: AUROC of each score, and area under risk-coverage"))


def recall_table(evaluation: Evaluation) -> Table:
    """Recall in per cent, a row for the split, one for it without degradation and one a deferral ratio."""
    subject = evaluation.subject
    split = f"{subject.split} (drawn: {RULE})" if subject.drawn else subject.split
    title = f"Recall, {subject.dataset} {split}: {evaluation.images:,} images, {evaluation.captions:,} captions"
    table = _table(title)
    table.add_column("")
    for arrow in ("i→t", "t→i"):
        for k in evaluation.recall.i2t:
            table.add_column(f"{arrow}\nR@{k}", justify="right")
    table.add_column("\nRSUM", justify="right", style="bold")
    if evaluation.clean_recall is not None:
        _add_recall(table, "clean", evaluation.clean_recall)
        _add_recall(table, f"noisy, seed {subject.noisy_seed}", evaluation.recall)
    else:
        _add_recall(table, "clean", evaluation.recall)
    if evaluation.reranked is not None:
        _add_recall(table, "ranked again", evaluation.reranked)
    for step in evaluation.deferral:
        gate = "" if step.by == "vacuity" else f", by {step.by}"
        _add_recall(table, f"refined, ρ = {step.ratio:g}{gate}", step.recall)
    return table


def by_name(found: SceneNames) -> str:
    """One sentence, with the scenes that are found worst."""
    worst = sorted(found.precision.items(), key=lambda item: item[1])[:3]
    named = ", ".join(f"{label} {share:.0%}" for label, share in worst if share < 1.0)
    asked = f"Of the first {FIRST} hits (or as many as fit) for each of the {len(found.precision)} scene labels"
    said = f"{asked}, {found.mean:.1%} have that label" + (f" (least: {named})." if named else ".")
    if found.refused_elsewhere is not None:
        said += (
            f" Among images of one other label alone {found.refused_elsewhere:.0%} of the names find no match, "
            f"among their own {found.refused_at_home:.0%}."
        )
    return said


def fine_grain_table(found: FineGrain) -> Table:
    """A row an axis: which share of the images prefers its captions to their twins."""
    table = _table("Fine grain: one thing in a caption exchanged (chance: 50 %)")
    for name in ("exchanged", "prefer the true one", "95 % interval", "other pictures too", "images", "captions"):
        table.add_column(name, justify="left" if name == "exchanged" else "right")
    for axis, one in found.axes.items():
        interval = f"{one.low:.1%} – {one.high:.1%}"
        table.add_row(axis, f"{one.share:.1%}", interval, f"{one.elsewhere:.1%}", f"{one.images:,}", f"{one.pairs:,}")
    return table


def uncertainty_table(direction: DirectionResult, title: str) -> Table:
    """A row a score, a column a task; the best of each column is bold, what was not measured has no column."""
    table = _table(title)
    table.add_column("score")
    shown = [
        column for column in _COLUMNS if any(column[1](quality) is not None for quality in direction.quality.values())
    ]
    best: dict[str, str] = {}
    for name, value, higher in shown:
        table.add_column(name, justify="right")
        numbers = (value(quality) for quality in direction.quality.values())
        defined = [number for number in numbers if number is not None and not math.isnan(number)]
        best[name] = _text(max(defined) if higher else min(defined)) if defined else ""
    for score, quality in direction.quality.items():
        cells = [_text(value(quality)) for _, value, _ in shown]
        marked = [f"[bold]{cell}[/bold]" if cell == best[shown[i][0]] else cell for i, cell in enumerate(cells)]
        table.add_row(SCORE_TITLES.get(score, score), *marked)
    return table


def _add_recall(table: Table, name: str, recall: Recall) -> None:
    values = [*recall.i2t.values(), *recall.t2i.values(), recall.rsum]
    table.add_row(name, *(f"{value:.2f}" for value in values))


def _table(title: str) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    return Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False)


def _text(value: float | None) -> str:
    return f"{value:.3f}" if value is not None and not math.isnan(value) else "–"
