"""Packing a trained model: as fine as the limit allows, and what comes out is what was packed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pack_model
import pytest
from pack_model import beside_weights, described, fitted, model_of
from safetensors.numpy import load_file

from evidex.encoders.model import load_model
from evidex.scenes import render_archive
from evidex.training import measure_domain
from evidex.weights import bases
from evidex.weights.packing import Base, Tensors, write_packed
from tests.encoders.tiny_large import TOWERS, Tiny, make_tiny


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tiny:
    return make_tiny(tmp_path, monkeypatch)


def _published(tiny: Tiny) -> list[Base]:
    return [Base(prefix, name, load_file(tiny.published / f"{name}.safetensors")) for prefix, name in TOWERS.items()]


def _weights(tiny: Tiny) -> Tensors:
    return {name: np.asarray(value) for name, value in tiny.model.encoder.weights().items()}


def test_a_packing_is_as_fine_as_its_limit_allows(tiny: Tiny) -> None:
    sizes, apart = [], []
    for limit in (12_000, 16_000, 24_000):
        kept, how = fitted(_weights(tiny), _published(tiny), limit)
        sizes.append(sum(value.nbytes for value in kept.values()))
        assert sizes[-1] <= limit
        texts = ["many planes", "a river", "a green field"]
        again = model_of(kept, how, tiny.model).encode_texts(texts)
        apart.append(float(np.abs(again - tiny.model.encode_texts(texts)).max()))
    assert sizes == sorted(sizes)
    assert apart == sorted(apart, reverse=True)


def test_what_does_not_fit_at_all_is_told(tiny: Tiny) -> None:
    with pytest.raises(SystemExit, match="heads and vectors alone take more"):
        fitted(_weights(tiny), _published(tiny), 1000)


def test_the_written_file_loads_as_the_model_that_was_measured(tiny: Tiny, tmp_path: Path) -> None:
    assert set(bases.BASES) == set(TOWERS.values())
    kept, how = fitted(_weights(tiny), _published(tiny), 20_000)
    final = model_of(kept, how, tiny.model)
    final.card = {"name": "large"}
    write_packed(tmp_path / "p.safetensors", {**kept, **beside_weights(final)}, {**described(final), **how})
    loaded = load_model(tmp_path / "p.safetensors", device="cpu")
    assert (loaded.fingerprint, loaded.card) == (final.fingerprint, final.card)


def test_the_script_packs_a_trained_model_and_measures_it(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pack_model, "published", lambda: _published(tiny))
    monkeypatch.setattr(pack_model, "_REST_BYTES", 0)
    for bound in ("LEAST_WORDS", "LEAST_OTHERS"):  # the rendered archive's captions have a small vocabulary
        monkeypatch.setattr(measure_domain, bound, 10)
    archive, target = tmp_path / "archive", tmp_path / "small.safetensors"
    render_archive(archive, count=372, seed=3, size=32)
    tiny.model.save(tmp_path / "whole.safetensors")
    words = [str(tmp_path / "whole.safetensors"), "--dataset", str(archive), "--labels", str(archive)]
    monkeypatch.setattr("sys.argv", ["pack_model.py", *words, "--target", str(target), "--limit", "0.024"])
    assert pack_model.main() == 0
    assert "before packing: clean RSUM" in capsys.readouterr().out
    packed = load_model(target)
    assert packed.domain is not None
    assert packed.card["val"]["noisy"]["rsum"] == pytest.approx(
        packed.card["val_before_packing"]["noisy"]["rsum"], rel=0.1
    )
    assert [row["name"] for row in packed.card["sources"]]
    asked = ["many planes", "a river"]
    np.testing.assert_allclose(packed.encode_texts(asked), tiny.model.encode_texts(asked), atol=0.05)
