"""evidex benchmark: train, measure and report what a plan names, from one command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evidex.cli.terminal import say
from evidex.visible import visible


def command(
    config: Annotated[Path, typer.Argument(help="The benchmark as TOML, e.g. configs/benchmark_sample.toml.")],
    output: Annotated[Path | None, typer.Option(help="Folder of models and report; overrides the file's.")] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", "-s", help="Change one key: section.key=value. May be repeated.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
) -> None:
    """Train or load every model that CONFIG names, measure it clean and noisy, and write one report.

    A benchmark that was stopped goes on where it was; what is finished is not done again. The folder holds
    report.html, which needs no other file, the numbers as CSV and JSON under tables/, and the figures.
    """
    from evidex.evaluation.report.plan import load_plan

    plan = load_plan(config, overrides or ())

    from evidex.cli.console import error_console, print_json, progress_bar
    from evidex.evaluation.report.runner import run_benchmark

    notes = error_console()
    with progress_bar("Benchmark") as progress:
        done = run_benchmark(
            plan,
            output,
            watch=lambda line: notes.print(visible(line), highlight=False, markup=False),
            progress=progress,
        )
    if as_json:
        print_json(
            {
                "report": str(done.report),
                "results": str(done.output / "tables" / "results.json"),
                "jobs": done.jobs,
                "trained": done.trained,
                "measured": done.measured,
            }
        )
        return
    say(f"{done.jobs} models, {done.trained} trained and {done.measured} measurements made now")
    say(f"report: {done.report}")
