"""evidex reindex: another model over an archive that a gallery holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evidex.storage.objects import place_of


def command(
    gallery: Annotated[str, typer.Option(metavar="PLACE", help="The gallery whose files and texts are read again.")],
    to: Annotated[str, typer.Option(metavar="PLACE", help="The new gallery: a folder, or s3://BUCKET/PREFIX.")],
    model: Annotated[str, typer.Option(help="The new gallery's model: compact, large, a file or a run folder.")],
    workers: Annotated[int | None, typer.Option(min=1, help="Processes that decode; by default one a core.")] = None,
    max_pixels: Annotated[int, typer.Option(min=1, help="Largest image that is decoded whole.")] = 100_000_000,
    self_calibrate: Annotated[
        bool, typer.Option("--calibrate/--no-calibrate", help="Let the gallery calibrate itself by what it holds.")
    ] = True,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="Work on a Ray cluster: its address, auto, or local for one started here."
        ),
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Write what was done and skipped, with reasons, as JSON.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Make a gallery anew with another model, of the files that one holds. Run it again to go on where it was."""
    from evidex.cli.console import progress_bar
    from evidex.cli.index_report import told
    from evidex.cli.index_target import calibrated, new_folders, open_or_create, stopping, working
    from evidex.data.items import ReadOptions
    from evidex.errors import InputError
    from evidex.files import check_folder, check_target
    from evidex.retrieval.gallery import Gallery
    from evidex.retrieval.indexing import IndexOptions
    from evidex.retrieval.reindexing import reindex

    new = place_of(to)
    if str(place_of(gallery)) == str(new):
        raise InputError(f"'{to}' is the gallery that is read; name another with --to")
    check_folder(new)
    if report is not None:
        check_target(report, "json")
    options = IndexOptions(ReadOptions(max_pixels=max_pixels), workers=workers)
    with working(options, new, cluster) as ready, stopping(new, new_folders(new)):
        old, opened = Gallery.open(gallery), open_or_create(new, model)
        with progress_bar("Indexing") as progress:
            outcome = reindex(old, opened, ready, progress)
        sources = calibrated(opened) if self_calibrate and outcome.rows else []
    told(outcome, new, sources, report, "json" if as_json else "text")
