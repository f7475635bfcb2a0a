"""Caption files in both forms, and every way they can be wrong."""

import json
from pathlib import Path
from typing import Any

import pytest

from evidex.data.records import Record, read_caption_file
from evidex.errors import DataError


def _write(path: Path, document: Any) -> Path:
    file = path / "captions.json"
    file.write_text(json.dumps(document) if not isinstance(document, str) else document)
    return file


def _image(**changes: Any) -> dict[str, Any]:
    return {"filename": "a.jpg", "split": "train", "captions": ["a plane ."], **changes}


def test_the_plain_form(tmp_path: Path) -> None:
    path = _write(tmp_path, {"dataset": "mine", "images": [_image(label="airport")]})
    content = read_caption_file(path)
    assert content.dataset == "mine"
    assert content.records == (Record("a.jpg", "train", ("a plane .",), "airport"),)


def test_the_authors_form(tmp_path: Path) -> None:
    entry = {"filename": "b.tif", "split": "val", "imgid": 3, "sentences": [{"raw": "x .", "tokens": []}, {"raw": "y"}]}
    content = read_caption_file(_write(tmp_path, {"images": [entry], "dataset": "rsicd"}))
    assert content.records == (Record("b.tif", "val", ("x .", "y")),)


@pytest.mark.parametrize("blank", ["", "  ", None])
def test_a_blank_label_is_none(tmp_path: Path, blank: str | None) -> None:
    path = _write(tmp_path, {"images": [_image(label=blank), _image(filename="b.jpg", label="port")]})
    assert [record.label for record in read_caption_file(path).records] == [None, "port"]
    labelled = read_caption_file(path, "labels")
    assert [(record.filename, record.captions, record.label) for record in labelled.records] == [("b.jpg", (), "port")]
    assert [(skip.name, skip.reason) for skip in labelled.skipped] == [("a.jpg", "no label; image skipped")]


def test_empty_captions_are_dropped_and_counted(tmp_path: Path) -> None:
    images = [_image(captions=["", " . ", "ok"]), _image(filename="b.jpg", captions=[" "])]
    content = read_caption_file(_write(tmp_path, {"images": images}))
    assert [record.filename for record in content.records] == ["a.jpg"]
    assert content.records[0].captions == ("ok",)
    assert [(skip.name, skip.reason) for skip in content.skipped] == [
        ("a.jpg", "2 empty captions dropped"),
        ("b.jpg", "1 empty caption dropped"),
        ("b.jpg", "no caption left; image skipped"),
    ]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("{", "not readable as JSON"),
        ([], "no list 'images'"),
        ({"images": {}}, "no list 'images'"),
        ({"images": [3]}, r"images\[0\] is no object"),
        ({"images": [_image(filename=None)]}, "has no 'filename'"),
        ({"images": [_image(split="")]}, "has no 'split'"),
        ({"images": [{"filename": "a.jpg", "split": "train"}]}, "neither 'captions' nor 'sentences'"),
        ({"images": [_image(captions="one")]}, "list of texts"),
        ({"images": [_image(captions=[1])]}, "list of texts"),
        ({"images": [{"filename": "a", "split": "s", "sentences": [{"tokens": []}]}]}, "field 'raw'"),
        ({"images": [_image(), _image()]}, "'a.jpg' occurs twice"),
        ({"images": [_image(filename="../../etc/passwd")]}, "leaves its folder"),
        ({"images": [_image(filename="/etc/passwd")]}, "leaves its folder"),
        ({"images": [_image(label=7)]}, "label 7 is no text"),
    ],
)
def test_a_wrong_file_is_one_clear_line(tmp_path: Path, document: Any, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        read_caption_file(_write(tmp_path, document))
    assert "\n" not in str(caught.value)
