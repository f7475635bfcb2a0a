"""Datasets from folders and tars, broken ones too, and the real RSICD where it is at hand."""

import io
import json
import os
import tarfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from evidex.data.datasets import load_dataset
from evidex.errors import DataError, ImageError

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data"


def _jpeg(value: int) -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (8, 8), (value, 0, 0)).save(stream, "JPEG")
    return stream.getvalue()


def _captions(folder: Path, names: list[str], file: str = "captions.json") -> None:
    images = [
        {"filename": name, "split": "val" if index % 2 else "train", "captions": [f"caption {index}", "shared"]}
        for index, name in enumerate(names)
    ]
    (folder / file).write_text(json.dumps({"dataset": "mine", "images": images}))


def _tar(path: Path, content: dict[str, bytes]) -> None:
    with tarfile.open(path, "w") as tar:
        for name, data in content.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))


@pytest.fixture
def in_tars(tmp_path: Path) -> Path:
    _captions(tmp_path, ["a.jpg", "b.jpg", "c.jpg"])
    _tar(tmp_path / "one.tar", {"folder/a.jpg": _jpeg(10)})
    _tar(tmp_path / "two.tar", {"b.jpg": _jpeg(100), "c.jpg": _jpeg(200)})
    return tmp_path


def test_images_in_tars(in_tars: Path) -> None:
    dataset = load_dataset(in_tars, "train")
    assert [record.filename for record in dataset.records] == ["a.jpg", "c.jpg"]
    assert dataset.captions == ["caption 0", "shared", "caption 2", "shared"]
    np.testing.assert_array_equal(dataset.image_of_caption, [0, 0, 1, 1])
    assert abs(np.asarray(dataset.open_image(1))[0, 0, 0].item() - 200) < 5


@pytest.mark.parametrize("folder", ["", "images", "RSICD_images"])
def test_images_in_a_folder_and_a_captions_file_of_any_name(tmp_path: Path, folder: str) -> None:
    _captions(tmp_path, ["a.jpg"], "dataset_rsicd.json")
    (tmp_path / folder).mkdir(exist_ok=True)
    (tmp_path / folder / "a.jpg").write_bytes(_jpeg(77))
    for path in (tmp_path, tmp_path / "dataset_rsicd.json"):
        assert load_dataset(path, "train").open_image(0).size == (8, 8)


def test_a_subset_keeps_images_and_captions_together(in_tars: Path) -> None:
    subset = load_dataset(in_tars, "train").subset([1])
    assert subset.captions == ["caption 2", "shared"]
    assert abs(np.asarray(subset.open_image(0))[0, 0, 0].item() - 200) < 5


def test_wrong_paths_and_splits_are_named(in_tars: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        load_dataset(tmp_path / "nowhere", "train")
    with pytest.raises(DataError, match="no split 'test'; it has train, val"):
        load_dataset(in_tars, "test")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"holds no captions\.json"):
        load_dataset(tmp_path / "empty", "train")
    with pytest.raises(DataError, match=r"captions\.json' has no labels; label its images, or leave out role"):
        load_dataset(in_tars, "train", "labels")


def test_a_missing_image_is_named(in_tars: Path) -> None:
    _captions(in_tars, ["a.jpg", "b.jpg", "gone.jpg"])
    with pytest.raises(DataError, match=r"'gone\.jpg' is neither in a folder nor in a tar"):
        load_dataset(in_tars, "train")


@pytest.mark.parametrize("keep", [0.3, 0.5, 0.9])
def test_a_truncated_tar_is_named(in_tars: Path, keep: float) -> None:
    tar = in_tars / "two.tar"
    data = tar.read_bytes()
    tar.write_bytes(data[: int(1800 * keep) + 1])
    with pytest.raises(DataError, match=r"two\.tar"):
        load_dataset(in_tars, "train")


def test_a_file_that_is_no_tar_is_named(in_tars: Path) -> None:
    (in_tars / "one.tar").write_bytes(b"not a tar at all" * 100)
    with pytest.raises(DataError, match=r"one\.tar' is no readable tar"):
        load_dataset(in_tars, "train")


def test_the_same_name_in_two_tars_is_refused(in_tars: Path) -> None:
    _tar(in_tars / "three.tar", {"other/b.jpg": _jpeg(1)})
    with pytest.raises(DataError, match=r"'b\.jpg' occurs twice"):
        load_dataset(in_tars, "train")


def test_an_undecodable_image_is_named_when_opened(tmp_path: Path) -> None:
    _captions(tmp_path, ["a.jpg"])
    (tmp_path / "a.jpg").write_bytes(_jpeg(1)[:200])
    dataset = load_dataset(tmp_path, "train")
    with pytest.raises(ImageError, match=r"'a\.jpg'"):
        dataset.open_image(0)


@pytest.mark.data
@pytest.mark.skipif(not SHARED.exists(), reason="the RSICD data is not on this machine")
def test_all_of_rsicd_val_loads() -> None:
    dataset = load_dataset(SHARED / "rsicd", "val")
    assert len(dataset) == 1094
    assert len(dataset.captions) + sum("empty" in skip.reason for skip in dataset.skipped) == 5470
    sizes = {dataset.open_image(index).size for index in range(len(dataset))}
    assert sizes == {(224, 224)}


def test_pipes_among_the_files_of_a_dataset_are_not_waited_for(tmp_path: Path) -> None:
    entry = {"filename": "a.jpg", "split": "train", "captions": ["a river"]}
    (tmp_path / "captions.json").write_text(json.dumps({"images": [entry]}))
    os.mkfifo(tmp_path / "a.jpg")
    os.mkfifo(tmp_path / "images.tar")
    with pytest.raises(DataError, match="neither in a folder nor in a tar"):
        load_dataset(tmp_path, "train")
