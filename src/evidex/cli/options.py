"""Options with long help, so that the commands that have them fit on a screen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

PRINTED = "-"
"""What ``--stac`` is without a file."""

Places = Annotated[
    list[str],
    typer.Argument(
        help="Folders, files or patterns: JPEG, PNG, TIFF, WebP, JPEG 2000, BMP, GIF; "
        "or a STAC catalog, .json or http(s)."
    ),
]
Model = Annotated[
    str | None, typer.Option(help="Model file, run folder or hub name; by default the gallery's, or the compact one.")
]
Tile = Annotated[
    int | None,
    typer.Option(
        help="Side of the tiles that TIFFs and JPEG 2000 of more than two tiles are cut into, by default 512; "
        "0 leaves them whole. Other pictures are never cut."
    ),
]
Sensor = Annotated[
    str | None,
    typer.Option(help="Bands, and black and white by reflectance, of sentinel-2, landsat-8, landsat-9 or planetscope."),
]
Images = Annotated[
    list[Path] | None, typer.Option(help="An example image to look for, alone or with words; may be repeated.")
]
Without = Annotated[
    list[str] | None,
    typer.Option(help="What should not be there, best a kind of scene; '-word' in the words does the same."),
]
Copies = Annotated[bool, typer.Option("--copies", help="Show every copy of a picture; otherwise each picture once.")]
ExampleSensor = Annotated[
    str | None, typer.Option(help="What took the example; by default it is read as the gallery's scenes are.")
]
ExampleBands = Annotated[
    str | None, typer.Option(help="Bands of the example shown as red, green, blue, e.g. 4,3,2; or one band.")
]
Asset = Annotated[str | None, typer.Option(help="Which asset of a catalog's items; by default what shows most.")]
Collection = Annotated[str | None, typer.Option(help="Only images of this STAC collection.")]
MaxCloud = Annotated[float | None, typer.Option(help="Only images with at most so many percent of clouds.")]
Stac = Annotated[
    str | None,
    typer.Option(metavar="[FILE]", help="Write the hits as a STAC ItemCollection; without a FILE, print it."),
]


def completed(words: Sequence[str]) -> list[str]:
    """The command line with ``--stac -`` for a ``--stac`` that no file follows, which typer has no way to say."""
    after = [*words[1:], None]
    return [
        part
        for word, following in zip(words, after, strict=False)
        for part in ([word, PRINTED] if word == "--stac" and _is_option(following) else [word])
    ]


def _is_option(word: str | None) -> bool:
    return word is None or (word.startswith("-") and word != PRINTED)


def check_stac(target: str | None) -> None:
    """Refuse a file that cannot be written, and a question that was taken for its name."""
    from evidex.errors import InputError
    from evidex.files import check_target

    if target is not None and target != PRINTED:
        if Path(target).suffix.lower() not in (".json", ".geojson"):
            raise InputError(f"--stac '{target[:60]}': name a .json file, or put --stac last to print the collection")
        check_target(Path(target), "json")
