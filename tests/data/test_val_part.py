"""A val part where the authors have none: by the name of the file alone, and said."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from PIL import Image

from evidex.config import DataConfig
from evidex.data.datasets import load_dataset
from evidex.data.records import Record
from evidex.data.sources import load_sources
from evidex.data.val_part import is_drawn, with_val_part
from evidex.errors import DataError


def _records(split: str, count: int) -> tuple[Record, ...]:
    return tuple(Record(f"{split}_{number}.jpg", split, ("a river .",)) for number in range(count))


def test_the_rule_is_the_one_that_is_written_down() -> None:
    names = [f"ucm_{number}.jpg" for number in range(2000)]
    drawn = [name for name in names if int(hashlib.sha256(name.encode()).hexdigest()[:8], 16) % 10 == 0]
    assert [name for name in names if is_drawn(name)] == drawn
    assert 150 < len(drawn) < 250


def test_what_trains_gives_up_a_tenth_and_the_test_part_nothing() -> None:
    records = _records("train", 300) + _records("test", 50)
    found = with_val_part(records)
    assert [record.filename for record in found] == [record.filename for record in records]
    assert [record.split for record in found] == [
        "val" if record.split == "train" and is_drawn(record.filename) else record.split for record in records
    ]
    assert sum(record.split == "test" for record in found) == 50


@pytest.mark.parametrize("other", ["val", "validation", "dev", "check"])
def test_a_dataset_that_somebody_divided_stays_as_it_is(other: str) -> None:
    records = _records("train", 300) + _records(other, 5)
    assert with_val_part(records) is records


def test_no_dataset_loses_all_that_trains() -> None:
    drawn = next(f"{number}.jpg" for number in range(100) if is_drawn(f"{number}.jpg"))
    records = (Record(drawn, "train", ("a river .",)),)
    assert with_val_part(records) is records
    assert with_val_part(()) == ()


def test_a_loaded_split_says_that_it_was_drawn(tmp_path: Path) -> None:
    names = [f"{number}.png" for number in range(30)]
    for name in names:
        Image.new("RGB", (4, 4)).save(tmp_path / name)
    images = [{"filename": name, "split": "train", "captions": ["a river ."]} for name in names]
    (tmp_path / "captions.json").write_text(json.dumps({"images": images}))
    train, val = (load_dataset(tmp_path, split) for split in ("train", "val"))
    assert {record.filename for record in val.records} == {name for name in names if is_drawn(name)} != set()
    assert {record.filename for record in train.records} == {name for name in names if not is_drawn(name)}
    assert (train.drawn, val.drawn, val.subset([0]).drawn) == (True, True, True)
    images[3]["split"] = "val"
    (tmp_path / "captions.json").write_text(json.dumps({"images": images}))
    assert [len(load_dataset(tmp_path, split)) for split in ("train", "val")] == [29, 1]
    assert not load_dataset(tmp_path, "train").drawn
    with pytest.raises(DataError, match="no split 'test'; it has train, val"):
        load_dataset(tmp_path, "test")


def test_who_measures_elsewhere_trains_with_all_there_is(tmp_path: Path) -> None:
    images = [{"filename": f"{number}.jpg", "split": "train", "captions": ["a lake ."]} for number in range(60)]
    images += [{"filename": f"t{number}.jpg", "split": "test", "captions": ["a lake ."]} for number in range(9)]
    for image in images:
        Image.new("RGB", (4, 4)).save(tmp_path / str(image["filename"]))
    (tmp_path / "captions.json").write_text(json.dumps({"dataset": "d", "images": images}))
    counted = {
        val: len(load_sources(DataConfig(path=str(tmp_path), val_split=val)).captions[0].train)
        for val in ("val", "test")
    }
    assert counted["val"] < counted["test"] == 60
