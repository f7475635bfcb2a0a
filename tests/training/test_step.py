"""Feature caching and several processes leave the gradient of one plain step."""

import dataclasses
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from evidex.config import Config, EncoderConfig, LossConfig, TrainConfig
from evidex.encoders.towers import TowerEncoder, new_compact
from evidex.errors import TrainingError
from evidex.losses.labels import label_loss
from evidex.losses.total import LossParts
from evidex.training.distributed import World
from evidex.training.state import TrainState
from evidex.training.step import Labelled, Pairs, compute_gradients, take_step

TEXTS = [
    "a river .",
    "many planes .",
    "a green forest .",
    "two ships in a harbor .",
    "a dense city .",
    "a long bridge .",
]
LOSS = LossConfig(temperature=0.2, ucl_target="belief", b2=0.5, twins=0.7, labels=2.0)


def tiny_encoder(dropout: float = 0.0) -> TowerEncoder:
    torch.manual_seed(0)
    encoder = new_compact(EncoderConfig(image_size=32, dim=8, dropout=dropout), TEXTS)
    encoder.freeze_batch_norm = True  # batch statistics would depend on the chunks
    return encoder.train()


def tiny_pairs(encoder: TowerEncoder, pairings: int = 1) -> Pairs:
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randint(0, 256, (6, 3, 32, 32), dtype=torch.uint8, generator=generator)
    texts = TEXTS * pairings
    mentor = torch.nn.functional.normalize(torch.randn(6, 5, generator=generator), dim=1)
    ids = torch.tensor([0, 1, 2, 3, 4, 4] * pairings)
    return Pairs(pixels, encoder.tokenize(texts), mentor, mentor.repeat(pairings, 1), ids, pairings)


def pairs_and_more(encoder: TowerEncoder, pairings: int = 1) -> Pairs:
    """The same with a twin for all captions but one, and five pictures of three labels."""
    plain = tiny_pairs(encoder, pairings)
    generator = torch.Generator().manual_seed(1)
    pixels = torch.randint(0, 256, (5, 3, 32, 32), dtype=torch.uint8, generator=generator)
    texts = [*TEXTS * pairings, *[f"no {text}" for text in TEXTS * pairings], "river", "dense city", "city"]
    has_twin = torch.tensor([True, True, False, True, True, True] * pairings)
    exclude = torch.tensor([[False, True, True], [True, False, False], [True, False, False]])
    return dataclasses.replace(
        plain,
        pixels=torch.cat([plain.pixels, pixels]),
        tokens=encoder.tokenize(texts),
        has_twin=has_twin,
        labels=Labelled(torch.tensor([0, 1, 2, 1, 0]), exclude),
    )


def gradients(
    encoder: TowerEncoder,
    *,
    loss: LossConfig = LOSS,
    pairings: int = 1,
    chunk_size: int = 0,
    world: World | None = None,
    make: Callable[[TowerEncoder, int], Pairs] = tiny_pairs,
) -> tuple[LossParts, list[torch.Tensor]]:
    scale = nn.Parameter(torch.tensor(2.0))
    config = Config(loss=loss, train=TrainConfig(chunk_size=chunk_size))
    pairs = make(encoder, pairings)
    parts = compute_gradients(encoder, scale, pairs, config, epoch=3.0, seed=11, world=world or World())
    return parts, [p.grad.clone() for p in [*encoder.parameters(), scale] if p.grad is not None]


@pytest.mark.parametrize("chunk", [1, 2, 4])
@pytest.mark.parametrize("pairings", [1, 2])
@pytest.mark.parametrize("make", [tiny_pairs, pairs_and_more])
def test_chunks_do_not_change_the_gradient(
    chunk: int, pairings: int, make: Callable[[TowerEncoder, int], Pairs]
) -> None:
    whole, expected = gradients(tiny_encoder(), pairings=pairings, make=make)
    parts, found = gradients(tiny_encoder(), chunk_size=chunk, pairings=pairings, make=make)
    assert parts.total.item() == pytest.approx(whole.total.item(), rel=1e-5)
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=2e-3, atol=2e-6)


def test_the_gradient_is_that_of_plain_backward() -> None:
    from evidex.losses.total import Features, total_loss

    encoder = tiny_encoder()
    _, found = gradients(encoder)
    plain = tiny_encoder()
    pairs = tiny_pairs(plain)
    features = Features(
        plain.image_features(pairs.pixels), plain.text_features(pairs.tokens), pairs.image_mentor, pairs.text_mentor,
        pairs.caption_ids,
    )  # fmt: skip
    total_loss(features, LOSS, epoch=3.0).total.backward()
    expected = [p.grad for p in plain.parameters() if p.grad is not None]
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("pairings", [1, 2])
def test_twins_and_labels_add_their_weighted_parts_and_change_no_other(pairings: int) -> None:
    """Against loops over the captions, and over the labels as the loss of its own test has them."""
    alone, _ = gradients(tiny_encoder(), pairings=pairings)
    parts, _ = gradients(tiny_encoder(), pairings=pairings, make=pairs_and_more)
    numbers, before = parts.numbers(), alone.numbers()
    for name in before.keys() - {"total"}:
        assert numbers[name] == pytest.approx(before[name], rel=1e-5)
    assert numbers["total"] == pytest.approx(before["total"] + numbers["twins"] + numbers["labels"], rel=1e-5)

    encoder = tiny_encoder()
    pairs = pairs_and_more(encoder, pairings)
    image, text = (
        each.detach() for each in (encoder.image_features(pairs.pixels), encoder.text_features(pairs.tokens))
    )
    assert pairs.labels is not None
    assert pairs.has_twin is not None
    captions, total = 6 * pairings, 0.0
    for caption in range(captions):
        if pairs.has_twin[caption]:
            alpha, twin = (
                math.exp(float(image[caption % 6] @ text[row]) / 0.2) + 1 for row in (caption, captions + caption)
            )
            total -= math.log(alpha / (alpha + twin))
    assert numbers["twins"] == pytest.approx(0.7 * total / (5 * pairings), rel=1e-4)
    expected = label_loss(image[6:] @ text[2 * captions :].T, pairs.labels.label, pairs.labels.exclude, temperature=0.2)
    assert numbers["labels"] == pytest.approx(2.0 * float(expected), rel=1e-4)


def test_the_same_picture_with_another_caption_is_no_negative() -> None:
    def doubled(encoder: TowerEncoder, pairings: int) -> Pairs:
        return dataclasses.replace(tiny_pairs(encoder, pairings), image_ids=torch.tensor([0, 1, 2, 1, 4, 5]))

    loss = LossConfig(objective="infonce", mask_equal_captions=False)
    plain, _ = gradients(tiny_encoder(), loss=loss)
    parts, _ = gradients(tiny_encoder(), loss=loss, make=doubled)
    encoder = tiny_encoder()
    pairs = tiny_pairs(encoder)
    logits = math.exp(2.0) * encoder.image_features(pairs.pixels) @ encoder.text_features(pairs.tokens).T
    logits[1, 3] = logits[3, 1] = -math.inf
    target = torch.arange(6)
    expected = 0.5 * (nn.functional.cross_entropy(logits, target) + nn.functional.cross_entropy(logits.T, target))
    assert float(parts.total.detach()) == pytest.approx(float(expected.detach()), rel=1e-5)
    assert float(parts.total.detach()) < float(plain.total.detach())


def test_dropout_is_repeated_in_the_second_run_of_a_chunk() -> None:
    """The gradient of cached chunks is that of one graph over the same chunks with the same dropout."""
    from evidex.losses.total import Features, total_loss

    _, found = gradients(tiny_encoder(dropout=0.5), chunk_size=2)
    plain = tiny_encoder(dropout=0.5)
    pairs = tiny_pairs(plain)
    images, texts = [], []
    for start in (0, 2, 4):
        torch.manual_seed(11 + 2 * start)
        images.append(plain.image_features(pairs.pixels[start : start + 2]))
    for start in (0, 2, 4):
        torch.manual_seed(12 + 2 * start)
        texts.append(plain.text_features({name: ids[start : start + 2] for name, ids in pairs.tokens.items()}))
    features = Features(torch.cat(images), torch.cat(texts), pairs.image_mentor, pairs.text_mentor, pairs.caption_ids)
    total_loss(features, LOSS, epoch=3.0).total.backward()
    expected = [p.grad for p in plain.parameters() if p.grad is not None]
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=2e-3, atol=2e-6)


def test_a_loss_that_is_not_finite_names_its_part() -> None:
    encoder = tiny_encoder()
    with torch.no_grad():
        encoder.text_head.weight.fill_(float("nan"))
    parts, _ = gradients(encoder)
    with pytest.raises(TrainingError, match=r"not finite \(part edl"):
        parts.numbers()


PROCESS = """
import sys, torch
sys.path.insert(0, {root!r})
from tests.training.test_step import gradients, pairs_and_more, tiny_encoder, tiny_pairs, LOSS
from evidex.config import LossConfig
from evidex.training.distributed import World
torch.set_num_threads(1)
world = World.start()
loss = LossConfig(objective="infonce") if {objective!r} == "infonce" else LOSS
make = pairs_and_more if {objective!r} == "more" else tiny_pairs
parts, found = gradients(tiny_encoder(), chunk_size=1, world=world, loss=loss, make=make)
if world.main:
    torch.save({{"total": parts.total, "found": found}}, {target!r})
"""


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["elc", "infonce", "more"])
def test_two_processes_give_the_gradient_of_one(tmp_path: Path, objective: str) -> None:
    root = str(Path(__file__).parents[2])
    target = str(tmp_path / "gradients.pt")
    script = tmp_path / "process.py"
    script.write_text(PROCESS.format(root=root, target=target, objective=objective))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    result = torch.load(target, weights_only=True)
    loss = LossConfig(objective="infonce") if objective == "infonce" else LOSS
    make = pairs_and_more if objective == "more" else tiny_pairs
    parts, expected = gradients(tiny_encoder(), loss=loss, make=make)
    assert result["total"].item() == pytest.approx(parts.total.item(), rel=1e-5)
    for a, b in zip(result["found"], expected, strict=True):
        torch.testing.assert_close(a, b, rtol=2e-3, atol=2e-6)


def _step_from(log_scale: float, clip: float, loss: LossConfig = LOSS, rate: float = 1.0) -> tuple[float, float]:
    """Take one plain step; return how far the weights went, and the scale after it."""
    encoder = tiny_encoder()
    before = [p.detach().clone() for p in encoder.parameters()]
    scale = nn.Parameter(torch.tensor(log_scale))
    optimizer = torch.optim.SGD([*encoder.parameters(), scale], lr=rate)
    config = Config(loss=loss, train=TrainConfig(gradient_clip=clip))
    state = TrainState(encoder, None, scale, optimizer)
    take_step(state, tiny_pairs(encoder), config, step=3, steps=1, generator=torch.Generator(), world=World.start())
    way = sum(((p.detach() - old) ** 2).sum() for p, old in zip(encoder.parameters(), before, strict=True))
    return float(way) ** 0.5, scale.item()


def test_a_step_is_no_longer_than_the_clipped_gradient() -> None:
    whole, _ = _step_from(2.0, 0.0)
    clipped, _ = _step_from(2.0, whole / 10)
    assert clipped == pytest.approx(whole / 10, rel=1e-3)
    assert _step_from(2.0, 10 * whole)[0] == pytest.approx(whole, rel=1e-5)


def test_the_scale_stays_between_one_and_a_hundred() -> None:
    scales = [math.exp(_step_from(start, 1.0)[1]) for start in (-1.0, 2.0, 6.0)]
    assert scales == pytest.approx([1.0, math.exp(2.0), 100.0])


LEARNT = dataclasses.replace(LOSS, learn_temperature=True, temperature_least=0.05, temperature_most=0.5)


@pytest.mark.parametrize("make", [tiny_pairs, pairs_and_more])
def test_a_learnt_temperature_has_the_gradient_of_its_difference(make: Callable[[TowerEncoder, int], Pairs]) -> None:
    encoder, step = tiny_encoder(), 1e-3
    pairs, config = make(encoder, 1), Config(loss=dataclasses.replace(LEARNT, detach_weight=False))

    def loss_at(log_scale: float) -> tuple[float, float]:
        scale = nn.Parameter(torch.tensor(log_scale))
        parts = compute_gradients(encoder, scale, pairs, config, epoch=3.0, seed=11)
        assert scale.grad is not None
        return parts.total.item(), scale.grad.item()

    (above, _), (_, found), (below, _) = (loss_at(2.0 + way * step) for way in (1, 0, -1))
    assert abs(found) > 1e-2
    assert found == pytest.approx((above - below) / (2 * step), rel=1e-2)


def test_a_temperature_that_is_not_learnt_is_the_configured_one() -> None:
    encoder = tiny_encoder()
    pairs, scale = pairs_and_more(encoder), nn.Parameter(torch.tensor(-math.log(0.2)))
    fixed, learnt = (
        compute_gradients(encoder, scale, pairs, Config(loss=loss), epoch=3.0, seed=11) for loss in (LOSS, LEARNT)
    )
    assert learnt.total.item() == pytest.approx(fixed.total.item(), rel=1e-6)  # both at 0.2
    other = compute_gradients(encoder, nn.Parameter(torch.tensor(1.0)), pairs, Config(loss=LOSS), epoch=3.0, seed=11)
    assert other.total.item() == fixed.total.item()


def test_a_learnt_temperature_stays_within_its_bounds() -> None:
    temperatures = [math.exp(-_step_from(start, 1.0, LEARNT, rate=1e-6)[1]) for start in (-1.0, 2.0, 3.5)]
    assert temperatures == pytest.approx([0.5, math.exp(-2.0), 0.05], rel=1e-4)


def test_a_state_begins_and_is_kept_with_the_temperature_of_its_loss() -> None:
    fixed, learnt = (TrainState.begin(tiny_encoder(), TrainConfig(), loss) for loss in (LOSS, LEARNT))
    assert learnt.temperature(LEARNT) == pytest.approx(0.2)
    with torch.no_grad():
        for state in (fixed, learnt):
            state.scale.add_(1)
    assert fixed.temperature(LOSS) == 0.2
    assert learnt.temperature(LEARNT) == pytest.approx(0.2 / math.e)
