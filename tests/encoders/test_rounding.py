"""Weights in bytes: near to what they were, the same when rounded again, and a model file that holds them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from evidex.encoders.export import export_model
from evidex.encoders.model import Model, load_model
from evidex.encoders.model_file import fingerprint_of
from evidex.encoders.rounding import RoundedTensor, rounded, still_rounded, with_text_in_bytes
from evidex.errors import ModelError
from tests.encoders.clip.tiny_clip import save_tiny_clip
from tests.untrained import untrained

MATRIX = "text_tower.encoder.layer.0.output.dense.weight"
TEXTS = ["a river .", "many planes and a river ." * 9, ""]


@pytest.fixture
def model() -> Model:
    return untrained(["a river .", "many planes ."])


def test_every_weight_is_within_half_a_step_and_stays_when_rounded_again() -> None:
    weight = np.random.default_rng(0).normal(size=(400, 96)).astype(np.float32)
    weight *= 10.0 ** np.random.default_rng(1).integers(-30, 30, (400, 1))
    weight[7], weight[9, 1:] = 0, 0
    found = rounded(weight)
    again = np.asarray(found)
    assert (again.dtype.name, again.shape, found.shape) == ("float32", weight.shape, weight.shape)
    assert (np.abs(again.astype(np.float64) - weight) <= 0.501 * found.scales[:, None]).all()
    assert (found.scales.astype(np.float64) * 127 <= 1.0001 * np.abs(weight).max(1) + 1e-35).all()
    np.testing.assert_array_equal(again[7], 0)
    np.testing.assert_array_equal(np.asarray(rounded(again)), again)


def test_numbers_are_whole_times_scale_and_nothing_else_is_taken() -> None:
    whole, scales = np.array([[1, -2], [127, 0]], np.int8), np.array([0.5, 2], np.float32)
    np.testing.assert_array_equal(np.asarray(RoundedTensor(whole, scales)), [[0.5, -1], [254, 0]])
    for wrong in [(whole, scales[:1]), (whole.astype(np.int32), scales), (whole, scales.astype(np.float64))]:
        with pytest.raises(ValueError, match="rounded weights"):
            RoundedTensor(*wrong)


def test_a_file_holds_bytes_and_both_engines_read_the_same_model(model: Model, tmp_path: Path) -> None:
    plain, path = tmp_path / "plain.safetensors", tmp_path / "bytes.safetensors"
    model.save(plain, half=True)
    model.save(path, half=True, text_in_bytes=True)
    tensors = load_file(path)
    assert [tensors[f"{MATRIX}{end}"].dtype.name for end in ("", ".scales")] == ["int8", "float32"]
    assert tensors["text_head.weight"].dtype == np.float16
    assert path.stat().st_size < plain.stat().st_size
    onnx, torch = load_model(path, device="cpu"), load_model(path, device="cpu", engine="torch")
    for each in (onnx, torch):  # the fingerprint is of the numbers, not of how they are kept
        weights = each.encoder.weights()
        assert fingerprint_of(each.encoder.spec(), each.temperature, weights) == onnx.fingerprint
        np.testing.assert_array_equal(np.asarray(weights[MATRIX]), np.asarray(rounded(_of(model)[MATRIX])))
    assert onnx.fingerprint != load_model(plain, device="cpu").fingerprint
    np.testing.assert_allclose(onnx.encode_texts(TEXTS), torch.encode_texts(TEXTS), atol=1e-5)
    cosines = (onnx.encode_texts(TEXTS) * model.encode_texts(TEXTS)).sum(1)
    assert cosines.min() > 0.999


def test_saved_again_it_is_the_same_model(model: Model, tmp_path: Path) -> None:
    path, again, full = (tmp_path / f"{name}.safetensors" for name in ("bytes", "again", "full"))
    model.save(path, half=True, text_in_bytes=True)
    load_model(path, device="cpu").save(again, half=True)
    assert again.read_bytes() == path.read_bytes()
    load_model(path, device="cpu", engine="torch").save(full)
    assert load_model(full, device="cpu").fingerprint == load_model(path, device="cpu").fingerprint
    load_model(path, device="cpu", engine="torch").save(again, half=True, text_in_bytes=True)
    assert again.read_bytes() == path.read_bytes()


def test_older_versions_are_told_and_their_files_read_on(model: Model, tmp_path: Path) -> None:
    formats = []
    for in_bytes in (False, True):
        model.save(tmp_path / "model.safetensors", text_in_bytes=in_bytes)
        content = (tmp_path / "model.safetensors").read_bytes()
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        formats.append(json.loads(header["__metadata__"]["evidex"])["format"])
    assert formats == [2, 3]


def test_a_file_whose_bytes_were_changed_is_refused(model: Model, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    model.save(path, text_in_bytes=True)
    content = bytearray(path.read_bytes())
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    start = 8 + int.from_bytes(content[:8], "little")
    for name in (MATRIX, f"{MATRIX}.scales"):
        changed = bytearray(content)
        changed[start + header[name]["data_offsets"][0]] ^= 1
        path.write_bytes(changed)
        with pytest.raises(ModelError, match="not those that were saved"):
            load_model(path, device="cpu")
    path.write_bytes(content)
    tensors = load_file(path)
    tensors[f"{MATRIX}.scales"] = tensors[f"{MATRIX}.scales"][:-1].copy()
    description = json.loads(header["__metadata__"]["evidex"])
    del description["checksum"]
    save_file(tensors, path, {"evidex": json.dumps(description)})
    with pytest.raises(ModelError, match="scales for rounded weights"):
        load_model(path, device="cpu")


def test_what_has_no_text_tower_of_ours_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no text tower of evidex's own"):
        with_text_in_bytes({"clip.text_model.encoder.layers.0.mlp.fc1.weight": np.zeros((2, 2), np.float32)})
    save_tiny_clip(tmp_path / "clip")
    with pytest.raises(ModelError, match="no text tower of evidex's own"):
        export_model(str(tmp_path / "clip"), tmp_path / "out.safetensors", text_in_bytes=True)


def test_what_is_no_number_is_refused(model: Model) -> None:
    weights = _of(model)
    with pytest.raises(ModelError, match="not all numbers"):
        with_text_in_bytes({**weights, MATRIX: weights[MATRIX] * np.float32(np.nan)})


def test_an_export_in_bytes_is_held_against_torch(model: Model, tmp_path: Path) -> None:
    path, out = tmp_path / "model.safetensors", tmp_path / "out.safetensors"
    model.save(path)
    assert export_model(str(path), out, half=True, text_in_bytes=True).difference < 1e-5
    assert load_file(out)[MATRIX].dtype == np.int8


def _of(model: Model) -> dict[str, np.ndarray]:
    return {name: np.asarray(value) for name, value in model.encoder.weights().items()}


def test_weights_stay_in_bytes_until_they_change() -> None:
    rng = np.random.default_rng(3)
    kept, trained = (rounded(rng.normal(size=(4, 6)).astype(np.float32)) for _ in range(2))
    other = rng.normal(size=3).astype(np.float32)
    now = {"kept": np.asarray(kept), "trained": np.asarray(trained) + np.float32(1e-6), "other": other}
    found = still_rounded(now, {"kept": kept, "trained": trained, "gone": kept})
    assert found["kept"] is kept
    assert found["trained"] is now["trained"]
    assert found["other"] is other
    assert set(found) == set(now)
