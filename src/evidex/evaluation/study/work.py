"""One run of a study: train or put together, measure, and say it in one line of results."""

from __future__ import annotations

import gc
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evidex.documents import read_json
from evidex.errors import DataError, EvidexError, ModelError
from evidex.evaluation.engine.training import train_once
from evidex.evaluation.study.runs import Run

if TYPE_CHECKING:
    from evidex.encoders.model import Model


@dataclass(frozen=True)
class StudyPlace:
    """Where runs find the data and leave their models, and how long they may begin."""

    output: Path
    dataset: str
    deadline: float = float("inf")  # of time.time(): no run begins after it
    keep: bool = False  # checkpoints of finished runs


def do_run(run: Run, place: StudyPlace) -> dict[str, Any] | None:
    """The line of ``run``, its failure too; None where it was too late to begin."""
    from evidex.evaluation.study.measure import measure

    if time.time() > place.deadline:
        return None
    begun = time.monotonic()
    line: dict[str, Any] = {"name": run.key, "base": run.base, "set": list(run.overrides), "digest": run.digest}
    try:
        model = _committee(run, place, line) if run.members else _trained(run, place, line)
        line["train_seconds"] = round(time.monotonic() - begun, 1)
        line |= measure(model, place.dataset, run.measure)
    except (EvidexError, OSError, RuntimeError, ValueError):  # one bad run must not end the study
        line["error"] = traceback.format_exc()[-2000:]
    _free_memory()
    return line | {"seconds": round(time.monotonic() - begun, 1)}


def _trained(run: Run, place: StudyPlace, line: dict[str, Any]) -> Model:
    from evidex.encoders.model import load_model

    assert run.config is not None
    path, _ = train_once(run.config, run.digest, run.key, keep_checkpoint=place.keep)
    history = read_json(path.with_name("history.json"), DataError)
    line["curve"] = [round(epoch["val_rsum"], 2) for epoch in history if "val_rsum" in epoch]
    line["last"] = history[-1]
    return load_model(path)


def _committee(run: Run, place: StudyPlace, line: dict[str, Any]) -> Model:
    from evidex.encoders.averaging import averaged
    from evidex.encoders.committee import CommitteeEncoder
    from evidex.encoders.model import Model, load_model
    from evidex.encoders.towers import TowerEncoder

    models = [load_model(place.output / name / "model.safetensors", engine="torch") for name in run.members]
    towers = [model.encoder for model in models if isinstance(model.encoder, TowerEncoder)]
    if len(towers) < len(models):
        raise ModelError("a member is no model of towers; only those can be put together")
    line["members"] = list(run.members)
    temperature = float(np.mean([model.temperature for model in models]))
    together = averaged(towers) if run.averages else CommitteeEncoder(towers)
    model = Model(together, temperature, card={"members": line["members"]})
    folder = place.output / run.key
    folder.mkdir(parents=True, exist_ok=True)
    model.save(folder / "model.safetensors")
    return model


def _free_memory() -> None:
    import torch

    gc.collect()
    torch.cuda.empty_cache()
