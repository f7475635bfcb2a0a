"""The settings of a benchmark in words."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

from evidex.config import Config
from evidex.evaluation.report.results import Results


def setting_pairs(results: Results) -> list[tuple[str, str]]:
    """What was done, on what, how."""
    plan = results.plan
    found = results.measured(results.our_jobs()[0].digest, "noisy")
    data = plan.dataset
    source = f"{data.scenes} scenes of {data.scene_size} px, rendered with seed {data.scene_seed}"
    pairs = [
        ("dataset", f"{found['dataset']} ({source if not data.path else Path(data.path).name})"),
        ("measured split", f"{data.split}: {found['images']:,} images, {found['captions']:,} captions"),
        ("seeds", _seeds(results)),
        (
            "noisy split",
            f"seed {plan.noise.seed}, severity {plan.noise.severity:g}: "
            f"{found['uncertainty']['i2t']['degraded']} images degraded, "
            f"{found['uncertainty']['t2i']['degraded']} captions changed",
        ),
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
    pairs.append(("machine", f"{platform.machine()}, {cores} cores, {platform.system()}"))
    return pairs


def without_places(table: dict[str, Any], results: Results) -> dict[str, Any]:
    """``table`` with the output folder's own path left out of its strings."""
    prefix = f"{results.place.output}{os.sep}"
    return {
        key: without_places(value, results)
        if isinstance(value, dict)
        else (value.removeprefix(prefix) if isinstance(value, str) else value)
        for key, value in table.items()
    }


def _training(config: Config) -> list[tuple[str, str]]:
    encoder, train, loss = config.encoder, config.train, config.loss
    return [
        ("encoder", f"{encoder.kind}, {encoder.image_tower} at {encoder.image_size} px, {encoder.dim} dimensions"),
        (
            "training",
            f"{train.epochs} epochs of batches of {train.batch_size}, AdamW, learning rate {train.learning_rate:g}, "
            f"weight decay {train.weight_decay:g}, cosine schedule",
        ),
        ("loss", f"τ = {loss.temperature:g}, b1 = {loss.b1:g}, b2 = {loss.b2:g}, b3 = {loss.b3:g}"),
    ]


def _seeds(results: Results) -> str:
    plan = results.plan
    named = {"comparison": plan.seeds}
    if plan.ablation.row:
        named["ablation"] = plan.ablation.seeds or plan.seeds
    if results.work.sensitivity:
        named["sensitivity"] = plan.sensitivity.seeds or plan.seeds
    return "; ".join(f"{name} {', '.join(map(str, seeds))}" for name, seeds in named.items())
