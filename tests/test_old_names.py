"""Galleries, models and measurements that an earlier version wrote are read as if this one had."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from evidex.encoders.domain import Domain, words_of
from evidex.encoders.model import Model, load_model
from evidex.errors import DataError
from evidex.old_names import with_new_keys
from evidex.retrieval.certainty.calibration import Calibration
from evidex.retrieval.certainty.calibration_store import calibration_text, read_calibration
from evidex.retrieval.certainty.learned_score import fit_learned_score
from evidex.retrieval.soundness.seal import checksum_of
from tests.retrieval.archive import tiny_model
from tests.retrieval.certainty.world import world


def test_a_model_whose_domain_has_its_old_name_opens(tmp_path: Path) -> None:
    plain = tiny_model()
    known = Domain(
        words_of(["a river"]),
        np.zeros(plain.dim, np.float32),
        np.eye(plain.dim, dtype=np.float32)[:4],
        np.array([0.0, 1.0], np.float32),
    )
    Model(plain.encoder, plain.temperature, domain=known).save(tmp_path / "new.safetensors")
    with safe_open(tmp_path / "new.safetensors", framework="pt") as stream:
        description = json.loads(stream.metadata()["evidex"]) | {"format": 1}
    description.pop("checksum", None)  # which that format did not have
    tensors = load_file(tmp_path / "new.safetensors")
    old = {name.replace("domain/", "acquaintance/"): value for name, value in tensors.items()}
    assert len(set(old) - set(tensors)) == 4
    save_file(old, tmp_path / "old.safetensors", {"evidex": json.dumps(description)})
    opened = load_model(tmp_path / "old.safetensors")
    assert opened.fingerprint == plain.fingerprint
    assert opened.domain is not None
    assert opened.domain.digest == known.digest


@pytest.fixture(scope="module")
def calibration() -> Calibration:
    made = world(1, queries=400)
    learned = fit_learned_score(made.known, made.gallery, made.middle, np.random.default_rng(0))
    return Calibration("abc123", "text", 100, "learned", np.arange(30.0), (), learned, "digest")


def _as_before(text: str) -> dict[str, Any]:
    """The same calibration as format 4 wrote it, without its checksum."""
    content: dict[str, Any] = json.loads(text)
    learned = content.pop("learned_score")
    learned["signs"], learned["home_signs"] = learned.pop("signals"), learned.pop("home_signals")
    del content["check"]
    return content | {
        "format": 4,
        "score": "reckoned",
        "reckoning": learned,
        "knowing": content.pop("domain_digest"),
    }


def test_a_calibration_of_the_format_before_judges_the_same(calibration: Calibration, tmp_path: Path) -> None:
    old = _as_before(calibration_text(calibration))
    assert "domain_digest" not in old
    path = tmp_path / "old.json"
    path.write_text(json.dumps(old | {"check": checksum_of(old)}))
    read = read_calibration(path)
    assert (read.score, read.domain_digest) == ("learned", "digest")
    assert calibration_text(read) == calibration_text(calibration)
    path.write_text(json.dumps(old | {"check": checksum_of(old | {"knowing": "another"})}))
    with pytest.raises(DataError, match="its checksum is wrong"):
        read_calibration(path)


def test_measurements_are_read_by_their_new_names() -> None:
    quality = {"reckoned": {"foreign_auroc": 0.9}, "vacuity": {"foreign_auroc": None}}
    assert with_new_keys({"uncertainty": {"i2t": {"scores": quality}}, "seeds": [1, 2]}) == {
        "uncertainty": {
            "i2t": {"scores": {"learned": {"out_of_domain_auroc": 0.9}, "vacuity": {"out_of_domain_auroc": None}}}
        },
        "seeds": [1, 2],
    }
