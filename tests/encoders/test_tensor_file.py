"""Tensors read where they lie: the values, and files that change or are cut while they are in use."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from safetensors import SafetensorError
from safetensors.numpy import save_file

from evidex.encoders.tensor_file import TensorFile
from evidex.errors import ModelError

TENSORS: dict[str, np.ndarray] = {
    "a": np.arange(6, dtype=np.float32).reshape(2, 3),
    "half": np.array([0.5, -2], np.float16),
    "count": np.array(7, np.int64),
    "none": np.empty((0, 4), np.float32),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    save_file(TENSORS, tmp_path / "t.safetensors", {"evidex": "x"})
    return tmp_path / "t.safetensors"


def test_every_tensor_is_read_as_it_was_written(path: Path) -> None:
    tensors = TensorFile(path)
    assert tensors.metadata == {"evidex": "x"}
    assert set(tensors) == set(TENSORS)
    for name, values in TENSORS.items():
        assert (tensors[name].shape, tensors[name].dtype) == (values.shape, values.dtype)
        np.testing.assert_array_equal(np.asarray(tensors[name]), values)
    assert np.asarray(tensors["half"], dtype=np.float32).dtype == np.float32
    np.array(tensors["a"])[0, 0] = 1  # a copy may be written to
    assert np.asarray(tensors["a"])[0, 0] == 0


def test_a_file_that_is_replaced_goes_on_as_it_was(path: Path, tmp_path: Path) -> None:
    tensors = TensorFile(path)
    save_file({"a": np.zeros(1)}, tmp_path / "new")
    os.replace(tmp_path / "new", path)
    np.testing.assert_array_equal(np.asarray(tensors["a"]), TENSORS["a"])


def test_a_file_that_is_changed_or_cut_in_place_is_told(path: Path) -> None:
    tensors = TensorFile(path)
    assert tensors["a"].checksum
    content = path.read_bytes()
    place = content.index(TENSORS["a"].tobytes())
    with path.open("r+b") as stream:
        stream.seek(place)
        stream.write(b"\xff")
    with pytest.raises(ModelError, match=r"t\.safetensors' changed while it was in use"):
        np.asarray(tensors["a"])
    os.truncate(path, place + 4)
    with pytest.raises(ModelError, match="is shorter than it was"):
        np.asarray(tensors["a"])


def test_what_is_no_such_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\xff" * 40)
    with pytest.raises(SafetensorError):
        TensorFile(tmp_path / "x")
