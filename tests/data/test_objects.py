"""A file of detected objects: what is read of it, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from evidex.data.objects import FoundObject, objects_document, read_objects
from evidex.errors import DataError

SHIP = FoundObject("ship", 0.9, (0.1, 0.2, 0.3, 0.4))
TANK = FoundObject("storage tank", 0.5, (0.5, 0.5, 0.9, 0.9))


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "objects.json"
    path.write_text(json.dumps(objects_document({"a.jpg": [SHIP, TANK], "b.jpg": []})))
    assert read_objects(path) == {"a.jpg": (SHIP, TANK), "b.jpg": ()}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"class": "zebra"}, "zebra"),
        ({"score": 1.5}, "1.5"),
        ({"score": True}, "True"),
        ({"box": [0.1, 0.2, 0.05, 0.4]}, "no box"),
        ({"box": [0, 0, 300, 200]}, "shares"),
        ({"box": None}, "no box"),
    ],
)
def test_an_object_that_is_none_is_told_with_its_place(change: dict[str, Any], words: str, tmp_path: Path) -> None:
    path = tmp_path / "objects.json"
    path.write_text(json.dumps({"images": {"a.jpg": [SHIP.to_json(), SHIP.to_json() | change]}}))
    with pytest.raises(DataError, match=rf"a\.jpg\[1\].*{words}"):
        read_objects(path)


@pytest.mark.parametrize("text", ["[]", '{"images": []}', '{"images": {"a.jpg": 3}}'])
def test_another_document_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "objects.json"
    path.write_text(text)
    with pytest.raises(DataError, match="file names"):
        read_objects(path)
