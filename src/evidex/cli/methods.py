"""evidex methods: the methods that the paper compares ELC with, and which of them can be trained here."""

from __future__ import annotations

from typing import Annotated

import typer


def command(
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole table as JSON.")] = False,
) -> None:
    """List the 17 methods of the paper's Table I: what each is, its row there, and whether it runs here."""
    import json

    from evidex.methods.registry import METHODS, TRAINABLE

    quoted = _table_one()
    if as_json:
        rows = [method.to_json() | {"table_1": quoted[method.title]} for method in METHODS.values()]
        typer.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    for method in METHODS.values():
        typer.secho(f"{method.title} {method.reference}: {method.words}", bold=True)
        row = ", ".join(f"{rsum} on {dataset}" for dataset, rsum in quoted[method.title].items())
        typer.echo(f"  {method.what}\n  paper: {method.paper}\n  row in Table I: RSUM {row} (quoted)")
        typer.echo(f"  needs: {method.needs}\n  source: {method.source}")
        if method.name in TRAINABLE:
            typer.echo(f"  train: evidex train CONFIG --set method.name={method.name}")


def _table_one() -> dict[str, dict[str, str]]:
    """By title the RSUM on each dataset, as the paper prints it."""
    from evidex.evaluation.report.paper_rows import rows_of

    found: dict[str, dict[str, str]] = {}
    for row in rows_of("I"):
        found.setdefault(row.method, {})[row.dataset] = row.values[-1]
    return found
