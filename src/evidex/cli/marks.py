"""evidex marks: what was said of hits on the page, given out or forgotten."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evidex.cli.terminal import say


def command(
    what: Annotated[str | None, typer.Argument(help="'export' or 'delete'; without either they are counted.")] = None,
    file: Annotated[Path | None, typer.Argument(help="The JSON file to export to.")] = None,
    gallery: Annotated[str, typer.Option(help="Folder of the gallery.", metavar="PLACE")] = ...,  # type: ignore[assignment]
) -> None:
    """Count, export or delete the marks (right, wrong) that were put on hits of a gallery."""
    from collections import Counter

    from evidex.errors import InputError
    from evidex.files import check_target
    from evidex.retrieval.gallery_info import read_info
    from evidex.retrieval.marks import Marks
    from evidex.storage.objects import place_of

    if what not in (None, "export", "delete"):
        raise InputError(f"'{what}' is unknown; give export FILE or delete")
    if (what == "export") != (file is not None):
        raise InputError("give a file with export, and with nothing else: evidex marks export FILE --gallery DIR")
    place = place_of(gallery)
    marks = Marks.at(place)
    read_info(place)  # or it is no gallery
    if file is not None:
        check_target(file, "json")
        say(f"{marks.export(file)} marks written to {file}")
    elif what == "delete":
        say(f"{marks.delete()} marks deleted")
    else:
        held = marks.all()
        said = Counter(mark.says for mark in held)
        questions = len({mark.asked for mark in held})
        say(f"{len(held)} marks for {questions} questions: {said['right']} right, {said['wrong']} wrong")
    if marks.damaged:
        say(f"{marks.damaged} damaged lines are passed over")
