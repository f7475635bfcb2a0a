"""evidex locate: where in a scene something is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evidex.cli.band_choice import check_scene_choice
from evidex.cli.options import Sensor
from evidex.cli.terminal import say
from evidex.visible import visible

if TYPE_CHECKING:
    from evidex.data.items import ReadOptions
    from evidex.data.rendering import TileOptions
    from evidex.encoders.model import Model
    from evidex.locating.asked import Asked
    from evidex.locating.locate import LocateOptions
    from evidex.locating.located import Located
    from evidex.locating.view import View

_STYLES = {"found": "bold green", "perhaps": "bold yellow", "unjudged": "bold"}
_SHOWN_PEAKS = 10


def command(
    words: Annotated[
        list[str],
        typer.Argument(metavar="[TEXT] SCENE", help="What to look for, unless --image says it, and where."),
    ],
    images: Annotated[
        list[Path] | None, typer.Option("--image", help="An example image to look for, instead of words.")
    ] = None,
    out: Annotated[
        list[Path] | None,
        typer.Option(help="Write the map: .tif, .png over the scene, .geojson of the peaks; may be repeated."),
    ] = None,
    gallery: Annotated[
        str | None,
        typer.Option(metavar="PLACE", help="SCENE is a row of this gallery: a hit's id, or the path of a file in it."),
    ] = None,
    model: Annotated[str | None, typer.Option(help="Model file, run folder or name; default: compact.")] = None,
    window: Annotated[
        str | None, typer.Option(help="Sides of the windows in pixels, e.g. 512,256,128; default: to suit the scene.")
    ] = None,
    peaks: Annotated[int, typer.Option(min=1, help="At most so many places.")] = 20,
    bands: Annotated[
        str | None, typer.Option(help="Bands shown as red, green, blue, of scene and example, e.g. 4,3,2; or one.")
    ] = None,
    sensor: Sensor = None,
    max_pixels: Annotated[int, typer.Option(min=1, help="Largest image that is decoded whole.")] = 100_000_000,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
) -> None:
    """Find where in a scene, or in a folder of them, something is: a map of likeness and its peaks."""
    from evidex.cli.index import whole_numbers
    from evidex.data.items import ReadOptions
    from evidex.data.rendering import TileOptions
    from evidex.locating.locate import LocateOptions

    image = _only(images or [])
    text, scene = _told(words, image)
    if gallery is not None and image is None and (bands or sensor):
        _refuse_bands(scene)
    check_scene_choice(bands, sensor, scene, image)
    options = LocateOptions(_sizes(window), peaks)
    reading = ReadOptions(TileOptions(bands=whole_numbers(bands), sensor=sensor), max_pixels)
    targets = out or []
    if gallery is None and Path(scene).is_dir():
        _folder(text, image, scene, targets, model, reading, options, as_json)
        return
    _check_outputs(targets, scene, image)
    opened, view, ways = _opened(scene, gallery, model, reading, targets)
    with view as shown:
        found = _located(opened, shown, _asked(opened, text, image, reading, ways), options)
        _write(targets, found, shown)
    if as_json:
        from evidex.cli.console import print_json

        print_json(found.json())
    else:
        _show(found)


def _refuse_bands(scene: str) -> None:
    from evidex.errors import InputError

    raise InputError(
        f"'{scene}' is shown as the gallery has it; leave out --bands and --sensor, or give its file alone"
    )


def _only(images: list[Path]) -> Path | None:
    from evidex.errors import InputError

    if len(images) > 1:
        raise InputError(f"{len(images)} examples are given; a map is of one, so ask with one after another")
    return images[0] if images else None


def _told(words: list[str], image: Path | None) -> tuple[str | None, str]:
    """What to look for, None where a picture says it, and the scene."""
    from evidex.errors import InputError

    if len(words) > 2 or (image is not None and len(words) > 1):
        raise InputError(
            f"'{words[-1]}' is one word too many; put what to look for in quotes and name one scene or folder"
        )
    if image is not None:
        return None, words[0]
    if len(words) < 2:
        raise InputError(
            f"'{words[0]}' alone does not say what to look for, or where; give both, or --image and a scene"
        )
    if not words[0].strip():
        raise InputError("the query is empty; say in words what to look for")
    return words[0], words[1]


def _sizes(text: str | None) -> tuple[int, ...] | None:
    from evidex.errors import InputError

    if text is None:
        return None
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"window '{text}': give sides in pixels, e.g. 512,256,128") from None


def _check_outputs(targets: list[Path], scene: str, image: Path | None) -> None:
    from evidex.locating.writing import check_output

    _check_apart(targets, scene, "the scene")
    if image is not None:
        _check_apart(targets, str(image), "the example")
    for target in targets:
        check_output(target)


def _check_apart(targets: list[Path], source: str, what: str) -> None:
    """No map replaces what it is made from."""
    from evidex.errors import InputError

    for target in targets:
        if target.exists() and Path(source).exists() and target.samefile(source):
            raise InputError(f"'{target}' is {what} itself; name another place for its map")


def _opened(
    scene: str, gallery: str | None, model: str | None, reading: ReadOptions, targets: list[Path]
) -> tuple[Model, AbstractContextManager[View], tuple[TileOptions, ...]]:
    """The model, the scene to be looked at with it, and the ways in which an example may be read."""
    from evidex.encoders.model import load_model
    from evidex.errors import InputError
    from evidex.locating.view import view_of_file

    if gallery is None:
        from evidex.data.tiles import raster_driver

        if not Path(scene).exists():
            raise InputError(f"'{scene}' does not exist; give a scene, a folder of them, or a hit's id with --gallery")
        raster_driver(scene)  # what cannot be read is told before a model is loaded
        return load_model(model), view_of_file(scene, reading), ()
    from evidex.data.reading_notes import readings_of
    from evidex.locating.gallery_view import row_named, view_of_named
    from evidex.retrieval.gallery import Gallery

    opened = Gallery.open(gallery, None if model is None else load_model(model))
    row = row_named(opened, scene)
    _check_apart(targets, row.path, "the scene")
    return opened.model, view_of_named(opened, row), readings_of(opened.notes)


def _asked(
    model: Model, text: str | None, image: Path | None, reading: ReadOptions, ways: tuple[TileOptions, ...] = ()
) -> Asked:
    from evidex.data.discover import printable
    from evidex.data.items import read_example, read_whole
    from evidex.locating.asked import ask

    if image is None:
        return ask(model, text, "text")
    chosen = reading.tiles.bands is not None or reading.tiles.sensor is not None
    path = str(image)
    example = read_whole(path, reading) if chosen else read_example(path, ways, reading.max_pixels)
    return ask(model, example, "image", printable(image.name))


def _located(model: Model, view: View, asked: Asked, options: LocateOptions) -> Located:
    from evidex.cli.console import progress_bar
    from evidex.locating.locate import locate

    with progress_bar("Looking") as progress:
        return locate(model, view, asked, options, progress)


def _write(targets: list[Path], found: Located, view: View) -> None:
    from evidex.locating.writing import write_located

    for target in targets:
        write_located(target, found, view)
        say(f"written: {target}", err=True)


def _show(found: Located) -> None:
    from evidex.cli.terminal import Terminal

    terminal = Terminal.of_output()
    terminal.write(found.headline, _STYLES.get(found.finding.value, "bold red"))
    terminal.write(found.explanation)
    for line in _peak_lines(found):
        terminal.write(line)


def _peak_lines(found: Located) -> Iterator[str]:
    for rank, peak in enumerate(found.peaks[:_SHOWN_PEAKS], start=1):
        place = "" if peak.place is None else f"  {peak.place[1]:.5f}, {peak.place[0]:.5f}"
        yield f"{rank:3}  {peak.spot.score:.2f}  at {peak.spot.x:.0f}, {peak.spot.y:.0f}{place}"
    if len(found.peaks) > _SHOWN_PEAKS:
        yield f"… and {len(found.peaks) - _SHOWN_PEAKS} more; --json and --out list all"


def _folder(
    text: str | None,
    image: Path | None,
    folder: str,
    targets: list[Path],
    model: str | None,
    reading: ReadOptions,
    options: LocateOptions,
    as_json: bool,
) -> None:
    """All scenes of a folder, the likest first; a map of each goes into a folder, the peaks of all into one file."""
    from evidex.cli.console import print_json
    from evidex.encoders.model import load_model
    from evidex.locating.many import check_places, locate_files

    places = check_places(folder, targets)
    opened = load_model(model)
    asked = _asked(opened, text, image, reading)
    report = locate_files(opened, places, asked, options, reading, _progress_of)
    for skip in report.skipped:
        say(f"skipped {skip.name}: {skip.reason}", err=True)
    if as_json:
        print_json(report.json())
        return
    from evidex.cli.terminal import Terminal

    terminal = Terminal.of_output()
    terminal.write(report.headline, "bold")
    for doubts in dict.fromkeys(found.doubts for found in report.located if found.doubts):
        terminal.write(doubts)
    for found in report.located:  # a line each, however long: scripts cut them
        say(f"{found.heat.peak:.2f}  {found.scene}: {found.headline}")


def _progress_of(name: str) -> Any:
    from evidex.cli.console import progress_bar

    return progress_bar(visible(name))
