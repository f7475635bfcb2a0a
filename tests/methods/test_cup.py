"""CUP's clustering, losses and prompts against loops and against plain CLIP."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from evidex.config import Config, DataConfig, EncoderConfig, LossConfig, MethodConfig, TrainConfig
from evidex.data.datasets import Dataset, load_dataset
from evidex.encoders.clip.encoder import ClipEncoder
from evidex.encoders.model import load_model
from evidex.encoders.towers import TowerEncoder
from evidex.errors import ModelError
from evidex.losses import info_nce_loss
from evidex.losses.total import Features
from evidex.methods.context_cluster import Clustering, ContextCluster
from evidex.methods.cup import METHOD, CupEncoder, matching_loss, mean_softmax
from evidex.methods.protocol import MethodLesson
from evidex.training.loop import train
from tests.encoders.clip.tiny_clip import save_tiny_clip
from tests.methods.conftest import TEXTS


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
    expected, _ = encoder.head["text"](clip.text_features({"input_ids": put_in}))
    found = encoder.text_features({"input_ids": ids})
    torch.testing.assert_close(found, expected / expected.norm(dim=-1, keepdim=True), rtol=1e-4, atol=1e-5)
    plain = clip.text_features({"input_ids": ids})  # outside of the method CLIP is as it was
    assert torch.equal(plain, ClipEncoder.from_pretrained(tmp_path / "clip").text_features({"input_ids": ids}))


@torch.no_grad()
def test_what_is_mixed_and_compared_are_unit_features(tmp_path: Path, pixels: torch.Tensor) -> None:
    """Without a share of the adapters rows begin with unit vectors, which the loss scales as CLIP does."""
    save_tiny_clip(tmp_path / "clip")
    encoder = METHOD.wrap(ClipEncoder.from_pretrained(tmp_path / "clip"), []).eval()
    assert isinstance(encoder, CupEncoder)
    for side in ("image", "text"):
        for layer in (encoder.head[side].share, encoder.head[side].spread):
            layer.weight.zero_()  # type: ignore[union-attr, operator]
            layer.bias.fill_(-1.0)  # type: ignore[union-attr, operator]
    image = encoder.image_outputs(pixels)
    text = encoder.text_outputs(encoder.tokenize(TEXTS))
    for rows in (image[:, : encoder.dim], text[:, : encoder.dim]):
        torch.testing.assert_close(rows.norm(dim=1), torch.ones(len(rows)))
    lesson = MethodLesson(LossConfig(mask_equal_captions=False), 0.0, torch.tensor(1.0), encoder)
    found = METHOD.loss(Features(image, text), lesson)["matching"]
    similarity = encoder.image_features(pixels) @ encoder.text_features(encoder.tokenize(TEXTS)).T
    expected = info_nce_loss(similarity, scale=math.exp(encoder.start_scale))  # nothing spreads: all draws are alike
    assert float(found) == pytest.approx(float(expected), rel=1e-4)


def test_towers_without_tokens_are_refused(towers: TowerEncoder) -> None:
    with pytest.raises(ModelError, match=r"encoder\.kind = clip"):
        METHOD.wrap(towers, [])


@pytest.mark.slow
def test_prompts_are_learnt_in_the_common_loop(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten scenes. CLIP knows them; random prompts hide them in part, and training brings them back."""
    monkeypatch.setenv("EVIDEX_CACHE", str(tmp_path / "cache"))
    dataset = load_dataset(archive, "train")
    _taught_clip(dataset, tmp_path / "clip")
    config = Config(
        seed=1,
        data=DataConfig(path=str(archive), augment=False),
        encoder=EncoderConfig(kind="clip", source=str(tmp_path / "clip")),
        method=MethodConfig(name="cup"),
        loss=LossConfig(mask_equal_captions=False),
    )

    def before(epochs: int, rate: float) -> float:
        """Pictures before the right one after a training, as a share of all others; chance is a half."""
        schedule = TrainConfig(
            epochs=epochs, batch_size=10, learning_rate=rate, evaluate_every=epochs, checkpoint_every=epochs
        )
        run = train(replace(config, output=str(tmp_path / f"run{epochs}"), train=schedule), device=torch.device("cpu"))
        model = load_model(run.model_path, device="cpu")
        images = model.encode_images([dataset.open_image(place) for place in range(len(dataset))])
        similarity = model.similarity(images, model.encode_texts(dataset.captions))
        own = similarity[dataset.image_of_caption, np.arange(len(dataset.captions))]
        return float((similarity > own).sum(0).mean() / (len(dataset) - 1))

    assert before(30, 3e-3) < min(0.4, before(1, 1e-9))


def _taught_clip(dataset: Dataset, folder: Path) -> None:
    """A tiny CLIP that was taught ``dataset`` by heart, as a model folder."""
    save_tiny_clip(folder)
    clip = ClipEncoder.from_pretrained(folder).train()
    pixels = torch.from_numpy(np.stack([clip.prepare_image(dataset.open_image(i)) for i in range(len(dataset))]))
    optimizer = torch.optim.AdamW(clip.parameters(), 1e-3)
    for step in range(60):
        tokens = clip.tokenize([record.captions[step % len(record.captions)] for record in dataset.records])
        similarity = clip.image_features(pixels) @ clip.text_features(tokens).T
        optimizer.zero_grad()
        info_nce_loss(similarity, scale=20.0).backward()
        optimizer.step()
    clip.clip.save_pretrained(folder)
