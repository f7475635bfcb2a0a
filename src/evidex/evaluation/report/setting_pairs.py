"""The settings of a benchmark in words."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evidex.config import Config, EncoderConfig, LossConfig
from evidex.evaluation.report.results import Results


def setting_pairs(parts: Sequence[Results]) -> list[tuple[str, str]]:
    """What was done, on what, how."""
    results, plan = parts[0], parts[0].plan
    pairs = [pair for part in parts for pair in _data(part)]
    pairs += [
        ("seeds", _seeds(results)),
        (
            "refinement",
            f"ρ = {plan.refinement.ratio:g} in the tables, four copies a query, seed {plan.refinement.seed}",
        ),
    ]
    if plan.start is not None:
        mentors = "; its towers are also the mentors of RL" if plan.start.mentors else ""
        pairs.append(
            (
                "common start",
                f"every training starts from one model, trained first with seed {plan.start.seed}{mentors}",
            )
        )
    config = results.our_jobs()[0].config
    if config is not None:
        pairs += _training(config)
    cores = os.cpu_count() or 1
    # Trainings may have run elsewhere, so this is no more than where the page was made.
    pairs.append(("page made on", f"{platform.machine()}, {cores} cores, {platform.system()}"))
    return pairs


def _data(results: Results) -> list[tuple[str, str]]:
    found = results.measured(results.our_jobs()[0].digest, "noisy")
    data, noise = results.place.data, results.plan.noise
    source = f"{data.scenes} scenes of {data.scene_size} px, rendered with seed {data.scene_seed}"
    return [
        ("dataset", f"{results.place.title} ({source if not data.path else Path(data.path).name})"),
        ("measured split", f"{data.split}: {found['images']:,} images, {found['captions']:,} captions"),
        (
            "noisy split",
            f"seed {noise.seed}, severity {noise.severity:g}: "
            f"{found['uncertainty']['i2t']['degraded']} images degraded, "
            f"{found['uncertainty']['t2i']['degraded']} captions changed",
        ),
    ]


def without_places(table: dict[str, Any], results: Results) -> dict[str, Any]:
    """``table`` with the output folder's own path left out of its strings."""
    prefix = f"{results.place.output}{os.sep}"
    return {
        key: without_places(value, results)
        if isinstance(value, dict)
        else (value.removeprefix(prefix) if isinstance(value, str) else value)
        for key, value in table.items()
    }


def encoder_words(encoder: EncoderConfig) -> str:
    """Which encoder it is; a CLIP brings its own towers, size and dimensions, whatever the other keys say."""
    if encoder.kind == "clip":
        return f"CLIP with its own two towers, from {Path(encoder.source).name if encoder.source else 'nothing'}"
    if encoder.kind == "model":
        return f"the model {Path(encoder.source).name or 'compact'}, trained on"
    text = f"{encoder.text_tower}" + (f", {encoder.text_layers} layers" if encoder.text_layers else "")
    return f"{encoder.kind}, {encoder.image_tower} at {encoder.image_size} px and {text}, {encoder.dim} dimensions"


def _training(config: Config) -> list[tuple[str, str]]:
    train, loss = config.train, config.loss
    return [
        ("encoder", encoder_words(config.encoder)),
        (
            "training",
            f"{train.epochs} epochs of batches of {train.batch_size}, AdamW, learning rate {train.learning_rate:g}, "
            f"weight decay {train.weight_decay:g}, cosine schedule",
        ),
        ("loss", loss_words(loss)),
    ]


def loss_words(loss: LossConfig) -> str:
    """The weights of the loss; of UCL also what it aligns, since Eq. 12 means the vacuity."""
    aligned = "vacuity (Eq. 12)" if loss.ucl_target == "vacuity" else f"{loss.ucl_target}, not Eq. 12's vacuity"
    ucl = f", UCL aligns {aligned}" if loss.ucl else ""
    return f"τ = {loss.temperature:g}, b1 = {loss.b1:g}, b2 = {loss.b2:g}, b3 = {loss.b3:g}{ucl}"


def _seeds(results: Results) -> str:
    plan = results.plan
    named = {"comparison": plan.seeds}
    if plan.ablation.row:
        named["ablation"] = plan.ablation.seeds or plan.seeds
    if results.work.sensitivity:
        named["sensitivity"] = plan.sensitivity.seeds or plan.seeds
    return "; ".join(f"{name} {', '.join(map(str, seeds))}" for name, seeds in named.items())
