"""evidex sample: a rendered archive to try everything else on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evidex.cli.terminal import say


def command(
    directory: Annotated[Path, typer.Argument(help="New folder for captions.json and images/.")],
    count: Annotated[int, typer.Option(min=1, help="Number of scenes.")] = 1200,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same pictures and captions.")] = 0,
    size: Annotated[int, typer.Option(help="Edge of an image in pixels.")] = 224,
    georeferenced: Annotated[
        bool, typer.Option("--georeferenced", help="Write GeoTIFF files with a place and a time instead of JPEG.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an archive that was rendered before.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
) -> None:
    """Render a sample archive of overhead scenes with five captions each. Nothing is downloaded."""
    import json

    from evidex.cli.console import progress_bar
    from evidex.scenes import render_archive

    with progress_bar("Rendering") as progress:
        archive = render_archive(
            directory,
            count=count,
            seed=seed,
            size=size,
            progress=progress,
            georeferenced=georeferenced,
            force=force,
        )
    if as_json:
        outcome = {
            "directory": str(archive.directory),
            "count": archive.count,
            "splits": dict(archive.splits),
            "kinds": list(archive.kinds),
            "georeferenced": archive.georeferenced,
        }
        typer.echo(json.dumps(outcome, ensure_ascii=False))
        return
    shares = ", ".join(f"{number} {name}" for name, number in archive.splits.items())
    say(f"{archive.count} scenes of {len(archive.kinds)} kinds in {archive.directory} ({shares})")
