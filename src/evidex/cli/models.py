"""evidex models: which models have a name, and what to do to have them here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from evidex.cli.terminal import say

if TYPE_CHECKING:
    from evidex.encoders.shipped import KnownModel


def command(
    as_json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False,
) -> None:
    """List the models that can be named with --model: their size, what they score, and whether they are here."""
    from dataclasses import asdict

    from evidex.cli.console import print_json
    from evidex.encoders.shipped import known_models

    found = known_models()
    if as_json:
        print_json([asdict(model) for model in found])
    else:
        _tell(found)


def _tell(models: list[KnownModel]) -> None:
    from rich.table import Table

    from evidex.cli.console import output_console

    table = Table(box=None, pad_edge=False)
    for title in ("model", "here", "in evidex", "fetched once", "dim", "RSICD val, clean / noisy"):
        table.add_column(title, no_wrap=True)
    for model in models:
        scores = [_number(score) for score in (model.clean_rsum, model.noisy_rsum)]
        table.add_row(
            model.name,
            "yes" if model.here else "no",
            _megabytes(model.carried_bytes),
            _megabytes(model.fetched_bytes),
            str(model.dim or "–"),
            " / ".join(scores),
        )
    output_console().print(table)
    for model in models:
        if model.remedy:
            say(f"{model.name}: {model.remedy}")


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size else "–"
