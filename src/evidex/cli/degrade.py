"""evidex degrade: a folder of images as haze, drift, noise and stripes would leave it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evidex.cli.terminal import say


def command(
    source: Annotated[Path, typer.Argument(help="Folder of images, read with all folders inside.")],
    target: Annotated[Path, typer.Argument(help="New folder for the degraded copy and its manifest.json.")],
    severity: Annotated[
        float, typer.Option(min=0.0, help="Strength: 0 changes nothing, 1 is the benchmark's, more is worse.")
    ] = 1.0,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same pictures.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
) -> None:
    """Write a degraded copy of a folder of images, to see how a model bears bad weather and bad sensors."""
    import json
    from dataclasses import asdict

    from evidex.cli.console import progress_bar
    from evidex.data.discover import printable
    from evidex.degrade.folder import MANIFEST, degrade_folder

    with progress_bar("Degrading") as progress:
        report = degrade_folder(source, target, severity=severity, seed=seed, progress=progress)
    if as_json:
        outcome = {
            "target": str(report.target),
            "manifest": str(report.target / MANIFEST),
            "degraded": len(report.files),
            "skipped": [asdict(skip) for skip in report.skipped],
        }
        typer.echo(json.dumps(outcome))
        return
    for skip in report.skipped:
        say(f"skipped {printable(skip.name)}: {skip.reason}", err=True)
    say(f"images degraded: {len(report.files)}, files skipped: {len(report.skipped)}, in {report.target}")
