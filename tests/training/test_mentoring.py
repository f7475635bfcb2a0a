"""Mentors' features as training uses them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from evidex.config import Config, LossConfig, MentorConfig
from evidex.data.datasets import load_dataset
from evidex.encoders.mentors.stored import store_text_features
from evidex.errors import ConfigError
from evidex.training.mentoring import mentor_features

TEXTS = ["a river .", "many planes .", "a green forest .", "two ships ."]


class _Mentor:
    """Its features share one large direction."""

    dim, fingerprint = 5, "lopsided"

    def features(self, texts: Sequence[str]) -> np.ndarray:
        rows = [np.random.default_rng(TEXTS.index(text)).standard_normal(5) for text in texts]
        return (np.array(rows) + 10).astype(np.float16).astype(np.float32)


@pytest.mark.parametrize("center", [True, False])
def test_mentors_are_centred_on_their_mean_unless_told_otherwise(config: Config, tmp_path: Path, center: bool) -> None:
    store_text_features(_Mentor(), TEXTS, tmp_path / "mentor.safetensors")
    mentored = dataclasses.replace(
        config, loss=LossConfig(), mentors=MentorConfig(text=str(tmp_path / "mentor.safetensors"), center=center)
    )
    dataset = load_dataset(Path(config.data.path), "train")
    found = mentor_features(mentored, [dataset], TEXTS, torch.device("cpu"))
    rows = _Mentor().features(TEXTS).astype(np.float64)
    rows -= rows.mean(axis=0) * center
    assert found.image is None
    assert found.text is not None
    np.testing.assert_allclose(found.text, rows / np.linalg.norm(rows, axis=1, keepdims=True), atol=1e-5)


def test_regression_needs_one_mentor_of_both_modalities(config: Config) -> None:
    mentored = dataclasses.replace(config, loss=LossConfig(b4=1.0), mentors=MentorConfig(image="compact"))
    dataset = load_dataset(Path(config.data.path), "train").subset([0, 1])
    with pytest.raises(ConfigError, match=r"loss\.b4 = 1\.0 .*mentors\.text = ''"):
        mentor_features(mentored, [dataset], TEXTS, torch.device("cpu"))


def test_regression_gets_the_mentors_features_in_the_students_space(config: Config) -> None:
    """The compact model's 512 dimensions are put into the student's; pictures and texts keep their likeness."""
    both = MentorConfig(image="compact", text="compact")
    dataset = load_dataset(Path(config.data.path), "train").subset(range(6))
    wide = dataclasses.replace(config, loss=LossConfig(relation=False, b4=1.0), mentors=both)
    found = mentor_features(wide, [dataset], TEXTS, torch.device("cpu"))
    plain = mentor_features(dataclasses.replace(wide, loss=LossConfig()), [dataset], TEXTS, torch.device("cpu"))
    assert found.image is not None
    assert found.text is not None
    assert plain.image is not None
    assert plain.text is not None
    assert found.image.shape == (6, config.encoder.dim)
    # Six pictures and four texts lie in ten dimensions at most: nothing of their products is lost.
    np.testing.assert_allclose(found.image @ found.text.T, plain.image @ plain.text.T, atol=1e-4)
