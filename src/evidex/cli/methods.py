"""evidex methods: the methods that the paper compares ELC with, and which of them can be trained here."""

from __future__ import annotations

from typing import Annotated

import typer


def command(
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole table as JSON.")] = False,
) -> None:
    """List the 17 methods of the paper's Table I: what each is, and whether it runs here."""
    import json

    from evidex.methods.registry import METHODS, TRAINABLE

    if as_json:
        typer.echo(json.dumps([method.to_json() for method in METHODS.values()], ensure_ascii=False, indent=2))
        return
    for method in METHODS.values():
        typer.secho(f"{method.title} {method.reference}: {method.words}", bold=True)
        typer.echo(f"  {method.what}\n  paper: {method.paper}\n  needs: {method.needs}\n  source: {method.source}")
        if method.name in TRAINABLE:
            typer.echo(f"  train: evidex train CONFIG --set method.name={method.name}")
