"""KAMCL's concepts, its contrast with a queue and its slow copies, against counts and loops."""

import math

import pytest
import torch
from torch.nn.functional import normalize

from evidex.config import LossConfig
from evidex.encoders.towers import TowerEncoder
from evidex.losses.total import Features
from evidex.methods.concepts import concept_targets, concept_words
from evidex.methods.kamcl import METHOD, KamclEncoder, momentum_contrast
from evidex.methods.protocol import MethodLesson
from tests.methods.conftest import TEXTS

CAPTIONS = [
    ["two planes near a terminal", "planes on a runway", "many planes", "a terminal", "an airport"],
    ["a river .", "the river is green", "green trees by the river"],
]
# The first of tag_vocab_512.txt for RSICD in the authors' repository, and words of its captions that are more frequent
# than many of these and are not in that list.
THEIRS = """
green many trees buildings near two several piece area river around road sides surrounded large parking playground
cars lot building residential white field pond yellow square plants beach bareland parked
"""
LEFT_OUT = "a are in and of the is some with by it an on there to between this over both were very has"


def test_concepts_are_words_that_captions_agree_on() -> None:
    # planes 3, terminal 2 of the first; river 3, green 2 of the second; "a" 3 and "the" 2 name nothing
    words = concept_words(CAPTIONS, 4)
    assert words == ["planes", "river", "green", "terminal"]
    targets = concept_targets(CAPTIONS, words, 6)
    assert targets.tolist() == [
        [1, 0, 0, pytest.approx(2 / 3), 0, 0],
        [0, 1, pytest.approx(2 / 3), 0, 0, 0],
    ]


def test_concepts_are_those_that_the_authors_publish() -> None:
    captions = [[word, word] for word in (THEIRS + LEFT_OUT).split()]  # they agree on each
    assert sorted(concept_words(captions, 512)) == sorted(THEIRS.split())


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
    expected = 0.999**0.5 * slow + (1 - 0.999**0.5) * fast  # half of the authors' batch
    encoder.remember("image", torch.ones(2, 8))
    encoder.remember("text", torch.ones(50, 8))
    encoder.after_step()
    torch.testing.assert_close(slow, expected)
    assert encoder.queue("image")[[7999, 0]].eq(1).all()
    assert torch.equal(encoder.queue("image")[1:7999], before[1:7999])
    assert encoder.get_buffer("place").tolist() == [1, 50]


@pytest.mark.parametrize(("epoch", "taught"), [(0.0, False), (10.9, False), (11.0, True)])
def test_the_loss_is_the_sum_of_the_authors_parts(encoder: KamclEncoder, epoch: float, taught: bool) -> None:
    torch.manual_seed(0)
    v, v_key, t, t_key = (normalize(torch.randn(4, 8), dim=1) for _ in range(4))
    v_known, t_known, facts = (torch.rand(4, 8) for _ in range(3))
    batch = Features(torch.cat([v, v_known, v_key], 1), torch.cat([t, t_known, t_key], 1), facts=facts)
    lesson = MethodLesson(LossConfig(mask_equal_captions=False), epoch, torch.tensor(1.0), encoder)
    parts = METHOD.loss(batch, lesson)
    similarity = (v @ t.T).tolist()
    hinges = 0.0
    for i in range(4):
        hinges += max(max(0.2 + similarity[i][j] - similarity[i][i], 0.0) for j in range(4) if j != i)
        hinges += max(max(0.2 + similarity[j][i] - similarity[i][i], 0.0) for j in range(4) if j != i)
    assert float(parts["triplet"]) == pytest.approx(hinges * 100 / 4, rel=1e-5)  # as it sums over a batch of 100
    contrast = momentum_contrast(v, t_key, encoder.queue("text")) + momentum_contrast(t, v_key, encoder.queue("image"))
    assert float(parts["contrast"]) == pytest.approx(10 * float(contrast), rel=1e-5)
    assert ("concepts" in parts) == taught
    if taught:
        wrong = 0.0
        for known in (v_known, t_known):
            for p, y in zip(known.flatten().tolist(), facts.flatten().tolist(), strict=True):
                wrong -= y * math.log(p) + (1 - y) * math.log(1 - p)
        assert float(parts["concepts"]) == pytest.approx(10 * wrong / facts.numel(), rel=1e-4)


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
