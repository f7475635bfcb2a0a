"""evidex index: put images and scenes into a gallery."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evidex.cli.band_choice import check_places_choice, tell_uncut
from evidex.cli.options import Asset, Model, Places, Sensor, Tile
from evidex.storage.objects import Place, place_of

if TYPE_CHECKING:
    from evidex.retrieval.gallery import Gallery
    from evidex.retrieval.indexing import IndexOptions, IndexReport, NotPrunedError


def command(
    paths: Places,
    gallery: Annotated[
        str,
        typer.Option(help="Folder of the gallery, or s3://BUCKET/PREFIX; made if it is not there.", metavar="PLACE"),
    ],
    model: Model = None,
    tile: Tile = None,
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
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Work on a Ray cluster: its address, auto, or local for one started here.",
        ),
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Write what was done and skipped, with reasons, as JSON.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Index an archive. Run it again at any time: it goes on where it was, and reads only what is new or changed."""
    from evidex.cli.index_report import came_to_nothing, complaint, told
    from evidex.cli.index_target import calibrated, new_folders, open_or_create, remove, stopping, working
    from evidex.data.items import ReadOptions
    from evidex.data.rendering import TileOptions
    from evidex.retrieval.indexing import IndexOptions

    side = TileOptions.tile if tile is None else tile
    tiles = TileOptions(side, overlap, whole_numbers(bands), _percentiles(stretch), sensor)
    options = IndexOptions(ReadOptions(tiles, max_pixels), workers=workers, prune=prune, force=force, asset=asset)
    place = place_of(gallery)
    _check(paths, place, report, gone=prune and (place / "gallery.json").exists())
    check_places_choice(bands, sensor, paths)
    tell_uncut(tile, paths)
    made = new_folders(place)
    with working(options, place, cluster) as ready, stopping(place, made):
        opened = open_or_create(place, model)
        outcome, refusal = _indexed(opened, paths, ready)
        sources = calibrated(opened) if self_calibrate and outcome.rows else []
    nothing = refusal is None and came_to_nothing(outcome)
    if nothing:
        remove(opened, made)
    told(outcome, place, sources, report, None if nothing else "json" if as_json else "text")
    if nothing:
        raise complaint(paths, outcome)
    if refusal is not None:
        raise refusal


def _check(paths: list[str], gallery: Place, report: Path | None, *, gone: bool) -> None:
    """Refuse places that cannot be read or written before anything is made; ``gone``: they need not be there."""
    from evidex.data.discover import check_places
    from evidex.files import check_folder, check_target

    check_places(paths, gone=gone)
    check_folder(gallery)
    if report is not None:
        check_target(report, "json")


def _indexed(gallery: Gallery, paths: list[str], options: IndexOptions) -> tuple[IndexReport, NotPrunedError | None]:
    """What was done, and why nothing was pruned if that was refused."""
    from evidex.cli.console import progress_bar
    from evidex.retrieval.indexing import NotPrunedError

    with progress_bar("Indexing") as progress:
        try:
            return gallery.add(paths, options=options, progress=progress), None
        except NotPrunedError as refusal:
            return refusal.report, refusal


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
