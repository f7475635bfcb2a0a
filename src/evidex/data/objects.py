"""What a detector found in each picture of a dataset: a file beside its captions, ``objects.json``.

{"images": {"a.jpg": [{"class": "ship", "score": 0.9, "box": [0.1, 0.2, 0.3, 0.4]}, …], "b.jpg": []}}

The classes are the fifteen of DOTA. A box is left, top, right and bottom as shares of the picture's sides. A picture in
which nothing was found has an empty list.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from evidex.documents import read_json
from evidex.errors import DataError

OBJECTS_FILE = "objects.json"
CLASSES = (
    "plane", "ship", "storage tank", "baseball diamond", "tennis court", "basketball court", "ground track field",
    "harbor", "bridge", "large vehicle", "small vehicle", "helicopter", "roundabout", "soccer ball field",
    "swimming pool",
)  # fmt: skip


@dataclass(frozen=True)
class FoundObject:
    """One object in a picture."""

    kind: str
    score: float
    """How sure the detector is, 0 to 1."""
    box: tuple[float, float, float, float]
    """Left, top, right and bottom, as shares of the picture's sides."""

    @property
    def area(self) -> float:
        left, top, right, bottom = self.box
        return (right - left) * (bottom - top)

    def to_json(self) -> dict[str, Any]:
        return {"class": self.kind, "score": self.score, "box": [round(side, 4) for side in self.box]}


def objects_document(found: Mapping[str, Iterable[FoundObject]]) -> dict[str, Any]:
    """What ``objects.json`` holds for the objects of each file name."""
    return {"images": {name: [each.to_json() for each in objects] for name, objects in found.items()}}


def read_objects(path: Path) -> dict[str, tuple[FoundObject, ...]]:
    """The objects of each file name, as the detector ordered them."""
    document = read_json(path, DataError)
    images = document.get("images") if isinstance(document, dict) else None
    if not isinstance(images, dict) or not all(isinstance(each, list) for each in images.values()):
        raise DataError(f"'{path}' does not map file names to lists of objects under 'images'; see docs/data.md")
    return {
        name: tuple(_object(entry, f"'{path}', {name}[{place}]") for place, entry in enumerate(entries))
        for name, entries in images.items()
    }


def _object(entry: Any, where: str) -> FoundObject:
    if not isinstance(entry, dict):
        raise DataError(f"{where} is no object; expected class, score and box")
    kind, score, box = (entry.get(key) for key in ("class", "score", "box"))
    if kind not in CLASSES:
        raise DataError(f"{where}: class {reprlib.repr(kind)} is not known; use one of {', '.join(CLASSES)}")
    if not _share(score):
        raise DataError(f"{where}: score {reprlib.repr(score)} is no number from 0 to 1; give the detector's")
    if not isinstance(box, list) or len(box) != 4 or not all(map(_share, box)) or box[0] > box[2] or box[1] > box[3]:
        raise DataError(
            f"{where}: box {reprlib.repr(box)} is no box; give left, top, right and bottom as shares of the sides"
        )
    left, top, right, bottom = map(float, box)
    return FoundObject(kind, float(score), (left, top, right, bottom))


def _share(value: Any) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and 0 <= value <= 1
