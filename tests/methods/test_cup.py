"""CUP's clustering, losses and prompts against loops and against plain CLIP."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from evidex.config import LossConfig
from evidex.data.datasets import load_dataset
from evidex.encoders.clip.encoder import ClipEncoder
from evidex.encoders.protocol import DualEncoder
from evidex.encoders.towers import TowerEncoder
from evidex.errors import ModelError
from evidex.losses import info_nce_loss
from evidex.losses.total import Features, summed
from evidex.methods.context_cluster import Clustering, ContextCluster
from evidex.methods.cup import METHOD, CupEncoder, matching_loss, mean_softmax
from evidex.methods.protocol import MethodLesson
from tests.encoders.clip.tiny_clip import save_tiny_clip


def _sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))


@torch.no_grad()
def test_clustering_is_that_of_a_naive_loop() -> None:
    torch.manual_seed(0)
    module = Clustering(6, centres=2, folds=2).double()
    module.slope.fill_(1.5)
    module.offset.fill_(0.3)
    grid = torch.randn(1, 6, 8, 8, dtype=torch.float64)
    points, values = module.point(grid)[0], module.value(grid)[0]
    spread = torch.zeros_like(values)
    for head in range(4):
        rows = slice(32 * head, 32 * head + 32)
        for top in (0, 4):
            for left in (0, 4):
                places = [(top + y, left + x) for y in range(4) for x in range(4)]
                quarters = [
                    [(top + a + y, left + b + x) for y in (0, 1) for x in (0, 1)] for a in (0, 2) for b in (0, 2)
                ]
                centres = [torch.stack([points[rows, y, x] for y, x in each]).mean(0) for each in quarters]
                middles = [torch.stack([values[rows, y, x] for y, x in each]).mean(0) for each in quarters]
                owner, strength = {}, {}
                for y, x in places:
                    point = points[rows, y, x]
                    cosine = [float(point @ c / point.norm() / c.norm()) for c in centres]
                    owner[y, x] = max(range(4), key=lambda k: cosine[k])
                    strength[y, x] = _sigmoid(0.3 + 1.5 * max(cosine))
                for k in range(4):
                    own = [place for place in places if owner[place] == k]
                    total = sum((strength[y, x] * values[rows, y, x] for y, x in own), middles[k])
                    middle = total / (1 + sum(strength[place] for place in own))
                    for y, x in own:
                        spread[rows, y, x] = strength[y, x] * middle
    torch.testing.assert_close(module(grid), module.out(spread[None]))


def test_the_network_takes_pictures_of_whole_regions() -> None:
    assert ContextCluster(12)(torch.randn(2, 3, 64, 64)).shape == (2, 12)


def test_losses_are_those_of_naive_loops() -> None:
    torch.manual_seed(0)
    logits = torch.randn(5, 3, 3, dtype=torch.float64)
    total = 0.0
    for i in range(3):
        for axis in (0, 1):
            chances = []
            for t in range(5):
                row = logits[t, i] if axis == 0 else logits[t, :, i]
                chances.append(math.exp(row[i]) / sum(math.exp(value) for value in row))
            total -= math.log(sum(chances) / 5) / 3 / 2
    assert matching_loss(logits).item() == pytest.approx(total)
    feature, spread, noise = torch.randn(2, 4), torch.rand(2, 4), torch.randn(7, 2, 4)
    found = mean_softmax(feature, spread, noise)
    expected = sum(torch.softmax(feature + spread * noise[t], -1) for t in range(7)) / 7
    torch.testing.assert_close(found, torch.as_tensor(expected))


@torch.no_grad()
def test_prompts_of_texts_are_tokens_after_the_first(tmp_path: Path) -> None:
    """Prompts equal to a word's embedding give the feature that CLIP has of the text with that word put in."""
    save_tiny_clip(tmp_path / "clip")
    clip = ClipEncoder.from_pretrained(tmp_path / "clip")
    encoder = METHOD.wrap(clip, []).eval()
    assert isinstance(encoder, CupEncoder)
    ids = encoder.tokenize(["many planes are parked"])["input_ids"]
    word = int(ids[0, 1])
    prompts = encoder.head["text_prompts"]
    prompts.layer.weight.copy_(torch.eye(prompts.layer.in_features))  # type: ignore[union-attr, operator, arg-type]
    prompts.layer.bias.zero_()  # type: ignore[union-attr, operator]
    prompts.tokens.copy_(clip.clip.text_model.embeddings.token_embedding.weight[word])  # type: ignore[operator]
    put_in = torch.cat([ids[:, :1], torch.full((1, 16), word), ids[:, 1:]], 1)
    expected, _ = encoder.head["text"](clip.text_projection({"input_ids": put_in}))
    found = encoder.text_features({"input_ids": ids})
    torch.testing.assert_close(found, expected / expected.norm(dim=-1, keepdim=True), rtol=1e-4, atol=1e-5)
    plain = clip.text_features({"input_ids": ids})  # outside of the method CLIP is as it was
    assert torch.equal(plain, ClipEncoder.from_pretrained(tmp_path / "clip").text_features({"input_ids": ids}))


def test_towers_without_tokens_are_refused(towers: TowerEncoder) -> None:
    with pytest.raises(ModelError, match=r"encoder\.kind = clip"):
        METHOD.wrap(towers, [])


@pytest.mark.slow
def test_prompts_learn_what_a_frozen_clip_does_not_show(archive: Path, tmp_path: Path) -> None:
    """Ten scenes by heart. CLIP knows them; random prompts hide them, and thirty steps bring them back."""
    save_tiny_clip(tmp_path / "clip")
    clip, dataset = ClipEncoder.from_pretrained(tmp_path / "clip").train(), load_dataset(archive, "train")
    pictures = [clip.prepare_image(dataset.open_image(place)) for place in range(len(dataset))]
    pixels, tokens = torch.from_numpy(np.stack(pictures)), clip.tokenize([each.captions[0] for each in dataset.records])

    def before(encoder: DualEncoder) -> float:
        """Pictures before the right one, as a share of all others; chance is a half."""
        with torch.no_grad():
            similarity = encoder.eval().image_features(pixels) @ encoder.text_features(tokens).T
        encoder.train()
        return float((similarity > similarity.diagonal()).float().sum(0).mean() / (len(pixels) - 1))

    optimizer = torch.optim.AdamW(clip.parameters(), 1e-3)
    for _ in range(30):
        similarity = clip.image_features(pixels) @ clip.text_features(tokens).T
        optimizer.zero_grad()
        info_nce_loss(similarity, scale=20.0).backward()
        optimizer.step()
    torch.manual_seed(0)
    encoder = METHOD.wrap(clip, []).train()
    start = before(encoder)
    optimizer = torch.optim.AdamW([each for each in encoder.parameters() if each.requires_grad], 3e-3)
    for step in range(30):
        rows = Features(encoder.image_outputs(pixels), encoder.text_outputs(tokens))
        parts = METHOD.loss(rows, MethodLesson(LossConfig(), 0.0, torch.tensor(1.0), encoder, step))
        optimizer.zero_grad()
        summed(parts).total.backward()
        optimizer.step()
    assert before(encoder) < min(0.4, start)
