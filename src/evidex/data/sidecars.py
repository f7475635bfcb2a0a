"""Captions that lie beside the images: a ``captions.json`` in the images' folder or in the one above."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from evidex.data.discover import FoundFile, printable
from evidex.data.records import Record, Skip, read_caption_file
from evidex.documents import is_file
from evidex.errors import DataError

CAPTIONS = "captions.json"


def captions_beside(files: Iterable[FoundFile]) -> tuple[dict[str, tuple[str, ...]], list[Skip]]:
    """Captions by path, for those of ``files`` that have some; and the caption files that could not be read.

    `may_have_lost` tells whose captions these may hold.
    """
    by_folder: dict[str, dict[str, Record]] = {}
    captions: dict[str, tuple[str, ...]] = {}
    problems: list[Skip] = []
    for file in files:
        folder, name = os.path.split(file.path)
        above, folder_name = os.path.split(folder)
        for place, known_as in ((folder, name), (above, f"{folder_name}/{name}"), (above, name)):
            if place not in by_folder:
                by_folder[place] = _records(place, problems)
            record = by_folder[place].get(known_as)
            if record is not None:
                captions[file.path] = record.captions
                break
    return captions, problems


def may_have_lost(path: str, problems: Iterable[Skip]) -> bool:
    """Whether the captions of the file at ``path`` may stand in one of the caption files that could not be read."""
    folder = Path(path).parent
    beside = {printable(str(place / CAPTIONS)) for place in (folder, folder.parent)}
    return any(problem.name in beside for problem in problems)


def _records(folder: str, problems: list[Skip]) -> dict[str, Record]:
    path = Path(folder) / CAPTIONS
    if not is_file(path):
        return {}
    try:
        return {record.filename: record for record in read_caption_file(path).records}
    except DataError as error:
        problems.append(Skip(printable(str(path)), str(error)))
        return {}
