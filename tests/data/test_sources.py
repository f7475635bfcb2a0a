"""Several datasets to learn from: their roles, their names, their table, and what is wrong with them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

from evidex.config import DataConfig, SourceConfig, load_config
from evidex.data.datasets import joined
from evidex.data.sources import load_sources, markdown
from evidex.errors import ConfigError, DataError, EvidexError


def write(folder: Path, name: str, count: int, *, captions: bool = True, val: int = 0) -> Path:
    """A dataset of ``count`` plain pictures, of which ``val`` are for val, with labels and perhaps captions."""
    folder.mkdir(parents=True)
    images = []
    for number in range(count):
        file = f"{name}{number}.png"
        Image.new("RGB", (8, 8), (number * 7 % 256, 90, 30)).save(folder / file)
        entry = {
            "filename": file,
            "split": "val" if number < val else "train",
            "label": ["river", "dense forest"][number % 2],
        }
        images.append(entry | ({"captions": [f"{name} number {number} .", "a river ."]} if captions else {}))
    document = {"dataset": name, "images": images}
    (folder / ("captions.json" if captions else "labels.json")).write_text(json.dumps(document))
    return folder


@pytest.fixture
def config(tmp_path: Path) -> DataConfig:
    write(tmp_path / "a", "first", 12, val=2)
    write(tmp_path / "b", "second", 40)
    write(tmp_path / "c", "marked", 40, captions=False)
    return DataConfig(
        path=str(tmp_path / "a"),
        source=(
            SourceConfig(str(tmp_path / "c"), role="labels", terms="research use"),
            SourceConfig(str(tmp_path / "b"), weight=2.0),
        ),
    )


def test_each_source_has_its_role_and_a_val_part_of_its_own(config: DataConfig) -> None:
    sources = load_sources(config)
    assert [source.name for source in sources.all] == ["first", "second", "marked"]
    rows = [source.row() for source in sources.all]
    assert [row["val_drawn"] for row in rows] == [False, True, True]
    assert [row["images"] + row["val_images"] for row in rows] == [12, 40, 40]
    assert [row["captions"] for row in rows] == [20, 2 * rows[1]["images"], 0]
    assert [row["terms"] for row in rows] == ["not stated", "not stated", "research use"]
    assert {record.label for record in sources.labels[0].train.records} == {"river", "dense forest"}
    assert all(record.captions == () for record in sources.labels[0].train.records)


def test_the_table_has_a_line_a_source(config: DataConfig) -> None:
    rows = [source.row() for source in load_sources(config).all]
    measured = [rows[0] | {"val_rsum": 151.59}, rows[1], rows[2] | {"val_names": 0.694}]
    lines = markdown(measured).splitlines()
    assert len(lines) == 5
    assert len({line.count("|") for line in lines}) == 1
    assert "| RSUM 151.6 |" in lines[2]
    assert "| 69% of names |" in lines[4]
    assert "a tenth, by the hash of the file name" in lines[3]


def test_joined_datasets_keep_images_and_captions_together(config: DataConfig) -> None:
    parts = [source.train for source in load_sources(config).captions]
    both = joined(parts)
    assert joined(parts[:1]) is parts[0]
    assert both.captions == parts[0].captions + parts[1].captions
    place = len(parts[0]) + 3
    assert both.image_bytes(place) == parts[1].image_bytes(3)
    assert [both.captions[i] for i in (both.image_of_caption == place).nonzero()[0]] == list(
        parts[1].records[3].captions
    )


def test_two_sources_of_one_name_are_told_apart(config: DataConfig) -> None:
    again = DataConfig(path=config.path, source=(SourceConfig(config.path), SourceConfig(config.path)))
    assert [source.name for source in load_sources(again).all] == ["first", "first 2", "first 3"]


def test_captions_without_pictures_are_read_in_all_forms(config: DataConfig, tmp_path: Path) -> None:
    texts = tmp_path / "texts.json"
    texts.write_text(json.dumps({"texts": [{"label": "x", "captions": ["a quarry .", " ", "a golf course ."]}]}))
    named = DataConfig(path=config.path, texts=(str(texts), f"{config.path}/captions.json"))
    found = load_sources(named).texts
    assert found[:2] == ("a quarry .", "a golf course .")
    assert "first number 5 ." in found
    assert "first number 1 ." not in found, "val did not teach"
    texts.write_text("{}")
    with pytest.raises(DataError, match="neither a list 'texts' nor 'images'"):
        load_sources(named)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("", r"data\.path is empty; name the folder"),
        ("[[data.source]]\npath = 'c'\nrole = 'labels'", r"no data\.source has captions"),
        ("[[data.source]]\npath = 'c'", "neither 'captions' nor 'sentences'"),
        ("[[data.source]]\npath = 'nowhere'", "does not exist"),
        ("[[data.source]]\npath = 'a'\nweight = 0.0", r"weight = 0\.0; give a number above 0"),
        ("[[data.source]]\npath = 'a'\nrole = 'pictures'", "choose one of 'captions', 'labels'"),
        ("[[data.source]]\nweight = 1.0", r"data\.source\[0\]: 'path' is missing"),
        ("data.source = 'a'", "expected a list"),
        ("data.texts = 'a'", "expected a list"),
        ("data.batches = 'one'", "choose one of 'mixed', 'one source'"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("config")
def test_what_is_wrong_is_one_line(tmp_path: Path, lines: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("run.toml").write_text(lines)
    with pytest.raises(EvidexError, match=message) as caught:
        load_sources(load_config(Path("run.toml")).data)
    assert "\n" not in str(caught.value)


def test_a_single_path_stays_what_it_was(config: DataConfig) -> None:
    alone = load_sources(DataConfig(path=config.path))
    assert [len(alone.captions), alone.labels, alone.texts] == [1, (), ()]
    with pytest.raises(ConfigError):
        load_sources(DataConfig())
