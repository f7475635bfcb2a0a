"""Rounding that is fitted to what a layer is given: the products suffer less than from rounding each weight."""

from __future__ import annotations

import numpy as np
import torch

from evidex.config import EncoderConfig
from evidex.encoders.fitted_rounding import fitted, text_rounded_for
from evidex.encoders.rounding import rounded, with_text_in_bytes
from evidex.encoders.torch_engine import torch_encoder
from evidex.encoders.towers import new_compact


def test_products_suffer_less_than_from_rounding_each_weight() -> None:
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(500, 8)) @ rng.normal(size=(8, 64)) + 0.1 * rng.normal(size=(500, 64))
    weight = rng.normal(size=(40, 64)).astype(np.float32)
    squares = inputs.T @ inputs
    errors = [
        np.linalg.norm(inputs @ (np.asarray(each, np.float64) - weight).T)
        for each in (rounded(weight), fitted(weight, squares))
    ]
    assert errors[1] < 0.5 * errors[0]
    far = np.abs(np.asarray(fitted(weight, squares)) - weight) / rounded(weight).scales[:, None]
    assert far.max() < 30, "weights stay about where they were"


def test_inputs_that_have_nothing_in_common_leave_each_weight_rounded() -> None:
    weight = np.random.default_rng(1).normal(size=(9, 12)).astype(np.float32)
    for squares in (np.eye(12), np.zeros((12, 12))):
        np.testing.assert_array_equal(fitted(weight, squares).whole, rounded(weight).whole)


def test_the_same_matrices_of_a_tower_are_rounded_whatever_the_way() -> None:
    torch.manual_seed(0)
    texts = [f"a {colour} {thing} ." for colour in ("green", "red", "grey") for thing in ("river", "plane", "roof")]
    encoder = new_compact(EncoderConfig(image_size=32, dim=16), texts).eval()
    weights = encoder.weights()
    found, plain = text_rounded_for(encoder, texts * 2), with_text_in_bytes(weights)
    assert {name: each.shape for name, each in found.items()} == {
        name: plain[name].shape for name in weights if plain[name] is not weights[name]
    }
    rows = encoder.embed_texts(texts)
    far = [
        np.linalg.norm(torch_encoder(encoder.spec(), each).eval().embed_texts(texts) - rows)
        for each in ({**weights, **found}, plain)
    ]
    assert far[0] < far[1]
    assert not any(module._forward_pre_hooks for module in encoder.modules())
