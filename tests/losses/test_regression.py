"""Regression to a mentor's features, against loops and numpy."""

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from evidex.losses.regression import regression_loss, shared_space


def _unit(count: int, dim: int, seed: int) -> torch.Tensor:
    return normalize(torch.randn(count, dim, generator=torch.Generator().manual_seed(seed)), dim=1)


def test_is_the_mean_squared_distance() -> None:
    student, mentor = _unit(5, 4, 0), _unit(5, 4, 1)
    rows = [
        sum((float(a) - float(b)) ** 2 for a, b in zip(s, m, strict=True)) for s, m in zip(student, mentor, strict=True)
    ]
    assert regression_loss(student, mentor).item() == pytest.approx(sum(rows) / 5, rel=1e-6)
    assert regression_loss(student, None).item() == 0


@pytest.mark.parametrize("dim", [3, 8, 12])
def test_a_shared_space_keeps_what_it_can_of_the_products_between_modalities(dim: int) -> None:
    """The projection is the best one of its size: numpy's singular vectors give the same products."""
    image, text = _unit(40, 8, 0), _unit(60, 8, 1)
    small_image, small_text = shared_space(image, text, dim)
    assert small_image.shape == (40, dim)
    assert small_text.shape == (60, dim)
    _, _, directions = np.linalg.svd(np.concatenate([image, text]).astype(np.float64), full_matrices=False)
    kept = directions[:dim].T
    expected = [rows.numpy().astype(np.float64) @ kept for rows in (image, text)]
    expected = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in expected]
    np.testing.assert_allclose(small_image @ small_text.T, expected[0] @ expected[1].T, atol=1e-5)
    if dim >= 8:
        np.testing.assert_allclose(small_image @ small_text.T, image @ text.T, atol=1e-5)


def test_the_shared_space_does_not_depend_on_the_order_of_rows() -> None:
    image, text = _unit(30, 6, 0), _unit(30, 6, 1)
    turned, _ = shared_space(image.flip(0), text.flip(0), 4)
    np.testing.assert_allclose(turned.flip(0), shared_space(image, text, 4)[0], atol=1e-5)


def test_a_space_that_is_large_enough_is_not_turned() -> None:
    image, text = _unit(30, 6, 0), _unit(30, 6, 1)
    for dim in (6, 9):
        wide_image, wide_text = shared_space(image, text, dim)
        for wide, rows in ((wide_image, image), (wide_text, text)):
            assert torch.equal(wide[:, :6], rows)
            assert not wide[:, 6:].any()
