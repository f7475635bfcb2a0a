"""KAMCL's concepts, its contrast with a queue and its slow copies, against counts and loops."""

import math

import pytest
import torch
from torch.nn.functional import normalize

from evidex.encoders.towers import TowerEncoder
from evidex.methods.concepts import concept_targets, concept_words
from evidex.methods.kamcl import METHOD, KamclEncoder, momentum_contrast
from tests.methods.conftest import TEXTS

CAPTIONS = [
    ["two planes near a terminal", "planes on a runway", "many planes", "a terminal", "an airport"],
    ["a river .", "the river is green", "green trees by the river"],
]


def test_concepts_are_words_that_captions_agree_on() -> None:
    # planes 3, a 3, terminal 2 of the first; river 3, the 2, green 2 of the second
    words = concept_words(CAPTIONS, 4)
    assert words == ["a", "planes", "river", "green"]
    targets = concept_targets(CAPTIONS, words, 6)
    assert targets.tolist() == [[1, 1, 0, 0, 0, 0], [0, 0, 1, pytest.approx(2 / 3), 0, 0]]


def test_the_contrast_is_that_of_a_naive_loop() -> None:
    torch.manual_seed(0)
    queries, keys, queue = (normalize(torch.randn(n, 4, dtype=torch.float64), dim=-1) for n in (3, 3, 7))
    total = 0.0
    for query, key in zip(queries, keys, strict=True):
        own = math.exp(float(query @ key) / 0.07)
        total -= math.log(own / (own + sum(math.exp(float(query @ other) / 0.07) for other in queue)))
    assert momentum_contrast(queries, keys, queue).item() == pytest.approx(total / 3)


@pytest.fixture
def encoder(towers: TowerEncoder) -> KamclEncoder:
    found = METHOD.wrap(towers, CAPTIONS)
    assert isinstance(found, KamclEncoder)
    return found


def test_keys_go_round_the_queue_and_copies_follow_slowly(encoder: KamclEncoder) -> None:
    before = encoder.queue("image").clone()
    encoder.get_buffer("place")[0] = 7999
    assert encoder.key is not None
    slow = next(encoder.key["head"].parameters())
    fast = next(encoder.head.parameters())
    with torch.no_grad():
        fast.add_(1.0)
    expected = 0.999 * slow + 0.001 * fast
    encoder.remember("image", torch.ones(2, 8))
    encoder.after_step()
    torch.testing.assert_close(slow, expected)
    assert encoder.queue("image")[[7999, 0]].eq(1).all()
    assert torch.equal(encoder.queue("image")[1:7999], before[1:7999])
    assert encoder.get_buffer("place").tolist() == [1, 0]


def test_what_is_kept_has_neither_copies_nor_queues_and_says_the_same(
    encoder: KamclEncoder, pixels: torch.Tensor
) -> None:
    encoder.eval()
    kept = encoder.finished()
    assert not [name for name in kept.state_dict() if name.startswith(("key", "image_queue", "text_queue", "place"))]
    tokens = encoder.tokenize(TEXTS)
    assert tokens["concepts"].sum() > 0
    with torch.no_grad():
        torch.testing.assert_close(kept.image_features(pixels), encoder.image_features(pixels))
        torch.testing.assert_close(kept.text_features(tokens), encoder.text_features(tokens))
