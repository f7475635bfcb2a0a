"""The model that tests use without torch is one that torch could have made."""

from __future__ import annotations

import numpy as np

from evidex.config import EncoderConfig
from evidex.encoders.towers import new_compact
from tests.untrained import untrained


def test_it_has_the_architecture_of_a_new_compact_model() -> None:
    texts = ["a river .", "a river and many planes ."]
    made = untrained(texts, image_size=64, dim=16).encoder
    new = new_compact(EncoderConfig(image_size=64, dim=16, dropout=0.0), texts)
    assert made.spec() == new.spec()
    assert {name: v.shape for name, v in made.weights().items()} == {n: v.shape for n, v in new.weights().items()}
    rows = made.embed_texts(["a river", "many planes"])
    assert np.abs(rows[0] - rows[1]).max() > 0.01
