"""Queries to calibrate with, from a file or a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from evidex.data.datasets import load_dataset
from evidex.documents import read_json, read_text
from evidex.errors import DataError
from evidex.retrieval.certainty.calibrating import KnownQuery
from evidex.retrieval.queries import Direction


def read_queries(path: Path) -> dict[Direction, list[KnownQuery]]:
    """A text file, one query a line (# begins a comment); or a JSON list of objects.

    An object has ``text`` or ``image`` (a path, relative to the file) and may have ``relevant``: ids, paths or file
    names of rows that answer it.
    """
    if path.suffix.lower() != ".json":
        lines = [line.strip() for line in read_text(path, DataError).splitlines()]
        return {"text": [KnownQuery(line) for line in lines if line and not line.startswith("#")]}
    entries = read_json(path, DataError)
    if not isinstance(entries, list):
        raise DataError(f"'{path}' holds no list; give objects with text or image, and relevant")
    known: dict[Direction, list[KnownQuery]] = {"text": [], "image": []}
    for number, entry in enumerate(entries):
        direction, query = _query(entry, f"'{path}', entry {number}", path.parent)
        known[direction].append(query)
    return known


def dataset_queries(path: Path, split: str, rng: np.random.Generator) -> dict[Direction, list[KnownQuery]]:
    """One caption an image of a dataset's split, with the image's file name as what answers it.

    One, because captions of one image are right or wrong together and a guarantee counts independent queries.
    """
    dataset = load_dataset(path, split)
    return {
        "text": [
            KnownQuery(
                record.captions[int(rng.integers(len(record.captions)))], frozenset([Path(record.filename).name])
            )
            for record in dataset.records
        ]
    }


def _query(entry: Any, where: str, folder: Path) -> tuple[Direction, KnownQuery]:
    if not isinstance(entry, dict) or ("text" in entry) == ("image" in entry):
        raise DataError(f"{where}: give an object with either text or image")
    relevant = entry.get("relevant", [])
    if not isinstance(relevant, list) or not all(isinstance(name, str) for name in relevant):
        raise DataError(f"{where}: relevant must be a list of ids, paths or file names")
    value = entry.get("text", entry.get("image"))
    if not isinstance(value, str) or not value.strip():
        raise DataError(f"{where}: the query is empty or no text")
    if "text" in entry:
        return "text", KnownQuery(value, frozenset(relevant))
    return "image", KnownQuery(folder / value, frozenset(relevant))
