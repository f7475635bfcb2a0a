"""A model that was made before words were counted gets their counts, and nothing else changes."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from ship_model import main, mean_of, training_of

from evidex.data.datasets import load_dataset
from evidex.encoders.committee import CommitteeEncoder
from evidex.encoders.domain import Domain, words_of
from evidex.encoders.model import Model, load_model
from evidex.encoders.towers import TowerEncoder
from evidex.scenes import render_archive
from tests.retrieval.archive import tiny_model


def test_counts_are_given_to_a_model_that_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    render_archive(tmp_path / "archive", count=62, seed=3, size=32)
    captions = load_dataset(tmp_path / "archive", "train").captions
    (tmp_path / "texts.json").write_text('{"texts": [{"captions": ["a zebra", "a zebra", "two zebra"]}]}')
    plain = tiny_model()
    known = Domain(
        words_of([*captions, "zebra", "violin"]),
        np.zeros(plain.dim, np.float32),
        np.eye(1, plain.dim, dtype=np.float32),
        np.array([0.0, 1.0], np.float32),
    )
    Model(plain.encoder, plain.temperature, domain=known).save(tmp_path / "old.safetensors", half=True)
    given = (
        "old.safetensors",
        "--counts-only",
        "--dataset",
        "archive",
        "--texts",
        "texts.json",
        "--target",
        "new.safetensors",
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["ship_model.py", *given])
    assert main() == 0
    old, new = (load_model(tmp_path / f"{name}.safetensors", device="cpu") for name in ("old", "new"))
    assert new.fingerprint == old.fingerprint
    assert new.domain is not None
    assert new.domain.counts is not None
    assert (new.domain.counts["zebra"], new.domain.counts["violin"]) == (2, 0)
    word = max(words_of(captions), key=lambda each: sum(each in text.split() for text in captions))
    assert new.domain.counts[word] >= sum(word in words_of([text]) for text in set(captions))


def test_a_model_that_was_trained_on_tells_how_it_was_before() -> None:
    first = {"training": {"epoch": 3}}
    assert training_of(first) == {"epoch": 3}
    second = {"training": {"epoch": 2}, "before": training_of(first)}
    assert training_of(second) == {"epoch": 2, "before": {"epoch": 3}}
    assert training_of({"members": ["a"]}) == {}


def test_the_mean_with_the_start_lies_halfway(tmp_path: Path) -> None:
    tiny_model().save(tmp_path / "start.safetensors")
    start, run = (load_model(tmp_path / "start.safetensors", engine="torch") for _ in range(2))
    assert isinstance(run.encoder, TowerEncoder)
    with torch.no_grad():
        for parameter in run.encoder.text_head.parameters():
            parameter.add_(1.0)
    half = mean_of(run, start)
    before = start.encoder.weights()
    for name, value in half.encoder.weights().items():
        np.testing.assert_allclose(value, np.asarray(before[name]) + 0.5 * name.startswith("text_head"), atol=1e-6)
    assert half.card["mean_with"] == start.fingerprint
    together = Model(CommitteeEncoder([run.encoder]), run.temperature)
    with pytest.raises(SystemExit, match="without --with-start"):
        mean_of(run, together)
