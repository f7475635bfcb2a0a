"""evidex search: ask a gallery in words or with an example image."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evidex.cli.band_choice import check_example_choice
from evidex.cli.options import (
    PRINTED,
    Collection,
    Copies,
    ExampleBands,
    ExampleSensor,
    Images,
    MaxCloud,
    Stac,
    Without,
    check_stac,
)

if TYPE_CHECKING:
    from datetime import datetime

    from PIL.Image import Image

    from evidex.cli.terminal import Terminal
    from evidex.data.footprints import Bounds
    from evidex.encoders.model import Model
    from evidex.retrieval.answers import Answer
    from evidex.retrieval.gallery import Gallery
    from evidex.retrieval.hits import Hit
    from evidex.retrieval.retriever import Retriever, Search

_STYLES = {"answered": "bold green", "refined": "bold yellow", "abstained": "bold red", "unknown": "bold"}
_PICTURE_COLUMNS = 18


def command(
    text: Annotated[str | None, typer.Argument(help="What to look for, in words.")] = None,
    gallery: Annotated[str, typer.Option(help="Folder of the gallery, or s3://BUCKET/PREFIX.", metavar="PLACE")] = ...,  # type: ignore[assignment]
    image: Images = None,
    without: Without = None,
    bands: ExampleBands = None,
    sensor: ExampleSensor = None,
    top: Annotated[int, typer.Option(min=1, help="How many hits.")] = 10,
    bbox: Annotated[str | None, typer.Option(help="Only hits that touch this box: west,south,east,north.")] = None,
    after: Annotated[str | None, typer.Option(help="Only images taken at this time or later, e.g. 2024-06-01.")] = None,
    before: Annotated[str | None, typer.Option(help="Only images taken earlier than this.")] = None,
    glob: Annotated[str | None, typer.Option(help="Only files whose path matches, e.g. '*/2024/*.tif'.")] = None,
    collection: Collection = None,
    max_cloud: MaxCloud = None,
    among: Annotated[str | None, typer.Option(help="Look among 'images' or 'texts'; default: images.")] = None,
    model: Annotated[str | None, typer.Option(help="The gallery's model, if it has moved.")] = None,
    cluster: Annotated[str | None, typer.Option(help="Scan on this Ray cluster: HOST:PORT, auto or local.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
    as_geojson: Annotated[bool, typer.Option("--geojson", help="Print the hits as GeoJSON features.")] = False,
    stac: Stac = None,
    sheet: Annotated[Path | None, typer.Option(help="Write a contact sheet of the hits, .png or .html.")] = None,
    open_sheet: Annotated[bool, typer.Option("--open", help="Show the contact sheet in the browser.")] = False,
    pictures: Annotated[bool, typer.Option(help="Draw hits small where the terminal can.")] = True,
    copies: Copies = False,
    why: Annotated[bool, typer.Option("--why", "--verbose", help="Say what the verdict stands on.")] = False,
) -> None:
    """Find images, tiles or captions, and be told how far to trust the answer."""
    from evidex.cli.console import print_json
    from evidex.retrieval.emptiness import with_reasons
    from evidex.retrieval.filters import Filters
    from evidex.retrieval.gallery import Gallery
    from evidex.retrieval.retriever import Retriever, Search
    from evidex.retrieval.warm_up import warm_up
    from evidex.server.memory import steady_heap

    steady_heap()
    images = image or []
    _check(text, images, among, {"--json": as_json, "--geojson": as_geojson, "--stac": stac == PRINTED})
    check_example_choice(bands, sensor, images)
    _check_targets(stac, sheet)
    filters = Filters(_box(bbox), _time(after, "after"), _time(before, "before"), glob, collection, max_cloud)
    opened = Gallery.open(gallery, _loaded(model))
    warming = warm_up(opened, "image" if images else "text", scans=cluster is None)
    examples = {path: path if bands is None and sensor is None else _rendered(path, bands, sensor) for path in images}
    how = Search("text", top, filters, among, copies=copies)  # type: ignore[arg-type]
    with Retriever(opened, cluster=cluster) as asked:
        found = _found(asked, text, examples, without or [], how)
    (answer,) = with_reasons([found], opened, filters, among)  # type: ignore[arg-type]
    sheet = _written(sheet, opened, answer, open_sheet)
    _write_stac(answer, stac)
    if as_geojson:
        print_json(answer.geojson())
    elif as_json:
        print_json(answer.json())
    elif stac != PRINTED:
        _show(opened, answer, pictures, why, warming)
    if open_sheet and sheet is not None:
        typer.launch(str(sheet.resolve()))


def _written(sheet: Path | None, gallery: Gallery, answer: Answer, shown: bool) -> Path | None:
    """The contact sheet, if one is wanted; one that is only to be shown lies where the system puts such things."""
    import tempfile

    from evidex.retrieval.contact_sheet import write_contact_sheet

    if sheet is None and shown:
        sheet = Path(tempfile.mkdtemp(prefix="evidex-")) / "hits.html"
    if sheet is not None:
        write_contact_sheet(gallery, answer, sheet)
    return sheet


def _loaded(model: str | None) -> Model | None:
    from evidex.encoders.model import load_model

    return None if model is None else load_model(model)


def _found(
    retriever: Retriever, text: str | None, examples: dict[Path, Path | Image], without: list[str], how: Search
) -> Answer:
    """``examples`` by their names: one that was rendered already has none."""
    from evidex.data.discover import printable
    from evidex.retrieval.composing import asked

    direction, query = asked(text, list(examples.values()), without)
    (answer,) = retriever.answer([query], replace(how, direction=direction))
    if any(not isinstance(example, Path) for example in examples.values()):
        names = [printable(str(path)) for path in examples]
        unwanted = "".join(f" -{word}" for word in without)
        answer = replace(answer, query=" + ".join([*names, *([text] if text else [])]) + unwanted)
    return answer


def _rendered(image: Path, bands: str | None, sensor: str | None) -> Image:
    """The example with the chosen bands or sensor, as evidex index would show it."""
    from evidex.cli.index import whole_numbers
    from evidex.data.items import ReadOptions, read_whole
    from evidex.data.rendering import TileOptions

    return read_whole(str(image), ReadOptions(TileOptions(bands=whole_numbers(bands), sensor=sensor)))


def _write_stac(answer: Answer, target: str | None) -> None:
    from evidex.cli.console import print_json
    from evidex.files import write_json_atomic
    from evidex.retrieval.item_collection import item_collection

    if target == PRINTED:
        print_json(item_collection(answer))
    elif target is not None:
        write_json_atomic(Path(target), item_collection(answer))


def _check(text: str | None, images: list[Path], among: str | None, formats: dict[str, bool]) -> None:
    """Refuse what cannot be meant, before anything is loaded."""
    from evidex.data.discover import printable
    from evidex.documents import open_regular
    from evidex.errors import ImageError, InputError

    if among not in (None, "images", "texts"):
        raise InputError(f"among '{among}' is unknown; use images or texts")
    if text is None and not images:
        raise InputError("there is no query; say in words what to look for, or give an example with --image")
    if text is not None and not text.strip():
        raise InputError("the query is empty; say in words what to look for")
    for image in images:
        with open_regular(image, ImageError, printable(str(image))):
            pass  # a pipe, a folder or nothing at all is told before a model is loaded
    printed = [name for name, wanted in formats.items() if wanted]
    if len(printed) > 1:
        raise InputError(f"{printed[0]} and {printed[1]} are both given; choose one")


def _check_targets(stac: str | None, sheet: Path | None) -> None:
    """Refuse files that cannot be written, before anything is loaded."""
    from evidex.retrieval.contact_sheet import check_sheet

    check_stac(stac)
    if sheet is not None:
        check_sheet(sheet)


def _show(gallery: Gallery, answer: Answer, pictures: bool, why: bool, warming: float) -> None:
    from evidex.cli.hit_table import Pictures, hit_lines
    from evidex.cli.terminal import Terminal

    terminal = Terminal.of_output()
    terminal.write(answer.headline, _STYLES[answer.standing.level.tone])
    terminal.write(answer.explanation)
    if why:
        _say_why(terminal, answer)
    if answer.guarantee:
        terminal.write(f"Guarantee: {answer.guarantee}.", "dim")
    if not answer.hits:
        return
    drawn = pictures and terminal.pictures
    shown = Pictures(lambda hit: _drawn(gallery, hit), _PICTURE_COLUMNS) if drawn else None
    terminal.stream.writelines(f"{line}\n" for line in hit_lines(terminal, answer, shown))
    if answer.apart_line is not None:
        terminal.write(answer.apart_line)
    new = answer.refinement is not None and answer.refinement.entered
    terminal.write(
        f"{answer.searched} searched, {answer.timings.total:.0f} ms after {warming:.1f} s of warm-up"
        + ("" if why else "; --why says what the verdict stands on")
        + ("; + = new after it was asked again" if new else ""),
        "dim",
    )


def _say_why(terminal: Terminal, answer: Answer) -> None:
    for line in answer.details:
        terminal.write(f"- {line}")
    percentile = "" if answer.percentile is None else f", percentile {answer.percentile:.2f}"
    reasons = ", ".join(answer.standing.reasons) or "no doubt"
    terminal.write(f"- {answer.verdict} ({reasons}), uncertainty {answer.uncertainty:.4f}{percentile}.", "dim")


def _drawn(gallery: Gallery, hit: Hit) -> list[str]:
    from evidex.cli.half_blocks import half_blocks
    from evidex.retrieval.contact_sheet import thumbnail

    picture = thumbnail(gallery, hit, 96)
    return [" " * _PICTURE_COLUMNS] if picture is None else half_blocks(picture, _PICTURE_COLUMNS)


def _box(text: str | None) -> Bounds | None:
    from evidex.data.footprints import Bounds
    from evidex.errors import InputError

    if text is None:
        return None
    try:
        west, south, east, north = (float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"bbox '{text}': give west,south,east,north in degrees, e.g. 13.0,52.3,13.8,52.7") from None
    return Bounds(west, south, east, north)


def _time(text: str | None, option: str) -> datetime | None:
    from evidex.data.acquired import parse_time
    from evidex.errors import InputError

    if text is None:
        return None
    time = parse_time(text)
    if time is None:
        raise InputError(f"{option} '{text}' is no time; write 2024-06-01 or 2024-06-01T12:00:00Z")
    return time
