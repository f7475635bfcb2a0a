"""The pooling is what its definition says, value by value, and the extremes it must be able to learn."""

import math

import torch

from evidex.encoders.protocol import Places
from evidex.encoders.towers import TowerEncoder
from evidex.methods.vse_infty import RankPooling, VseInftyEncoder, dropped, position_code
from tests.methods.conftest import TEXTS


def _naive(pool: RankPooling, rows: torch.Tensor, length: int) -> torch.Tensor:
    """One set: sort each dimension, weigh each rank; the weight comes from the rank's position alone."""
    code = torch.zeros(length, 32, dtype=torch.float64)
    for place in range(length):
        for pair in range(16):
            angle = place / 10000 ** (2 * pair / 32)
            code[place, 2 * pair], code[place, 2 * pair + 1] = math.sin(angle), math.cos(angle)
    hidden, _ = pool.gru(code[None])
    score = [float((pool.linear.weight[0] * (h[:32] + h[32:]) / 2).sum()) for h in hidden[0]]
    total = sum(math.exp(value / 0.1) for value in score)
    pooled = []
    for dimension in range(rows.shape[-1]):
        ordered = sorted((float(rows[k, dimension]) for k in range(length)), reverse=True)
        pooled.append(sum(math.exp(s / 0.1) / total * value for s, value in zip(score, ordered, strict=True)))
    return torch.tensor(pooled, dtype=torch.float64)


def test_pooling_is_that_of_a_naive_loop() -> None:
    torch.manual_seed(1)
    pool = RankPooling().double()
    rows = torch.randn(4, 7, 5, dtype=torch.float64)
    lengths = [7, 3, 1, 3]
    mask = torch.arange(7) < torch.tensor(lengths)[:, None]
    with torch.no_grad():
        found = pool(rows, mask)
        for row, length in enumerate(lengths):
            torch.testing.assert_close(found[row], _naive(pool, rows[row], length), rtol=1e-6, atol=1e-6)


def test_places_that_do_not_count_may_stand_anywhere() -> None:
    pool, rows = RankPooling(), torch.randn(1, 4, 3)
    first = pool(rows, torch.tensor([[True, False, True, False]]))
    torch.testing.assert_close(first, pool(rows[:, [0, 2]], torch.ones(1, 2, dtype=torch.bool)))


def test_positions_are_told_apart() -> None:
    code = position_code(50, torch.zeros(1))
    assert torch.cdist(code, code).fill_diagonal_(9).min() > 0.1


def test_some_places_are_dropped_and_never_all() -> None:
    torch.manual_seed(0)
    kept = dropped(Places(torch.zeros(500, 49, 2), torch.ones(500, 49, dtype=torch.bool))).mask.float().mean(1)
    assert 0.8 < kept.mean() < 0.99
    assert (kept == 1).float().mean() > 0.15  # a fifth of the pictures keep all, some others by chance
    assert dropped(Places(torch.zeros(500, 1, 2), torch.ones(500, 1, dtype=torch.bool))).mask.all()


def test_padding_of_sentences_changes_nothing(towers: TowerEncoder) -> None:
    encoder = VseInftyEncoder(towers).eval()
    together = encoder.text_features(encoder.tokenize(TEXTS))
    alone = torch.cat([encoder.text_features(encoder.tokenize([text])) for text in TEXTS])
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-5)
