"""evidex index: put images and scenes into a gallery."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evidex.cli.options import Asset, Model, Places, Sensor, Tile

if TYPE_CHECKING:
    from evidex.errors import InputError
    from evidex.retrieval.gallery import Gallery
    from evidex.retrieval.indexing import IndexOptions, IndexReport, NotPrunedError

_SHOWN_SKIPS = 10


def command(
    paths: Places,
    gallery: Annotated[Path, typer.Option(help="Folder of the gallery; made if it is not there.")],
    model: Model = None,
    tile: Tile = 512,
    overlap: Annotated[int, typer.Option(help="Pixels that neighbouring tiles share.")] = 64,
    bands: Annotated[str | None, typer.Option(help="Bands shown as red, green, blue, e.g. 4,3,2; or one band.")] = None,
    sensor: Sensor = None,
    asset: Asset = None,
    stretch: Annotated[str, typer.Option(help="Percentiles that become black and white in 16-bit data.")] = "2,98",
    workers: Annotated[int | None, typer.Option(min=1, help="Processes that decode; by default one a core.")] = None,
    prune: Annotated[bool, typer.Option(help="Drop what is gone from the given folders.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Prune also where more than nine in ten files of a folder are gone.")
    ] = False,
    max_pixels: Annotated[int, typer.Option(min=1, help="Largest image that is decoded whole.")] = 100_000_000,
    self_calibrate: Annotated[
        bool, typer.Option("--calibrate/--no-calibrate", help="Let the gallery calibrate itself by what it holds.")
    ] = True,
    report: Annotated[Path | None, typer.Option(help="Write what was done and skipped, with reasons, as JSON.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Index an archive. Run it again at any time: it goes on where it was, and reads only what is new or changed."""
    from evidex.cli.console import print_json
    from evidex.cli.stopping import exit_code, stoppable
    from evidex.data.items import ReadOptions
    from evidex.data.rendering import TileOptions
    from evidex.files import write_json_atomic
    from evidex.retrieval.indexing import IndexOptions

    tiles = TileOptions(tile, overlap, whole_numbers(bands), _percentiles(stretch), sensor)
    options = IndexOptions(ReadOptions(tiles, max_pixels), workers=workers, prune=prune, force=force, asset=asset)
    _check(paths, gallery, report)
    made = _new_folders(gallery)
    try:
        with stoppable():
            opened = _open_or_create(gallery, model)
            outcome, refusal = _indexed(opened, paths, options)
            sources = _calibrated(opened) if self_calibrate and outcome.rows else []
    except KeyboardInterrupt as stop:
        typer.echo(_what_stays(gallery, made), err=True)
        raise typer.Exit(exit_code(stop)) from None
    content = _content(outcome, gallery, sources)
    if nothing := refusal is None and _came_to_nothing(outcome):
        _remove(opened, made)
    if report is not None:
        write_json_atomic(report, content)
    if nothing:
        raise _complaint(paths, outcome)
    if as_json:
        print_json(content)
    else:
        _tell(outcome, gallery, sources)
    if refusal is not None:
        raise refusal


def _check(paths: list[str], gallery: Path, report: Path | None) -> None:
    """Refuse places that cannot be read or written before anything is made."""
    from evidex.data.discover import check_places
    from evidex.files import check_folder, check_target

    check_places(paths)
    check_folder(gallery)
    if report is not None:
        check_target(report)


def _indexed(gallery: Gallery, paths: list[str], options: IndexOptions) -> tuple[IndexReport, NotPrunedError | None]:
    """What was done, and why nothing was pruned if that was refused."""
    from evidex.cli.console import progress_bar
    from evidex.retrieval.indexing import NotPrunedError

    with progress_bar("Indexing") as progress:
        try:
            return gallery.add(paths, options=options, progress=progress), None
        except NotPrunedError as refusal:
            return refusal.report, refusal


def _open_or_create(path: Path, model: str | None) -> Gallery:
    from evidex.encoders.model import load_model
    from evidex.errors import GalleryError
    from evidex.retrieval.gallery import Gallery

    if not (path / "gallery.json").exists():
        try:
            return Gallery.create(path, load_model(model), source=model)
        except GalleryError:
            if not (path / "gallery.json").exists():
                raise
            # Another run has made it meanwhile.
    return Gallery.open(path, load_model(model) if model is not None else None)


def _what_stays(path: Path, made: list[Path]) -> str:
    """What an interrupted run leaves; a new gallery without a row is taken back."""
    from evidex.retrieval.gallery import Gallery

    rows = 0
    if (path / "gallery.json").exists():
        opened = Gallery.open(path)
        rows = len(opened)
        _remove(opened, made)
    if not rows and made:
        return "stopped before anything was indexed; run it again to begin"
    return f"stopped; {rows} rows are in {path} and stay; run it again to go on"


def _new_folders(gallery: Path) -> list[Path]:
    """The folders that making this gallery makes, the gallery's own first; none where it is there already."""
    if (gallery / "gallery.json").exists():
        return []
    above = gallery.absolute()
    return [gallery, *(folder for folder in above.parents if not folder.exists())]


def _came_to_nothing(outcome: IndexReport) -> bool:
    return not (outcome.added or outcome.updated or outcome.unchanged or outcome.moved or outcome.pruned)


def _remove(gallery: Gallery, made: list[Path]) -> None:
    """Take back a gallery that got no row, and the folders that were made for it as far as they are empty."""
    import shutil
    from contextlib import suppress

    from evidex.errors import GalleryError

    if not made:
        return
    with suppress(GalleryError), gallery.writing():  # nobody else is about to put rows in
        if len(gallery):
            return
        for entry in made[0].iterdir():
            with suppress(OSError):
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    for folder in made:
        with suppress(OSError):
            folder.rmdir()


def _complaint(paths: list[str], outcome: IndexReport) -> InputError:
    from evidex.data.discover import printable
    from evidex.errors import InputError

    shown = "'" + "', '".join(printable(path) for path in paths[:3]) + ("', …" if len(paths) > 3 else "'")
    kinds = "JPEG, PNG, TIFF, WebP or JPEG 2000 files"
    if not outcome.skipped:
        return InputError(f"{shown}: nothing to index was found; give {kinds}, or folders that hold some")
    reason, often = Counter(skip.reason for skip in outcome.skipped).most_common(1)[0]
    example = next(skip for skip in outcome.skipped if skip.reason == reason)
    count = f"all {len(outcome.skipped)} files were skipped, {often} like" if len(outcome.skipped) > 1 else "skipped"
    return InputError(f"{shown}: nothing was indexed; {count}: {Path(example.name).name}: {reason}")


def _calibrated(gallery: Gallery) -> list[str]:
    import numpy as np

    from evidex.retrieval.certainty.calibration_store import calibration_path
    from evidex.retrieval.certainty.self_calibrating import self_calibrate

    sources = []
    for outcome in self_calibrate(gallery, np.random.default_rng(0)):
        direction = outcome.calibration.direction
        given = calibration_path(gallery, direction, outcome.target).exists()
        by = "those given to evidex calibrate" if given else f"{len(outcome.calibration.scores)} {outcome.source}"
        sources.append(f"{direction} queries: {by}")
    return sources


def _content(outcome: IndexReport, gallery: Path, sources: list[str]) -> dict[str, Any]:
    from dataclasses import asdict

    content = asdict(outcome)
    content["gallery"] = str(gallery)
    content["calibrated_by"] = sources
    return content


def _tell(outcome: IndexReport, gallery: Path, sources: list[str]) -> None:
    from evidex.cli.console import error_console

    console = error_console()
    told = [f"skipped {skip.name}: {skip.reason}" for skip in outcome.skipped]
    told += [f"{remark.name}: {remark.reason}" for remark in outcome.remarks]
    for line in told[:_SHOWN_SKIPS]:
        console.print(line, style="yellow", markup=False, highlight=False, soft_wrap=True)
    if len(told) > _SHOWN_SKIPS:
        rest = len(told) - _SHOWN_SKIPS
        console.print(f"… and {rest} more; --report FILE lists all of them", style="yellow", highlight=False)
    pruned = f"; {outcome.pruned} pruned" if outcome.pruned else ""
    rate = f", {outcome.encoded / outcome.seconds:.0f} pictures/s" if outcome.encoded else ""
    typer.echo(f"{outcome.found} files found: {_counts(outcome)}{pruned}; {outcome.seconds:.1f} s{rate}")
    if outcome.unplaced:
        one = outcome.unplaced == 1
        typer.echo(
            f"{outcome.unplaced} {'raster has' if one else 'rasters have'} coordinates that lead to no place on earth, "
            f"wholly or in part: {'it is' if one else 'they are'} indexed, but --bbox does not find what has no place"
        )
    typer.echo(
        f"{outcome.rows} rows in {gallery}: {_kinds(outcome)}"
        + (f"; calibrated for {', '.join(sources)}" if sources else "")
    )


def _counts(outcome: IndexReport) -> str:
    """What became of the files; copies are among those that were written now, so they are told with these."""
    written = _listed({"added": outcome.added, "updated": outcome.updated})
    if written and outcome.duplicates:
        written[-1] += f" ({len(outcome.duplicates)} of them copies of others)"
    rest = _listed({"unchanged": outcome.unchanged, "moved": outcome.moved, "skipped": len(outcome.skipped)})
    return ", ".join([*written, *rest]) or "none"


def _listed(counts: dict[str, int]) -> list[str]:
    return [f"{count} {name}" for name, count in counts.items() if count]


def _kinds(outcome: IndexReport) -> str:
    """What the rows are, so that they can be compared with the files."""
    tiles = f"{_count(outcome.tiles, 'tile')} of {_count(outcome.scenes, 'scene')}"
    kinds = [(outcome.images, _count(outcome.images, "image")), (outcome.tiles, tiles)]
    kinds.append((outcome.texts, _count(outcome.texts, "text")))
    return ", ".join(words for count, words in kinds if count) or "none"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def whole_numbers(text: str | None) -> tuple[int, ...] | None:
    from evidex.errors import InputError

    if text is None:
        return None
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"bands '{text}': give one or three numbers, e.g. 4,3,2") from None


def _percentiles(text: str) -> tuple[float, float]:
    from evidex.errors import InputError

    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"stretch '{text}': give two percentiles, e.g. 2,98") from None
    return low, high
