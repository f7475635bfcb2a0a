"""A whole training run: data → steps → evaluation on val → checkpoint, epoch by epoch."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from evidex.config import Config
from evidex.data.sources import load_sources
from evidex.encoders.model import Model, load_model
from evidex.errors import TrainingError
from evidex.files import check_folder
from evidex.losses.total import LossParts
from evidex.progress import Progress, silent
from evidex.training.batches import epoch_batches, step_generator
from evidex.training.distributed import World
from evidex.training.lessons import Lessons
from evidex.training.material import (
    TrainingMaterial,
    mix_of,
    pictured_words,
    prepare,
    shown_texts,
    taught_captions,
    taught_texts,
    val_set,
)
from evidex.training.measure_domain import measure_saved_domain, pretrained_text_tower
from evidex.training.run_folder import RunFolder
from evidex.training.schedule import cosine, set_learning_rate
from evidex.training.start import build_start, check_batch, compile_layers, domain_before
from evidex.training.state import Progressed, TrainState
from evidex.training.step import take_step
from evidex.training.validation import finished, validate


@dataclass(frozen=True)
class Report:
    """What a watcher hears after each step, and after each epoch with ``epoch_summary``."""

    epoch: int
    step: int
    total_steps: int
    parts: dict[str, float]
    epoch_summary: dict[str, Any] | None = None


Watcher = Callable[[Report], None]


def _unheard(report: Report) -> None:
    """The watcher of a run that nobody watches."""


@dataclass(frozen=True)
class TrainedRun:
    """A finished run: the best weights on val, and its history."""

    model: Model
    model_path: Path
    history: list[dict[str, Any]]


def train(
    config: Config,
    *,
    device: torch.device | None = None,
    restart: bool = False,
    watch: Watcher | None = None,
    progress: Progress = silent,
) -> TrainedRun:
    """Train as ``config`` says, from the run's checkpoint if there is one, and return the best model on val."""
    sources = load_sources(config.data)
    steps = mix_of(sources, config).steps(config.train.batch_size)
    check_folder(Path(config.output))
    world, watch = World.start(), watch or _unheard
    check_batch(config, world)
    device = device or torch.device("cuda" if torch.cuda.is_available() else "cpu")

    torch.manual_seed(config.seed if config.encoder.seed < 0 else config.encoder.seed)
    state = TrainState.begin(
        build_start(config, shown_texts(sources), taught_captions(sources)).to(device), config.train, config.loss
    )
    if config.train.compile:
        compile_layers(state.encoder)
    folder = RunFolder(config, sources.all, writes=world.main)
    folder.open(state, restart=restart)
    material = prepare(config, sources, state.encoder, device, progress)

    total = config.train.epochs * steps
    for epoch in range(state.progressed.epoch, config.train.epochs):
        summary = _epoch(epoch, state, material.lessons, config, world, watch)
        _close_epoch(summary, state, config, folder, material)
        watch(Report(epoch, total * (epoch + 1) // config.train.epochs, total, summary["loss"], summary))
        world.barrier()

    if world.main:
        taught, tower = [*taught_texts(sources), *sources.texts], pretrained_text_tower(config.encoder)
        before, pictured = domain_before(config), pictured_words(sources)
        measure_saved_domain(folder.model, str(device), taught, val_set(sources), tower, before, pictured)
    world.barrier()
    return TrainedRun(
        load_model(folder.model, device=str(device), engine="torch"), folder.model, state.progressed.history
    )


def _epoch(
    epoch: int, state: TrainState, lessons: Lessons, config: Config, world: World, watch: Watcher
) -> dict[str, Any]:
    """Run one epoch's steps and return its mean loss parts and speed."""
    dataset, size = lessons.split.dataset, config.train.batch_size
    steps = lessons.mix.steps(size)
    total = steps * config.train.epochs
    pairings = config.data.captions_per_image
    sums: dict[str, float] = {}
    taken: tuple[int, LossParts] | None = None

    def hear() -> None:
        """Wait for the step that was taken last, and count and tell what it came to."""
        if taken is None:
            return
        numbers = _numbers(*taken, steps)
        for name, value in numbers.items():
            sums[name] = sums.get(name, 0.0) + value
        watch(Report(epoch, taken[0] + 1, total, numbers))

    started = time.perf_counter()
    state.encoder.train()
    each = config.data.epoch == "pairs"
    for batch in epoch_batches(
        dataset, batch_size=size, pairings=pairings, seed=config.seed, epoch=epoch, mix=lessons.mix, each=each
    ):
        generator = step_generator(config.seed, batch.step)
        pairs = lessons.pairs(batch, state.encoder, generator)  # while the device is at the step before
        hear()
        set_learning_rate(state.optimizer, cosine(batch.step, total, config.train.warmup_steps))
        parts = take_step(state, pairs, config, step=batch.step, steps=steps, generator=generator, world=world)
        taken = batch.step, parts
    hear()
    seconds = time.perf_counter() - started
    return {
        "epoch": epoch + 1,
        "loss": {name: value / steps for name, value in sums.items()},
        "scale": float(state.scale.detach().exp()),
        "pairs_per_second": steps * size / seconds,
    }


def _numbers(step: int, parts: LossParts, steps: int) -> dict[str, float]:
    try:
        return parts.numbers()
    except TrainingError as error:
        raise TrainingError(f"step {step} (epoch {step // steps + 1}): {error}") from None


def _close_epoch(
    summary: dict[str, Any],
    state: TrainState,
    config: Config,
    folder: RunFolder,
    material: TrainingMaterial,
) -> None:
    """Measure on val where it is due, keep what is best, and save where the run stands; ``summary`` gets the scores."""
    done, best = summary["epoch"], state.progressed.best_rsum
    last = done == config.train.epochs
    if last or done % config.train.evaluate_every == 0:
        encoder = finished(state.kept, config.train.whiten, material.lessons.split)
        found = validate(encoder, material.val)
        scores = found.recall
        summary |= {"val_rsum": scores.rsum, "val_i2t": scores.i2t, "val_t2i": scores.t2i}
        if len(found.sources) > 1:
            summary["val_sources"] = found.sources
        if scores.rsum > best:
            folder.save_best(encoder, state.temperature(config.loss), done, found)
        best = max(best, scores.rsum)
    state.progressed = Progressed(done, [*state.progressed.history, summary], best)
    folder.save(state, checkpoint=last or done % config.train.checkpoint_every == 0)
