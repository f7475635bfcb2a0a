from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from evidex.encoders.domain import Domain
from evidex.encoders.model import Model, load_model
from evidex.encoders.nearness import NEAR, Nearness, common_words
from tests.retrieval.archive import tiny_model


def _table(count: int = 101) -> Nearness:
    """Words in an order of their own; the higher the number, the nearer."""
    order = np.random.default_rng(0).permutation(count)
    angles = (np.pi / 2) * (1 - order / count)
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return Nearness.of([f"word{n:03d}" for n in order], vectors, np.array([[1.0, 0.0], [1.0, 0.1], [1.0, -0.1]]))


def _known(nearness: Nearness | None, dim: int = 4) -> Domain:
    lengths = np.array([0.0, 1.0], np.float32)
    words = frozenset({"river", "word000"})
    return Domain(words, np.zeros(dim, np.float32), np.eye(1, dim, dtype=np.float32), lengths, nearness=nearness)


def test_near_are_the_words_most_like_what_was_taught() -> None:
    table = _table()
    near = [n for n in range(101) if table.is_near(f"word{n:03d}")]
    assert near == list(range(round(100 * NEAR), 101))
    assert "word007" in table
    assert "word7" not in table
    assert not table.is_near("unheard")


def test_of_rarer_words_the_near_ones_are_kept_by_the_measure_of_the_common_ones() -> None:
    rng = np.random.default_rng(1)
    common, rarer, taught = (rng.normal(size=(count, 8)) for count in (400, 300, 20))
    words, rare = [f"c{i}" for i in range(400)], [f"r{i}" for i in range(300)]
    table = Nearness.of(words, common, taught, rare, rarer)
    mean = taught.mean(0)
    for word, vector in zip(rare, rarer, strict=True):
        beyond = sum(float(vector @ mean) > float(other @ mean) for other in common)
        assert (word in table) == table.is_near(word) == (beyond >= NEAR * 400)
    plain = Nearness.of(words, common, taught)
    assert 0 < len(table.words) - len(plain.words) < 100
    assert [table.is_near(word) for word in words] == [plain.is_near(word) for word in words]


def test_a_word_is_foreign_unless_it_or_its_plural_is_near() -> None:
    known = _known(_table())
    assert known.words_out_of_domain(["word099", "word099s", "word001", "unheard"]) == ("word001", "unheard")
    assert _known(None).words_out_of_domain(["word099"]) == ("word099",)


def test_a_table_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="in order"):
        Nearness(("b", "a"), np.zeros(2, np.uint8))
    with pytest.raises(ValueError, match="fit together"):
        Nearness(("a", "b"), np.zeros(3, np.uint8))


def test_it_comes_back_with_the_model_and_changes_what_calibrations_record(tmp_path: Path) -> None:
    plain = tiny_model()
    known = _known(_table(), plain.dim)
    Model(plain.encoder, plain.temperature, domain=known).save(tmp_path / "m.safetensors")
    read = load_model(tmp_path / "m.safetensors").domain
    assert read is not None
    assert read.nearness is not None
    assert read.nearness.words == _table().words
    np.testing.assert_array_equal(read.nearness.ranks, _table().ranks)
    assert read.digest == known.digest != replace(known, nearness=None).digest


def test_whole_words_of_a_vocabulary() -> None:
    assert common_words(["[PAD]", "##ing", "river", "a", "of", "été", "x2y", "river", "quarry"]) == ["river", "quarry"]


def test_a_pretrained_tower_judges_the_words_of_its_vocabulary(tmp_path: Path) -> None:
    import json

    from safetensors.torch import save_file

    from evidex.encoders.frozen_text import judge_words
    from evidex.encoders.text_towers import TextShape, TextTower

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", ".", "a", "##s", "river", "lake", "toothbrush", "spoon"]
    tower = TextTower(TextShape(len(words), hidden=8, layers=1, heads=2, intermediate=8, positions=64))
    rows = tower.embeddings.word_embeddings.weight.data
    rows.zero_()
    for word, side in (("river", 1.0), ("lake", 1.0), ("toothbrush", -1.0), ("spoon", -1.0)):
        rows[words.index(word)] = side * 9 * (torch.arange(8) % 2 * 2 - 1)
    save_file(tower.state_dict(), tmp_path / "model.safetensors")
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    sizes = {"vocab_size": len(words), "hidden_size": 8, "num_hidden_layers": 1}
    sizes |= {"num_attention_heads": 2, "intermediate_size": 8}
    (tmp_path / "config.json").write_text(json.dumps(sizes))
    table = judge_words(tmp_path, ["a river .", "a lake .", "rivers ."])
    assert table.words == ("lake", "river", "spoon", "toothbrush")
    assert table.ranks[:2].min() > table.ranks[2:].max()
