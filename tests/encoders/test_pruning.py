"""Text towers with fewer hidden units: what moves texts least is left out, and what it gave in the mean stays."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch.nn.functional import gelu

from evidex.config import EncoderConfig
from evidex.encoders.pruning import with_fewer_hidden
from evidex.encoders.towers import TowerEncoder, new_compact

THINGS = ("a road", "the sea", "it")
TEXTS = [f"{count} planes beside {thing} ." for count in ("two", "many", "some") for thing in THINGS]
LAYERS = [f"text_tower.encoder.layer.{number}" for number in range(2)]


@pytest.fixture
def encoder() -> TowerEncoder:
    torch.manual_seed(0)
    made = new_compact(EncoderConfig(image_size=32, dim=16), TEXTS).eval()
    for layer in LAYERS:
        made.state_dict()[f"{layer}.intermediate.dense.weight"].normal_(std=0.5)  # so that the units differ
    return made


def _texts(encoder: TowerEncoder) -> torch.Tensor:
    with torch.no_grad():
        return encoder.text_features(encoder.tokenize(TEXTS))


def test_all_units_are_the_same_tower(encoder: TowerEncoder) -> None:
    every = with_fewer_hidden(encoder, 512, encoder.tokenize(TEXTS))
    torch.testing.assert_close(_texts(every), _texts(encoder))
    assert every.spec() == encoder.spec()


def test_units_that_never_change_are_left_out_without_a_trace(encoder: TowerEncoder) -> None:
    constant = copy.deepcopy(encoder)
    for layer in LAYERS:
        constant.state_dict()[f"{layer}.intermediate.dense.weight"][::2] = 0  # every other unit gives gelu of its bias
        constant.state_dict()[f"{layer}.intermediate.dense.bias"][::2] = torch.linspace(-1, 2, 256)
    fewer = with_fewer_hidden(constant, 256, constant.tokenize(TEXTS))
    assert fewer.spec()["text_shape"]["intermediate"] == 256
    assert tuple(fewer.state_dict()[f"{LAYERS[1]}.output.dense.weight"].shape) == (192, 256)
    torch.testing.assert_close(_texts(fewer), _texts(constant), atol=1e-5, rtol=1e-4)


def test_those_stay_that_move_texts_most(encoder: TowerEncoder) -> None:
    fewer = with_fewer_hidden(encoder, 100, encoder.tokenize(TEXTS))
    wide, narrow = f"{LAYERS[0]}.intermediate.dense", f"{LAYERS[0]}.output.dense"
    given: list[np.ndarray] = []
    with torch.no_grad():
        encoder.get_submodule(wide).register_forward_hook(lambda *seen: given.append(gelu(seen[2])[0].double().numpy()))
        for text in TEXTS:  # each by itself, so that nothing is padded
            encoder.text_features(encoder.tokenize([text]))
    units, weights = np.concatenate(given), {name: each.numpy() for name, each in encoder.state_dict().items()}
    columns = weights[f"{narrow}.weight"]
    order = np.argsort(-units.std(axis=0) * np.linalg.norm(columns, axis=0))
    chosen, rest = np.sort(order[:100]), order[100:]
    left = {name: each.numpy() for name, each in fewer.state_dict().items()}
    assert np.array_equal(left[f"{wide}.weight"], weights[f"{wide}.weight"][chosen])
    assert np.array_equal(left[f"{narrow}.weight"], columns[:, chosen])
    moved = weights[f"{narrow}.bias"] + columns[:, rest] @ units.mean(axis=0)[rest]
    np.testing.assert_allclose(left[f"{narrow}.bias"], moved, atol=1e-5)


def test_the_chosen_units_are_better_than_others(encoder: TowerEncoder) -> None:
    chosen = with_fewer_hidden(encoder, 256, encoder.tokenize(TEXTS))
    rng, apart = np.random.default_rng(0), []
    for _ in range(5):
        kept = torch.from_numpy(np.sort(rng.permutation(512)[:256]))
        weights = dict(encoder.state_dict())
        for layer in LAYERS:
            for name in (f"{layer}.intermediate.dense.weight", f"{layer}.intermediate.dense.bias"):
                weights[name] = weights[name][kept]
            weights[f"{layer}.output.dense.weight"] = weights[f"{layer}.output.dense.weight"][:, kept]
        other = TowerEncoder(chosen.spec()).eval()
        other.load_state_dict(weights)
        apart.append(float((_texts(other) - _texts(encoder)).norm()))
    assert float((_texts(chosen) - _texts(encoder)).norm()) < 0.7 * min(apart)
