"""The model file: round trips, refusals, equal texts, any image."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

import evidex
from evidex.config import EncoderConfig
from evidex.encoders.model import SHIPPED, Model, load_model
from evidex.encoders.towers import new_compact
from evidex.errors import ImageError, ModelError


@pytest.fixture(scope="module")
def model() -> Model:
    torch.manual_seed(0)
    return Model(
        new_compact(EncoderConfig(image_size=32, dim=16), ["a river .", "many planes ."]), 0.1, card={"note": 1}
    )


def test_a_saved_model_answers_alike(model: Model, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    model.save(path)
    (tmp_path / "experiment.json").write_text("{}")  # as a run's folder has it
    image = Image.effect_noise((50, 40), 80).convert("RGB")
    for again in (load_model(path), load_model(tmp_path)):
        np.testing.assert_allclose(again.encode_images([image]), model.encode_images([image]), atol=1e-6)
        np.testing.assert_allclose(again.encode_texts(["a river"]), model.encode_texts(["a river"]), atol=1e-6)
        assert (again.fingerprint, again.temperature, again.card) == (model.fingerprint, 0.1, {"note": 1})


def test_half_precision_is_half_the_size_and_close(model: Model, tmp_path: Path) -> None:
    model.save(tmp_path / "full.safetensors")
    model.save(tmp_path / "half.safetensors", half=True)
    assert (tmp_path / "half.safetensors").stat().st_size < 0.6 * (tmp_path / "full.safetensors").stat().st_size
    close = load_model(tmp_path / "half.safetensors").encode_texts(["a river"]) @ model.encode_texts(["a river"]).T
    assert close.item() > 0.999


def test_rows_are_unit_float32_for_paths_and_pictures_of_any_mode(model: Model, tmp_path: Path) -> None:
    Image.new("L", (3, 90), 7).save(tmp_path / "x.png")
    pictures: list[str | Path | Image.Image] = [
        tmp_path / "x.png",
        str(tmp_path / "x.png"),
        Image.new("RGBA", (8, 8)),
        Image.new("1", (64, 2)),
    ]
    rows = model.encode_images(pictures)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    np.testing.assert_array_equal(rows[0], rows[1])
    with pytest.raises(ImageError, match="does not exist"):
        model.encode_images([tmp_path / "gone.png"])
    assert model.encode_images([]).shape == (0, 16)


def test_equal_texts_get_equal_rows_whatever_their_batch(model: Model) -> None:
    texts = ["a river .", "many planes and many ships and a long river ."] * 5 + ["a river ."]
    rows = model.encode_texts(texts, batch_size=2)
    assert all(np.array_equal(rows[i], rows[0]) for i in range(0, len(texts), 2))


def test_the_fingerprint_tells_weights_and_temperature_apart(model: Model) -> None:
    assert Model(model.encoder, 0.2).fingerprint != model.fingerprint
    torch.manual_seed(5)
    other = new_compact(EncoderConfig(image_size=32, dim=16), ["a river .", "many planes ."])
    assert Model(other, 0.1).fingerprint != model.fingerprint


def test_what_is_no_model_is_refused_in_words(model: Model, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="'nothing' is no model"):
        load_model("nothing")
    (tmp_path / "text.safetensors").write_text("hello")
    with pytest.raises(ModelError, match="no readable model"):
        load_model(tmp_path / "text.safetensors")
    save_file({"x": torch.zeros(1)}, tmp_path / "bare.safetensors")
    with pytest.raises(ModelError, match="no evidex model"):
        load_model(tmp_path / "bare.safetensors")
    newer = {"evidex": json.dumps({"format": 99})}
    save_file({"x": torch.zeros(1)}, tmp_path / "newer.safetensors", newer)
    with pytest.raises(ModelError, match="model format 99"):
        load_model(tmp_path / "newer.safetensors")
    weights = {name: torch.from_numpy(value) for name, value in model.encoder.weights().items()}
    description = {"format": 1, "spec": model.encoder.spec(), "temperature": 0.1, "fingerprint": "x"}
    path = tmp_path / "part.safetensors"
    save_file(weights, path, {"evidex": json.dumps(description)})
    with pytest.raises(ModelError, match="not those that were saved"):
        load_model(path)
    damaged: list[object] = [{**description, "temperature": "hot"}, {**description, "spec": None}, []]
    for bad in [*damaged, {**description, "spec": {}}]:
        save_file(weights, path, {"evidex": json.dumps(bad)})
        with pytest.raises(ModelError, match=r"part\.safetensors|kind 'None'"):
            load_model(path)
    save_file({**weights, "image_head.bias": torch.zeros(3)}, path, {"evidex": json.dumps(description)})
    with pytest.raises(ModelError, match=r"image_head\.bias"):
        load_model(path)
    weights.pop("image_head.bias")
    save_file(weights, path, {"evidex": json.dumps(description)})
    with pytest.raises(ModelError, match=r"image_head\.bias"):
        load_model(path)


def test_the_model_that_comes_with_evidex_knows_its_field() -> None:
    shipped = evidex.load_model()
    assert SHIPPED.stat().st_size < 30_000_000
    asked = shipped.encode_texts(
        ["many planes are parked in an airport .", "a green forest .", "a forest of green trees ."]
    )
    similarity = asked @ asked.T
    assert similarity[1, 2] > similarity[0, 1] + 0.2
    assert "RSICD" in shipped.card["data"]
    assert ': "/' not in json.dumps(shipped.card)  # no place of the machine that trained it
