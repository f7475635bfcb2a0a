"""The figures of a bench of questions as a table for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidex.evaluation.questions.asking import FIRST
from evidex.evaluation.questions.figures import BenchResult, Figures, Proportion

if TYPE_CHECKING:
    from rich.console import Console

_ROWS = {
    "first_five": f"of the first {FIRST} hits, fit",
    "present_refused": "present, refused",
    "present_doubted": "present, given with a doubt",
    "absent_given": "absent, given without a doubt",
    "absent_doubted": "absent, given with a doubt",
    "absurd_given": "absurd, given without a doubt",
    "absurd_doubted": "absurd, given with a doubt",
}


def print_result(result: BenchResult, console: Console, title: str) -> None:
    """One row a figure: all questions with their 95 % interval, then each way of asking and each form of subject."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    table.add_column("all (95 % interval)", justify="right", style="bold")
    parts: dict[str, Figures] = {**dict(result.by_way.items()), **result.by_form}
    for name in parts:
        table.add_column(name, justify="right")
    for name, words in _ROWS.items():
        table.add_row(words, _with_interval(getattr(result.all, name)), *map(_short, _column(parts, name)))
    console.print(table)
    if result.forms_differ is not None:
        console.print(
            f"Bare, articled and plural forms with different verdicts: {_with_interval(result.forms_differ)} "
            f"of {result.forms_differ.count} keywords."
        )
    if result.replies.left_out:
        console.print(f"{result.replies.left_out} subjects left out: the pictures' labels do not fit them.")


def _column(parts: dict[str, Figures], name: str) -> list[Proportion | None]:
    return [getattr(figures, name) for figures in parts.values()]


def _short(share: Proportion | None) -> str:
    return "–" if share is None else f"{share.value:.1%}"


def _with_interval(share: Proportion | None) -> str:
    return "–" if share is None else f"{share.value:.1%} ({share.low:.1%} to {share.high:.1%})"
