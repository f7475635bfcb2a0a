"""The authors' caption files have no labels: the lists beside them and the names of the files do."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from evidex.data.author_labels import author_labels
from evidex.data.datasets import load_dataset
from evidex.data.records import read_caption_file
from evidex.errors import InputWarning
from evidex.evaluation.absent import removed_class


def _authors_file(folder: Path, names: list[str]) -> Path:
    entries = [{"filename": name, "split": "test", "sentences": [{"raw": f"a {name} ."}]} for name in names]
    path = folder / "dataset_rsicd.json"
    path.write_text(json.dumps({"images": entries, "dataset": "rsicd"}))
    for name in names:
        Image.new("RGB", (4, 4)).save(folder / name)
    return path


def test_names_tell_the_class_where_they_differ(tmp_path: Path) -> None:
    found = author_labels(tmp_path, ["airport_1.jpg", "in/storagetanks_12.jpg", "00001.jpg", "a_b_3.jpg"])
    assert found == {"airport_1.jpg": "airport", "in/storagetanks_12.jpg": "storage tanks"}
    assert author_labels(tmp_path, ["ucm_1.tif", "ucm_2.tif"]) == {}


def test_the_authors_lists_come_first(tmp_path: Path) -> None:
    lists = tmp_path / "txtclasses_rsicd"
    lists.mkdir()
    (lists / "playfields.txt").write_text("00001.jpg\r\nairport_1.jpg\n\n")
    (lists / "BareLand.txt").write_text("bareland_1.jpg\nboth_1.jpg\n")
    (lists / "Desert.txt").write_text("both_1.jpg\n")
    with pytest.warns(InputWarning, match=r"1 images .*'both_1\.jpg'"):
        found = author_labels(tmp_path, ["00001.jpg", "airport_1.jpg", "bareland_1.jpg", "00002.jpg", "both_1.jpg"])
    expected = {"00001.jpg": "playfields", "airport_1.jpg": "playfields", "bareland_1.jpg": "bare land"}
    assert found == expected | {"both_1.jpg": "both"}


def test_a_class_can_be_removed_in_the_authors_dataset(tmp_path: Path) -> None:
    _authors_file(tmp_path, ["airport_1.jpg", "airport_2.jpg", "river_1.jpg", "00003.jpg"])
    dataset = load_dataset(tmp_path, "test")
    labels = [record.label for record in dataset.records]
    assert labels == ["airport", "airport", "river", None]
    found = removed_class(np.eye(4, dtype=np.float32), labels, labels, 0.1)
    assert (found.absent, found.auroc["vacuity"]) == (3, 1.0)


def test_the_plain_form_has_the_labels_that_it_states(tmp_path: Path) -> None:
    images = [{"filename": f"{word}_1.jpg", "split": "train", "captions": ["x"]} for word in ("north", "south")]
    path = tmp_path / "captions.json"
    path.write_text(json.dumps({"images": images}))
    assert [record.label for record in read_caption_file(path).records] == [None, None]
