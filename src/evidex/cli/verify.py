"""evidex verify: whether a gallery is still what was written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from evidex.cli.terminal import say

if TYPE_CHECKING:
    from evidex.retrieval.verifying.verify import SoundnessReport


def command(
    gallery: Annotated[str, typer.Option(help="Folder of the gallery, or s3://BUCKET/PREFIX.", metavar="PLACE")],
    repair: Annotated[bool, typer.Option("--repair", help="Mend what can be mended from what is sound.")] = False,
    forget_losses: Annotated[
        bool, typer.Option("--forget-losses", help="Rows that a repair gave up are back, or not wanted any more.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
) -> None:
    """Read all of a gallery and say what is damaged and what to do. Ends with 2 if something is, or still is."""
    from dataclasses import asdict

    from evidex.cli.console import print_json, progress_bar
    from evidex.retrieval.verifying.repair import forget_losses as forget
    from evidex.retrieval.verifying.repair import repair as mend
    from evidex.retrieval.verifying.verify import verify

    if forget_losses:
        forget(gallery)
    with progress_bar("Checking") as progress:
        report = (mend if repair else verify)(gallery, progress=progress)
    if as_json:
        print_json({**asdict(report), "sound": report.sound})
    else:
        _tell(report)
    if not report.sound:
        raise typer.Exit(2)


def _tell(report: SoundnessReport) -> None:
    for finding in report.findings:
        say(f"{'mended' if finding.mended else 'damaged'}: {finding}")
    for note in report.notes:
        say(f"note: {note}")
    rows = "" if report.rows is None else f", {report.rows} rows"
    read = f"{report.files} files ({report.bytes / 2**20:.1f} MiB){rows} in {report.seconds:.1f} s"
    state = "is sound" if report.sound else "is damaged"
    if report.sound and not report.files:
        state = "has no checksums yet, so damage cannot be told, but all its rows can be read"
    say(f"{report.gallery} {state}: read {read}")
