"""Captions that lie beside the images are found there, and a broken caption file costs only its captions."""

from __future__ import annotations

import json
from pathlib import Path

from evidex.data.discover import FoundFile
from evidex.data.sidecars import captions_beside


def _captions(folder: Path, **captions: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    images = [{"filename": name, "split": "x", "captions": [text]} for name, text in captions.items()]
    (folder / "captions.json").write_text(json.dumps({"images": images}))


def _file(path: Path) -> FoundFile:
    return FoundFile(str(path), 1, 1)


def test_captions_are_found_in_the_folder_and_in_the_one_above(tmp_path: Path) -> None:
    _captions(tmp_path / "a", **{"x.png": "a river", "images/y.png": "a lake", "z.png": "a field"})
    files = [tmp_path / "a" / "x.png", tmp_path / "a" / "images" / "y.png", tmp_path / "a" / "images" / "z.png"]
    lonely = tmp_path / "a" / "deep" / "er" / "x.png"  # two folders down is no neighbour
    found, problems = captions_beside([_file(path) for path in (*files, lonely)])
    assert found == {str(files[0]): ("a river",), str(files[1]): ("a lake",), str(files[2]): ("a field",)}
    assert problems == []


def test_the_nearest_captions_win(tmp_path: Path) -> None:
    _captions(tmp_path, **{"x.png": "from above", "images/x.png": "from above"})
    _captions(tmp_path / "images", **{"x.png": "from beside"})
    found, _ = captions_beside([_file(tmp_path / "images" / "x.png")])
    assert list(found.values()) == [("from beside",)]


def test_the_folder_above_tells_files_of_one_name_apart(tmp_path: Path) -> None:
    _captions(tmp_path, **{"x.png": "any", "left/x.png": "left", "right/x.png": "right"})
    sides = [tmp_path / "left" / "x.png", tmp_path / "right" / "x.png", tmp_path / "other" / "x.png"]
    found, _ = captions_beside([_file(path) for path in sides])
    assert [found[str(path)] for path in sides] == [("left",), ("right",), ("any",)]


def test_a_broken_caption_file_is_named_once_and_costs_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "captions.json").write_text("{")
    _captions(tmp_path / "whole", **{"x.png": "a river"})
    files = [tmp_path / "broken" / "a.png", tmp_path / "broken" / "b.png", tmp_path / "whole" / "x.png"]
    found, problems = captions_beside([_file(path) for path in files])
    assert found == {str(files[2]): ("a river",)}
    assert [Path(problem.name).parent.name for problem in problems] == ["broken"]
