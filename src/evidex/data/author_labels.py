"""Scene labels where a caption file in the authors' form has none: lists of names beside it, or the names themselves.

RSICD comes with a folder ``txtclasses_rsicd`` that has one text file a class, each with the names of its images; most
of its images and all of RSITMD's are also named after their class (``airport_1.jpg``), the others are only numbered.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from evidex.documents import is_folder, read_text
from evidex.errors import DataError, InputWarning

_FOLDERS = ("classes", "txtclasses", "txtclasses_rsicd")
_NAMED = re.compile(r"([A-Za-z]+)_\d+\.\w+")
_SEVERAL_WORDS = {
    "bareland": "bare land",
    "baseballfield": "baseball field",
    "denseresidential": "dense residential",
    "mediumresidential": "medium residential",
    "railwaystation": "railway station",
    "sparseresidential": "sparse residential",
    "storagetanks": "storage tanks",
}  # RSICD's classes that are written together


def author_labels(folder: Path, filenames: Iterable[str]) -> dict[str, str]:
    """The labels of the images that have one, by file name: as the lists in ``folder`` say, else as the name does.

    Names tell a class only where they begin with different words: those of ``ucm_1.tif``, ``ucm_2.tif`` say nothing.
    """
    names = list(filenames)
    words = {name: match[1] for name in names if (match := _NAMED.fullmatch(PurePosixPath(name).name))}
    found = {name: _spelt(word) for name, word in words.items()} if len(set(words.values())) > 1 else {}
    listed = _listed(folder)
    return found | {name: listed[place] for name in names if (place := PurePosixPath(name).name) in listed}


def _listed(folder: Path) -> dict[str, str]:
    """Image → class, from the lists; an image that two of them name has none."""
    lists = [path for name in _FOLDERS if is_folder(folder / name) for path in sorted((folder / name).glob("*.txt"))]
    labels: dict[str, str] = {}
    double: set[str] = set()
    for path in lists:
        label = _spelt(path.stem)
        for line in read_text(path, DataError).splitlines():
            name = PurePosixPath(line.strip()).name
            if name and labels.setdefault(name, label) != label:
                double.add(name)
    if double:
        warnings.warn(
            f"'{folder}': {len(double)} images are in the lists of two classes, such as '{min(double)}'; they get no "
            "label from there",
            InputWarning,
            stacklevel=2,
        )
    return {name: label for name, label in labels.items() if name not in double}


def _spelt(word: str) -> str:
    return _SEVERAL_WORDS.get(word.lower(), word.lower())
