"""Weights in bytes: each within half a step of its block, blocks of nothing included."""

from __future__ import annotations

import numpy as np

from evidex.encoders.graphs.rounded import BLOCK, _blocks, fits


def test_every_weight_is_within_half_a_step_of_its_block() -> None:
    weight = np.random.default_rng(0).normal(size=(5, 3 * BLOCK)).astype(np.float32)
    weight[0, :BLOCK] = 0
    weight[1, 7] = 400  # one large value spoils no other block
    blocks, scales = _blocks(weight)
    assert (blocks.shape, blocks.dtype.name, scales.shape) == ((5, 3, BLOCK), "uint8", (5, 3))
    again = ((blocks.astype(np.float64) - 128) * scales[..., None]).reshape(weight.shape)
    steps = np.repeat(scales, BLOCK, axis=1)
    assert (np.abs(again - weight) <= 0.5001 * steps).all()
    assert np.abs(again - weight)[1, BLOCK:].max() < 0.02


def test_only_whole_blocks_fit() -> None:
    assert fits(768, 3072)
    assert not fits(768, 100)
