"""A split is decoded once: the same pictures come from the file, others never do."""

from __future__ import annotations

import errno
import fcntl
import gc
import json
import os
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from evidex.data import pixels
from evidex.data.datasets import Dataset, load_dataset
from evidex.data.pixels import content_digests, make_room, prepared_pixels
from evidex.errors import ImageError
from tests.retrieval.archive import write_images

SIZE = 8


class Preparing:
    """Shrinks pictures, and counts how many it was given."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, image: Image.Image) -> np.ndarray:
        self.count += 1
        return np.asarray(image.resize((SIZE, SIZE))).transpose(2, 0, 1)


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    paths = write_images(tmp_path / "a", 5)
    entries = [{"filename": path.name, "split": "train", "captions": ["a river"]} for path in paths]
    (tmp_path / "a" / "captions.json").write_text(json.dumps({"images": entries}))
    return load_dataset(tmp_path / "a", "train")


def test_pictures_are_prepared_once_and_in_order(dataset: Dataset, tmp_path: Path) -> None:
    prepare = Preparing()
    pixels = prepared_pixels(dataset, prepare, SIZE, "small", directory=tmp_path)
    expected = [prepare(dataset.open_image(index)) for index in range(len(dataset))]
    assert np.array_equal(pixels, np.stack(expected))
    again = Preparing()
    assert np.array_equal(prepared_pixels(dataset, again, SIZE, "small", directory=tmp_path), pixels)
    assert again.count == 0
    with pytest.raises(ValueError, match="read-only"):
        pixels[0] = 0


def test_another_preparation_or_another_picture_is_prepared_anew(dataset: Dataset, tmp_path: Path) -> None:
    prepared_pixels(dataset, Preparing(), SIZE, "small", directory=tmp_path)
    other = Preparing()
    prepared_pixels(dataset, other, SIZE, "small, turned", directory=tmp_path)
    assert other.count == 5
    before = content_digests(dataset)
    Image.new("RGB", (9, 9)).save(tmp_path / "a" / dataset.records[2].filename)
    changed = Preparing()
    pixels = prepared_pixels(dataset, changed, SIZE, "small", directory=tmp_path)
    assert changed.count == 5
    assert not pixels[2].any()
    assert [old == new for old, new in zip(before, content_digests(dataset), strict=True)] == [1, 1, 0, 1, 1]


def test_a_picture_that_cannot_be_read_leaves_no_half_file_behind(dataset: Dataset, tmp_path: Path) -> None:
    (tmp_path / "a" / dataset.records[3].filename).write_bytes(b"no picture")
    with pytest.raises(ImageError, match=dataset.records[3].filename):
        prepared_pixels(dataset, Preparing(), SIZE, "small", directory=tmp_path)
    assert list((tmp_path / "pixels").iterdir()) == []


def test_what_was_used_least_recently_goes_first_and_what_is_in_use_stays(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = 5 * 3 * SIZE * SIZE
    monkeypatch.setattr(pixels, "MOST_BYTES", 3 * size)
    folder = tmp_path / "pixels"

    def kept() -> set[str]:
        return {path.name for path in folder.glob("*.u8")}

    first = prepared_pixels(dataset, Preparing(), SIZE, "first", directory=tmp_path)
    (own,) = kept()
    os.utime(folder / own, (0, 0))  # the oldest, but in use
    for age, name in ((300, "old"), (100, "young"), (200, "middle")):
        (folder / f"{name}.u8").write_bytes(bytes(size))
        os.utime(folder / f"{name}.u8", (time.time() - age,) * 2)
    (folder / ".lost.1").write_bytes(b"of a run that was killed")
    os.utime(folder / ".lost.1", (time.time() - 100_000,) * 2)
    (folder / ".made.2").write_bytes(b"of a run that is at work")
    prepared_pixels(dataset, Preparing(), SIZE, "second", directory=tmp_path)
    assert {own, "young.u8"} < kept()
    assert len(kept()) == 3
    assert {path.name for path in folder.glob(".*")} == {".made.2"}
    again = Preparing()
    assert np.array_equal(prepared_pixels(dataset, again, SIZE, "first", directory=tmp_path), first)
    assert again.count == 0
    assert (folder / own).stat().st_mtime > time.time() - 50  # used, so it is no old one any more


def _take(path: Path) -> bool:
    """Whether nobody has mapped it."""
    try:
        with path.open("rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def test_what_another_run_has_mapped_stays(dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = 5 * 3 * SIZE * SIZE
    monkeypatch.setattr(pixels, "MOST_BYTES", 2 * size)
    folder = tmp_path / "pixels"
    folder.mkdir()
    for age, name in ((300, "mapped"), (200, "old"), (100, "young")):
        (folder / f"{name}.u8").write_bytes(bytes(size))
        os.utime(folder / f"{name}.u8", (time.time() - age,) * 2)
    with (folder / "mapped.u8").open("rb") as stream:
        fcntl.flock(stream, fcntl.LOCK_SH)
        mapped = np.memmap(stream, np.uint8, "r")
    first = prepared_pixels(dataset, Preparing(), SIZE, "first", directory=tmp_path)
    (own,) = {path.name for path in folder.iterdir()} - {"mapped.u8"}
    assert not _take(folder / own)
    del first
    gc.collect()
    assert _take(folder / own)
    assert not mapped.any()


def test_a_cache_that_may_not_be_changed_is_read_all_the_same(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = prepared_pixels(dataset, Preparing(), SIZE, "first", directory=tmp_path)
    (own,) = (tmp_path / "pixels").iterdir()
    lost = tmp_path / "pixels" / ".lost.1"
    lost.touch()
    os.utime(lost, (0, 0))
    monkeypatch.setattr(pixels, "_in_use", set())
    monkeypatch.setattr(pixels, "MOST_BYTES", 0)

    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    with monkeypatch.context() as patch:
        patch.setattr(os, "utime", refused)
        patch.setattr(Path, "unlink", refused)
        again = Preparing()
        assert np.array_equal(prepared_pixels(dataset, again, SIZE, "first", directory=tmp_path), first)
        assert again.count == 0
        del first
        gc.collect()
        make_room(tmp_path / "pixels", 1)
    assert {own, lost} == set((tmp_path / "pixels").iterdir())


def test_a_file_that_another_run_takes_away_is_made_anew(dataset: Dataset, tmp_path: Path) -> None:
    first = prepared_pixels(dataset, Preparing(), SIZE, "small", directory=tmp_path)
    before = first.copy()
    for path in (tmp_path / "pixels").iterdir():
        path.unlink()
    assert np.array_equal(first, before)  # what is open stays readable
    again = Preparing()
    assert np.array_equal(prepared_pixels(dataset, again, SIZE, "small", directory=tmp_path), before)
    assert again.count == 5
