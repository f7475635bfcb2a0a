"""Training that goes on from a finished model."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from evidex.config import Config, EncoderConfig, MethodConfig
from evidex.encoders.committee import CommitteeEncoder
from evidex.encoders.domain import Domain, words_of
from evidex.encoders.image_towers import build_image_tower
from evidex.encoders.model import Model, load_model
from evidex.encoders.pruning import with_fewer_hidden
from evidex.encoders.towers import TowerEncoder
from evidex.errors import ConfigError
from evidex.training.loop import train
from evidex.training.material import pools_once
from evidex.training.start import build_start, domain_before
from tests.encoders.tiny_mpnet import save_tiny_mpnet
from tests.retrieval.archive import tiny_model
from tests.training.conftest import Whole


def _on(config: Config, source: str, *, dim: int = 16) -> Config:
    return replace(config, encoder=EncoderConfig(kind="model", source=source, dim=dim, dropout=0.1))


def test_a_model_is_trained_on_from_where_it_was(config: Config, whole: Whole) -> None:
    going_on = _on(config, str(whole.run.model_path))
    started = build_start(going_on, ["words that no other caption has"])
    weights = load_model(whole.run.model_path, engine="torch").encoder.weights()
    assert {name: np.array_equal(value, np.asarray(weights[name])) for name, value in started.state_dict().items()} == (
        dict.fromkeys(weights, True)
    )
    first = train(replace(going_on, train=replace(going_on.train, epochs=1)), device=torch.device("cpu")).history[0]
    assert first["val_rsum"] > whole.run.history[0]["val_rsum"]
    assert first["loss"]["total"] < whole.run.history[0]["loss"]["total"] - 0.05


def test_the_shipped_model_is_trained_on_under_its_name(config: Config) -> None:
    started = build_start(_on(config, "compact", dim=512), [])
    assert (started.image_size, started.dim) == (192, 512)
    known = domain_before(_on(config, "compact", dim=512))
    assert known is not None
    assert "airport" in known.words
    assert domain_before(config) is None


def test_what_cannot_be_trained_on_is_told(config: Config, whole: Whole, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"encoder\.dim = 512, but '.*' has 16; set that"):
        build_start(_on(config, str(whole.run.model_path), dim=512), [])
    other = _on(config, str(whole.run.model_path))
    with pytest.raises(ConfigError, match=r"encoder\.image_size = 100, but '.*' looks at pictures of 32 pixels"):
        build_start(replace(other, encoder=replace(other.encoder, image_size=100)), [])
    member = load_model(whole.run.model_path, engine="torch").encoder
    assert isinstance(member, TowerEncoder)
    Model(CommitteeEncoder([member, member]), 0.1).save(tmp_path / "committee.safetensors")
    with pytest.raises(ConfigError, match="is a committee; name a model of two plain towers"):
        build_start(_on(config, str(tmp_path / "committee.safetensors")), [])


def test_what_was_known_before_still_is(config: Config, tmp_path: Path) -> None:
    plain = tiny_model()
    known = Domain(
        words_of(["a quarry"]),
        np.zeros(plain.dim, np.float32),
        np.eye(plain.dim, dtype=np.float32)[:4],
        np.array([0.0, 1.0], np.float32),
    )
    Model(plain.encoder, plain.temperature, domain=known).save(tmp_path / "before.safetensors")
    before = domain_before(_on(config, str(tmp_path / "before.safetensors"), dim=plain.dim))
    assert before is not None
    assert before.words == {"a", "quarry"}


def test_a_locked_tower_gives_pictures_the_vectors_they_had(config: Config, whole: Whole) -> None:
    source = str(whole.run.model_path)
    started = replace(
        config,
        encoder=EncoderConfig(kind="model", source=source, dim=16),
        train=replace(config.train, epochs=1, learns="texts"),
    )
    run = train(started, device=torch.device("cpu"))
    before = load_model(whole.run.model_path, engine="torch").encoder.weights()
    after = run.model.encoder.weights()
    same = {name: np.array_equal(np.asarray(before[name]), np.asarray(after[name])) for name in before}
    assert all(is_same for name, is_same in same.items() if name.startswith("image"))
    assert not any(is_same for name, is_same in same.items() if name.startswith(("text_tower.encoder", "text_head")))
    with_head = replace(started, output=f"{config.output}-head", train=replace(started.train, learns="texts and head"))
    after = train(with_head, device=torch.device("cpu")).model.encoder.weights()
    changed = {name.split(".")[0] for name in before if not np.array_equal(np.asarray(before[name]), after[name])}
    assert changed == {"image_head", "text_tower", "text_head"}
    with pytest.raises(ConfigError, match="locks the tower of pictures"):
        replace(started, encoder=replace(started.encoder, dropout=0.1))
    for kind in ("clip", "compact", "towers"):
        with pytest.raises(ConfigError, match="only a trained model's tower"):
            replace(started, encoder=replace(started.encoder, kind=kind))
    with pytest.raises(ConfigError, match='method "pau": only a trained model'):
        replace(started, method=MethodConfig("pau"))
    with pytest.raises(ConfigError, match="locks the tower of pictures"):
        replace(started, train=replace(started.train, whiten=0.1))


@pytest.mark.parametrize("learns", ["texts", "texts and head"])
def test_what_a_locked_tower_pools_once_teaches_what_pictures_do(
    config: Config, whole: Whole, monkeypatch: pytest.MonkeyPatch, learns: Literal["texts", "texts and head"]
) -> None:
    weights, histories = [], []
    for once in (True, False):
        started = replace(
            config,
            output=f"{config.output}-{once}",
            data=replace(config.data, augment=False),
            encoder=EncoderConfig(kind="model", source=str(whole.run.model_path), dim=16),
            train=replace(config.train, epochs=1, learns=learns),
        )
        assert pools_once(started)
        with monkeypatch.context() as patched:
            if once:
                patched.delattr("evidex.training.material.decoded")  # nothing is decoded beside
            else:
                patched.setattr("evidex.training.material.pools_once", lambda _: False)
            run = train(started, device=torch.device("cpu"))
        weights.append(run.model.encoder.weights())
        histories.append(run.history[0])
    for name, value in weights[0].items():
        np.testing.assert_allclose(np.asarray(value), np.asarray(weights[1][name]), atol=2e-4, err_msg=name)
    assert histories[0]["val_rsum"] == pytest.approx(histories[1]["val_rsum"], abs=1.0)


@pytest.mark.parametrize("learns", ["texts", "texts and head"])
def test_a_batch_in_chunks_teaches_a_locked_model_the_same(
    config: Config, whole: Whole, learns: Literal["texts", "texts and head"]
) -> None:
    """The batch norms of a locked tower do not look at the batch, so that it may be cut."""
    weights = []
    for chunk in (0, 8):
        started = replace(
            config,
            output=f"{config.output}-{chunk}",
            data=replace(config.data, augment=learns == "texts"),  # what is pooled once is cut as pictures are
            encoder=EncoderConfig(kind="model", source=str(whole.run.model_path), dim=16),
            train=replace(config.train, epochs=1, learns=learns, chunk_size=chunk),
        )
        weights.append(train(started, device=torch.device("cpu")).model.encoder.weights())
    for name, value in weights[0].items():
        np.testing.assert_allclose(np.asarray(value), np.asarray(weights[1][name]), atol=2e-4, err_msg=name)


def test_the_first_layers_of_a_trained_text_tower_may_be_kept(config: Config, whole: Whole) -> None:
    before = load_model(whole.run.model_path, engine="torch").encoder
    layers = before.spec()["text_shape"]["layers"]
    assert layers > 1
    going_on = _on(config, str(whole.run.model_path))
    shorter = replace(going_on, encoder=replace(going_on.encoder, text_layers=layers - 1))
    started = build_start(shorter, [])
    kept, weights = started.state_dict(), before.weights()
    assert set(weights) - set(kept) == {name for name in weights if f"layer.{layers - 1}." in name}
    assert all(np.array_equal(value, np.asarray(weights[name])) for name, value in kept.items())
    assert started.spec()["text_shape"] == {**before.spec()["text_shape"], "layers": layers - 1}
    with pytest.raises(ConfigError, match=f"text_layers = {layers + 1}, but '.*' has {layers} layers .* to {layers}"):
        build_start(replace(going_on, encoder=replace(going_on.encoder, text_layers=layers + 1)), [])


def test_a_trained_text_tower_may_lose_hidden_units_chosen_by_what_trains(config: Config, whole: Whole) -> None:
    before = load_model(whole.run.model_path, engine="torch").encoder
    units = before.spec()["text_shape"]["intermediate"]
    going_on = _on(config, str(whole.run.model_path))
    narrower = replace(going_on, encoder=replace(going_on.encoder, text_hidden=units // 2))
    texts = ["two planes beside a road .", "a lake .", "a lake ."]
    started = build_start(narrower, texts)
    assert started.spec()["text_shape"] == {**before.spec()["text_shape"], "intermediate": units // 2}
    assert isinstance(before, TowerEncoder)
    chosen = with_fewer_hidden(before, units // 2, before.tokenize(sorted({*texts})))
    assert all(torch.equal(value, chosen.state_dict()[name]) for name, value in started.state_dict().items())
    with pytest.raises(ConfigError, match=f"text_hidden = {units + 1}, but '.*' has {units} such units; set it to 0"):
        build_start(replace(going_on, encoder=replace(going_on.encoder, text_hidden=units + 1)), ["a lake ."])


def test_a_run_starts_from_mpnet_and_its_model_stands_alone(config: Config, tmp_path: Path) -> None:
    save_tiny_mpnet(tmp_path / "weights" / "mpnet", layers=2)
    save_file(build_image_tower("convnet").state_dict(), tmp_path / "weights" / "convnet.safetensors")
    started = replace(
        config,
        encoder=EncoderConfig(
            kind="towers",
            source=str(tmp_path / "weights"),
            image_tower="convnet",
            text_tower="mpnet",
            image_size=32,
            dim=16,
            dropout=0.1,
        ),
        train=replace(config.train, epochs=1, layer_decay=0.8, whiten=0.1, compile=True),
    )
    before = build_start(started, []).state_dict()
    run = train(started, device=torch.device("cpu"))
    shutil.rmtree(tmp_path / "weights")
    plain, other = (load_model(run.model_path, device="cpu", engine=engine) for engine in ("torch", "onnx"))
    name = "text_tower.encoder.relative_attention_bias.weight"
    assert not np.array_equal(np.asarray(plain.encoder.weights()[name]), before[name].numpy())
    texts = ["a river", "two planes beside the runway"]
    np.testing.assert_allclose(other.encode_texts(texts), plain.encode_texts(texts), atol=1e-5)
