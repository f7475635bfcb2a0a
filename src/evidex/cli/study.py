"""evidex study: train and measure the variants that a plan names."""

from __future__ import annotations

import typer


def command(context: typer.Context) -> None:
    """Train variants of one configuration and measure them, one line of results a run; see evidex study --help."""
    from evidex.evaluation.study.__main__ import main

    raise typer.Exit(main(context.args, "evidex study"))
