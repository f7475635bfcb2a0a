"""A whole training run: data → steps → evaluation on val → checkpoint, epoch by epoch."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from evidex.checked import to_table
from evidex.config import Config
from evidex.data.datasets import Dataset, load_dataset
from evidex.data.pixels import prepared_pixels
from evidex.encoders.model import Model, load_model
from evidex.encoders.protocol import DualEncoder
from evidex.encoders.towers import TowerEncoder, from_pretrained_towers, new_compact
from evidex.encoders.whitening import whitened
from evidex.errors import ConfigError, TrainingError
from evidex.evaluation.features import match
from evidex.evaluation.recall import Recall, recall
from evidex.files import check_folder, write_json_atomic
from evidex.losses.total import LossParts
from evidex.progress import Progress, silent
from evidex.training.acquaint import acquaint_saved
from evidex.training.augment import augment, degrade
from evidex.training.batches import Batch, Sentences, epoch_batches, spread, step_generator, steps_per_epoch
from evidex.training.checkpoint import Progressed, load_checkpoint, save_checkpoint
from evidex.training.distributed import World
from evidex.training.mentoring import MentorFeatures, mentor_features
from evidex.training.schedule import WeightAverage, build_optimizer, cosine, set_learning_rate
from evidex.training.step import Pairs, compute_gradients


@dataclass(frozen=True)
class Report:
    """What a watcher hears after each step, and after each epoch with ``epoch_summary``."""

    epoch: int
    step: int
    total_steps: int
    parts: dict[str, float]
    epoch_summary: dict[str, Any] | None = None


Watcher = Callable[[Report], None]
_WHITENING_IMAGES, _WHITENING_TEXTS = 2048, 4096  # of the training split; far more than a feature has dimensions
_RESIDENT_BYTES = 16 * 2**30  # pictures up to this size live on the accelerator


@dataclass(frozen=True)
class TrainedRun:
    """A finished run: the best weights on val, and its history."""

    model: Model
    model_path: Path
    history: list[dict[str, Any]]


@dataclass(frozen=True)
class _Split:
    """A split ready for the encoder: prepared pixels and tokenised distinct sentences."""

    dataset: Dataset
    pixels: np.ndarray | torch.Tensor
    sentences: Sentences
    tokens: dict[str, torch.Tensor]
    lengths: np.ndarray


def train(
    config: Config,
    *,
    device: torch.device | None = None,
    restart: bool = False,
    watch: Watcher | None = None,
    progress: Progress = silent,
) -> TrainedRun:
    """Train as ``config`` says, from the run's checkpoint if there is one, and return the best model on val."""
    if not config.data.path:
        raise ConfigError("data.path is empty; name the folder of a dataset, e.g. --set data.path=DATASET")
    check_folder(Path(config.output))
    world = World.start()
    _check_batch(config, world)
    device = device or torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train_set = load_dataset(Path(config.data.path), config.data.train_split)
    val_set = load_dataset(Path(config.data.path), config.data.val_split)

    torch.manual_seed(config.seed)
    encoder = build_start(config, train_set).to(device)
    scale = nn.Parameter(torch.tensor(np.log(1 / 0.07), device=device, dtype=torch.float32))
    optimizer = build_optimizer(encoder, scale, config.train)
    average = WeightAverage(encoder, config.train.ema_decay) if config.train.ema_decay else None
    averaged = average.encoder if average else None
    kept = averaged or encoder

    output = Path(config.output)
    checkpoint = output / "checkpoint.safetensors"
    table = to_table(config)
    progressed = Progressed(0, [], -1.0)
    if checkpoint.exists() and not restart:
        progressed = load_checkpoint(checkpoint, encoder, averaged, scale, optimizer, table)
    if world.main:
        write_json_atomic(output / "experiment.json", table)

    train_split = _prepare(train_set, encoder, progress)
    val_split = _prepare(val_set, encoder, progress)
    mentors = mentor_features(config, train_set, train_split.sentences.texts, device, progress)

    for epoch in range(progressed.epoch, config.train.epochs):
        summary = _epoch(epoch, config, encoder, average, scale, optimizer, train_split, mentors, device, world, watch)
        last = epoch + 1 == config.train.epochs
        best_rsum = progressed.best_rsum
        if last or (epoch + 1) % config.train.evaluate_every == 0:
            finished = _finished(kept, config, train_split)
            scores = _validate(finished, val_split)
            summary |= {"val_rsum": scores.rsum, "val_i2t": scores.i2t, "val_t2i": scores.t2i}
            if world.main and scores.rsum > best_rsum:
                _save_best(output, finished, config, epoch, scores)
            best_rsum = max(best_rsum, scores.rsum)
        progressed = Progressed(epoch + 1, [*progressed.history, summary], best_rsum)
        if world.main:
            if last or (epoch + 1) % config.train.checkpoint_every == 0:
                save_checkpoint(checkpoint, encoder, averaged, scale, optimizer, progressed, table)
            write_json_atomic(output / "history.json", progressed.history)
        if watch:
            steps = steps_per_epoch(train_set, config.train.batch_size)
            watch(Report(epoch, (epoch + 1) * steps, config.train.epochs * steps, summary["loss"], summary))
        world.barrier()

    path = output / "model.safetensors"
    if world.main:
        acquaint_saved(path, str(device), train_set.captions, val_set)
    world.barrier()
    return TrainedRun(load_model(path, device=str(device)), path, progressed.history)


def _check_batch(config: Config, world: World) -> None:
    size, chunk = config.train.batch_size, config.train.chunk_size
    if size % world.size:
        raise ConfigError(f"train.batch_size = {size} does not divide over {world.size} processes; choose a multiple")
    split = world.size > 1 or 0 < chunk < size
    if split and config.encoder.kind != "clip" and not config.encoder.freeze_batch_norm:
        raise ConfigError(
            "a batch in chunks or processes gives batch norm other statistics; set encoder.freeze_batch_norm = true"
        )


def build_start(config: Config, train_set: Dataset) -> DualEncoder:
    """Return the encoder that ``config`` names, as it is before training."""
    if config.encoder.kind == "clip":
        from evidex.encoders.clip import ClipEncoder

        settings = config.encoder
        if Path(settings.source).suffix in (".pt", ".bin", ".safetensors"):
            return ClipEncoder.from_open_clip(
                settings.source, tokenizer=settings.tokenizer, activation=settings.activation
            )
        return ClipEncoder.from_pretrained(settings.source)
    encoder: TowerEncoder = (
        from_pretrained_towers(config.encoder)
        if config.encoder.kind == "towers"
        else new_compact(config.encoder, train_set.captions)
    )
    encoder.freeze_batch_norm = config.encoder.freeze_batch_norm
    return encoder


def _epoch(
    epoch: int,
    config: Config,
    encoder: DualEncoder,
    average: WeightAverage | None,
    scale: nn.Parameter,
    optimizer: torch.optim.Optimizer,
    split: _Split,
    mentors: MentorFeatures,
    device: torch.device,
    world: World,
    watch: Watcher | None,
) -> dict[str, Any]:
    """Run one epoch's steps and return its mean loss parts and speed."""
    steps = steps_per_epoch(split.dataset, config.train.batch_size)
    total = steps * config.train.epochs
    sums: dict[str, float] = {}
    started = time.perf_counter()
    encoder.train()
    batches = epoch_batches(
        split.dataset,
        batch_size=config.train.batch_size,
        pairings=config.data.captions_per_image,
        seed=config.seed,
        epoch=epoch,
    )
    for batch in batches:
        set_learning_rate(optimizer, cosine(batch.step, total, config.train.warmup_steps))
        generator = step_generator(config.seed, batch.step)
        pairs = _pairs(batch, split, encoder, mentors, config, generator, device)
        parts = _step(encoder, scale, optimizer, pairs, config, batch.step / steps, generator, batch.step, world)
        if average:
            average.update(batch.step)
        numbers = parts.numbers()
        for name, value in numbers.items():
            sums[name] = sums.get(name, 0.0) + value
        if watch:
            watch(Report(epoch, batch.step + 1, total, numbers))
    seconds = time.perf_counter() - started
    return {
        "epoch": epoch + 1,
        "loss": {name: value / steps for name, value in sums.items()},
        "scale": float(scale.detach().exp()),
        "pairs_per_second": steps * config.train.batch_size / seconds,
    }


def _step(
    encoder: DualEncoder,
    scale: nn.Parameter,
    optimizer: torch.optim.Optimizer,
    pairs: Pairs,
    config: Config,
    epoch: float,
    generator: torch.Generator,
    step: int,
    world: World,
) -> LossParts:
    optimizer.zero_grad(set_to_none=True)
    seed = int(torch.randint(2**40, (1,), generator=generator))
    try:
        parts = compute_gradients(
            encoder,
            scale,
            pairs,
            config.loss,
            epoch=epoch,
            seed=seed,
            chunk_size=config.train.chunk_size,
            bf16=config.train.bf16,
            world=world,
        )
    except TrainingError as error:
        raise TrainingError(f"step {step} (epoch {int(epoch) + 1}): {error}") from None
    if config.train.gradient_clip:
        nn.utils.clip_grad_norm_(encoder.parameters(), config.train.gradient_clip)
    optimizer.step()
    with torch.no_grad():
        scale.clamp_(0, np.log(100))  # CLIP's bound
    return parts


def _pairs(
    batch: Batch,
    split: _Split,
    encoder: DualEncoder,
    mentors: MentorFeatures,
    config: Config,
    generator: torch.Generator,
    device: torch.device,
) -> Pairs:
    """Return the batch on the device, pictures varied as the configuration says."""
    pixels = _rows(split.pixels, batch.images).to(device, non_blocking=True)
    if config.data.augment:
        pixels = augment(pixels, generator)
    if config.data.degrade:
        pixels = degrade(pixels, config.data.degrade, generator)
    sentences = split.sentences.of_caption[batch.captions.reshape(-1)]
    rows = torch.from_numpy(sentences).to(device)
    if config.data.substitute:
        texts = [split.sentences.texts[index] for index in sentences]
        varied = encoder.tokenize(_substituted(texts, config.data.substitute, generator))
        tokens = {name: ids.to(device) for name, ids in varied.items()}
    else:
        longest = int(split.lengths[sentences].max())
        tokens = {name: ids[rows, :longest] for name, ids in split.tokens.items()}
    return Pairs(
        pixels,
        tokens,
        None if mentors.image is None else mentors.image[torch.from_numpy(batch.images).to(device)],
        None if mentors.text is None else mentors.text[rows],
        rows,
        len(batch.captions),
    )


def _substituted(texts: list[str], share: float, generator: torch.Generator) -> list[str]:
    from evidex.degrade import Lexicon

    lexicon = Lexicon.load()
    rng = np.random.default_rng(int(torch.randint(2**40, (1,), generator=generator)))
    return [lexicon.substitute(text, rng) if rng.random() < share else text for text in texts]


def _prepare(dataset: Dataset, encoder: DualEncoder, progress: Progress) -> _Split:
    how = f"{type(encoder).__name__}-{encoder.image_size}"
    pixels = prepared_pixels(dataset, encoder.prepare_image, encoder.image_size, how, progress=progress)
    resident = encoder.device.type == "cuda" and pixels.nbytes < _RESIDENT_BYTES
    ready = torch.from_numpy(np.array(pixels)).to(encoder.device) if resident else pixels
    sentences = Sentences.of(dataset.captions)
    tokens = encoder.tokenize(sentences.texts)
    mask = tokens.get("attention_mask", torch.ones_like(tokens["input_ids"]))
    on_device = {name: ids.to(encoder.device) for name, ids in tokens.items()}
    return _Split(dataset, ready, sentences, on_device, mask.sum(1).numpy())


def _rows(pixels: np.ndarray | torch.Tensor, rows: np.ndarray) -> torch.Tensor:
    if isinstance(pixels, torch.Tensor):
        return pixels[torch.from_numpy(rows).to(pixels.device)]
    return torch.from_numpy(pixels[rows])


def _finished(encoder: DualEncoder, config: Config, split: _Split) -> DualEncoder:
    """Return what is kept of ``encoder``: itself, or a copy with whitened heads, as the configuration says."""
    if not config.train.whiten or not isinstance(encoder, TowerEncoder):
        return encoder
    encoder.eval()
    pixels = _rows(split.pixels, spread(len(split.pixels), _WHITENING_IMAGES))
    rows = torch.from_numpy(spread(len(split.lengths), _WHITENING_TEXTS)).to(encoder.device)
    return whitened(encoder, pixels, {name: ids[rows] for name, ids in split.tokens.items()}, config.train.whiten)


def _validate(encoder: DualEncoder, split: _Split) -> Recall:
    model = Model(encoder, temperature=1.0)
    images = model.encode_pixels(split.pixels, batch_size=256)
    texts = model.encode_texts(split.sentences.texts)[split.sentences.of_caption]
    return recall(match(images, texts).similarity, split.dataset.image_of_caption)


def _save_best(output: Path, encoder: DualEncoder, config: Config, epoch: int, scores: Recall) -> None:
    card = {"config": to_table(config), "epoch": epoch + 1, "val": scores.to_json()}
    Model(encoder, config.loss.temperature, card=card).save(output / "model.safetensors")
