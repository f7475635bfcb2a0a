"""Heads that begin aligned: canonical correlations against scikit-learn, and what they are worth before any step."""

from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.cross_decomposition import CCA

from evidex.config import EncoderConfig
from evidex.data.datasets import load_dataset
from evidex.encoders.towers import TowerEncoder, new_compact
from evidex.evaluation.features import match
from evidex.evaluation.recall import recall
from evidex.progress import silent
from evidex.training import aligned_start
from evidex.training.aligned_start import align_heads, canonical
from evidex.training.splits import PreparedSplit, prepare_pixels, prepare_split


def _pairs(rows: int, shared: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Two views of the same few hidden causes, each mixed and with noise of its own."""
    rng = np.random.default_rng(seed)
    causes = rng.normal(size=(rows, shared))
    views = (causes @ rng.normal(size=(shared, width)) + rng.normal(size=(rows, width)) + 3 for width in (7, 5))
    left, right = (torch.from_numpy(view) for view in views)
    return left, right


def test_without_a_ridge_the_correlations_are_those_of_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aligned_start, "_RIDGE", 0.0)
    left, right = _pairs(400, 2, seed=0)
    places = torch.arange(400)
    found = canonical(left, right, places, places)
    x, y = CCA(n_components=3, max_iter=5000, tol=1e-12).fit(left.numpy(), right.numpy()).transform(left, right)
    expected = [np.corrcoef(x[:, at], y[:, at])[0, 1] for at in range(3)]
    assert found.correlation[:3].numpy() == pytest.approx(expected, abs=1e-5)
    variates = (left - found.image_mean) @ found.image, (right - found.text_mean) @ found.text
    for side in variates:  # uncorrelated, of one variance
        torch.testing.assert_close(side.T @ side / 400, torch.eye(5, dtype=torch.float64), rtol=0, atol=1e-9)
    assert (variates[0] * variates[1]).mean(0).numpy() == pytest.approx(found.correlation.numpy(), abs=1e-9)


def test_each_pair_counts_once_however_rows_are_shared() -> None:
    left, right = _pairs(60, 2, seed=1)
    image_of, text_of = torch.tensor([0, 0, 5, 7, 7, 7] * 9), torch.arange(54) % 20
    found = canonical(left, right, image_of, text_of)
    plain = canonical(left[image_of], right[text_of], torch.arange(54), torch.arange(54))
    torch.testing.assert_close(found.correlation, plain.correlation)
    torch.testing.assert_close(found.image_mean, left[image_of].mean(0))


@pytest.mark.parametrize("rows", [2, 4])
def test_few_pairs_and_constant_rows_stay_finite(rows: int) -> None:
    left, right = _pairs(rows, 2, seed=2)
    right[:, 1] = 4.0
    for each in (right, torch.full_like(right, 4.0)):
        found = canonical(left, each, torch.arange(rows), torch.arange(rows))
        assert all(bool(part.isfinite().all()) for part in (found.image, found.text, found.correlation))
        assert float(found.correlation.max()) <= 1 + 1e-9


def _split(archive: Path, encoder: TowerEncoder, name: str) -> PreparedSplit:
    dataset = load_dataset(archive, name)
    return prepare_split(dataset, encoder, prepare_pixels(dataset, encoder, silent))


def _rsum(encoder: TowerEncoder, split: PreparedSplit) -> float:
    with torch.no_grad():
        images = encoder.image_features(torch.from_numpy(np.array(split.pixels))).numpy()
        texts = encoder.text_features(split.tokens).numpy()[split.sentences.of_caption]
    return recall(match(images, texts).similarity, split.dataset.image_of_caption).rsum


@pytest.mark.parametrize("dim", [16, 256])  # below and above the number of directions
def test_aligned_heads_know_their_pairs_before_any_step(
    archive: Path, dim: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVIDEX_CACHE", str(tmp_path))
    texts = load_dataset(archive, "train").captions
    torch.manual_seed(0)
    encoder = new_compact(EncoderConfig(image_size=32, dim=dim), texts).eval()
    split = _split(archive, encoder, "train")
    drawn, size = _rsum(encoder, split), encoder.image_head.weight.square().mean().item()
    align_heads(encoder, split, torch.Generator().manual_seed(0))
    assert _rsum(encoder, split) > 3 * drawn
    assert encoder.image_head.weight.square().mean().item() == pytest.approx(size, rel=1e-4)
    first = encoder.image_head.weight.clone()
    align_heads(encoder, split, torch.Generator().manual_seed(0))
    torch.testing.assert_close(encoder.image_head.weight, first, rtol=1e-5, atol=1e-7)
