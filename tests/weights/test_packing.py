"""Packed models: base and difference come out, the same input gives the same bytes, a wrong base is refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from evidex.errors import ModelError
from evidex.weights.differences import Difference, applied
from evidex.weights.packing import (
    Base,
    Packed,
    packed_tensors,
    read_packed,
    taken_apart,
    unpacked_tensors,
    write_packed,
)

Tensors = dict[str, np.ndarray]


@pytest.fixture
def base() -> Base:
    rng = np.random.default_rng(0)
    shapes = {"embeddings.weight": (60, 16), "layer.weight": (64, 16), "layer.bias": (64,), "other.weight": (3, 3)}
    return Base("tower.", "tiny", {name: rng.normal(size=s).astype(np.float16) for name, s in shapes.items()})


@pytest.fixture
def tuned(base: Base) -> Tensors:
    rng = np.random.default_rng(1)
    moved = {
        f"tower.{name}": (value + 0.03 * rng.normal(size=value.shape)).astype(np.float32)
        for name, value in base.tensors.items()
        if name != "other.weight"
    }
    moved["tower.embeddings.weight"] = moved["tower.embeddings.weight"][:50]  # fewer positions than the base has
    return moved | {
        "head.weight": rng.normal(size=(8, 16)).astype(np.float32),
        "domain/words": np.arange(5, dtype=np.uint8),
        "domain/mean": rng.normal(size=8).astype(np.float32),
    }


def _written(path: Path, tuned: Mapping[str, np.ndarray], base: Base) -> Packed:
    kept, how = packed_tensors(tuned, taken_apart(tuned, [base]), [base], share=0.001)
    write_packed(path, kept, {"spec": {}, "fingerprint": "f", **how})
    found = read_packed(path)
    assert found is not None
    return found


def test_unpacking_gives_base_and_difference(tmp_path: Path, tuned: Tensors, base: Base) -> None:
    packed = _written(tmp_path / "p.safetensors", tuned, base)
    again = unpacked_tensors(packed, lambda name, digest: base.tensors)  # noqa: ARG005
    assert set(again) == set(tuned)
    for name in ("tower.layer.weight", "tower.embeddings.weight"):
        how: dict[str, Any] = packed.description["changed"][name]
        reference = base.tensors[name.removeprefix("tower.")][: len(tuned[name])]
        coded = Difference(how["factor"], how["scale"], load_file(packed.path)[name].tobytes())
        np.testing.assert_array_equal(again[name], applied(coded, reference).astype(np.float16))
        np.testing.assert_allclose(again[name], tuned[name], atol=0.01)
    for name in ("tower.layer.bias", "head.weight"):
        np.testing.assert_array_equal(again[name], tuned[name].astype(np.float16))
    for name in ("domain/words", "domain/mean"):
        np.testing.assert_array_equal(again[name], tuned[name])


def test_the_same_input_gives_the_same_bytes(tmp_path: Path, tuned: Tensors, base: Base) -> None:
    turned = dict(reversed(tuned.items()))
    files = [_written(tmp_path / name, state, base).path for name, state in (("a", tuned), ("b", turned))]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_another_base_is_refused_by_its_digest(tmp_path: Path, tuned: Tensors, base: Base) -> None:
    packed = _written(tmp_path / "p.safetensors", tuned, base)
    other = {**base.tensors, "layer.weight": base.tensors["layer.weight"] + np.float16(0.001)}
    with pytest.raises(ModelError, match=r"is a difference to tiny .* fetch the base"):
        unpacked_tensors(packed, lambda name, digest: other)  # noqa: ARG005


def test_a_packed_file_whose_numbers_are_damaged_is_told(tmp_path: Path, tuned: Tensors, base: Base) -> None:
    path = _written(tmp_path / "p.safetensors", tuned, base).path
    content = bytearray(path.read_bytes())
    packed = read_packed(path)
    assert packed is not None
    content[-200:] = bytes(200)
    path.write_bytes(content)
    with pytest.raises(ModelError, match="no readable packed model"):
        unpacked_tensors(packed, lambda name, digest: base.tensors)  # noqa: ARG005


def test_what_is_not_packed_is_none_of_them(tmp_path: Path) -> None:
    save_file({"a": np.zeros(2)}, tmp_path / "weights.safetensors")
    (tmp_path / "text").write_text("text")
    for name in ("weights.safetensors", "text", "gone"):
        assert read_packed(tmp_path / name) is None
