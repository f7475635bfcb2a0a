"""Everything a run needs to go on, in one file that is replaced atomically."""

from __future__ import annotations

import json
import reprlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from evidex.checked import to_table
from evidex.config import Config, merged
from evidex.documents import parse_json
from evidex.errors import ModelError
from evidex.files import write_atomic
from evidex.training.state import Progressed, TrainState

FORMAT = 1
_OFF: dict[str, dict[str, Any]] = {  # what checkpoints of before say of switches that are gone
    "data": {"smallest_crop": 0.75, "erase": 0.0, "mask_words": 0.0},
    "loss": {"soft_targets": "none", "softness": 0.3, "soft_temperature": 0.1},
}


def save_checkpoint(path: Path, state: TrainState, config: dict[str, Any], taught: str) -> None:
    """Write the state after an epoch. Randomness needs no entry: it is a function of seed and step."""
    from safetensors.torch import save

    tensors = {f"encoder/{name}": value for name, value in state.encoder.state_dict().items()}
    if state.averaged is not None:
        tensors |= {f"average/{name}": value for name, value in state.averaged.state_dict().items()}
    tensors["scale"] = state.scale.detach()
    for index, moments in state.optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer/{index}/{name}": value for name, value in moments.items()}
    description = {"format": FORMAT, **asdict(state.progressed), "config": config, "taught": taught}
    owned = {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
    write_atomic(path, save(owned, {"evidex": json.dumps(description, allow_nan=False)}))


def load_checkpoint(path: Path, state: TrainState, config: dict[str, Any], taught: str) -> None:
    """Restore into ``state`` what ``save_checkpoint`` wrote; that of another configuration or other data is refused.

    ``taught`` tells the data apart; checkpoints of versions that did not note it are taken as they are.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as stream:
            description = parse_json((stream.metadata() or {}).get("evidex", "{}"))
            tensors = {name: stream.get_tensor(name) for name in stream.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelError(f"'{path}' is no readable checkpoint ({error}); remove it to start anew") from None
    found = description.get("format") if isinstance(description, dict) else None
    if found != FORMAT or not isinstance(description.get("config"), dict):
        raise ModelError(f"'{path}' has checkpoint format {reprlib.repr(found)}, this version reads {FORMAT}")
    before, now = _compared(description["config"]), _compared(config)
    if before != now:
        changed = _first_difference(before, now)
        raise ModelError(
            f"'{path}' belongs to another configuration ({changed}); choose another output or use --restart"
        )
    if description.get("taught", taught) != taught:
        raise ModelError(
            f"'{path}' belongs to other data (its files, captions or labels have changed since); choose another output "
            "or use --restart"
        )
    try:
        state.encoder.load_state_dict(_under("encoder/", tensors))
        if state.averaged is not None:
            state.averaged.load_state_dict(_under("average/", tensors))
        with torch.no_grad():
            state.scale.copy_(tensors["scale"])
        moments: dict[int, dict[str, torch.Tensor]] = {}
        for name, value in _under("optimizer/", tensors).items():
            index, _, key = name.partition("/")
            moments.setdefault(int(index), {})[key] = value
        groups = state.optimizer.state_dict()["param_groups"]
        state.optimizer.load_state_dict({"state": moments, "param_groups": groups})
        state.progressed = Progressed(
            int(description["epoch"]), list(description["history"]), float(description["best_rsum"])
        )
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        shapes = "its weights have other shapes: was another model started from?"
        cause = shapes if isinstance(error, RuntimeError) else str(error).partition("\n")[0]
        raise ModelError(f"'{path}' does not hold this run's state ({cause}); remove it to start anew") from None


def _compared(config: dict[str, Any]) -> dict[str, Any]:
    """Return ``config`` without what makes no other run: how often it is saved, and old switches that were off.

    Switches that are younger than a checkpoint are as they are where nobody sets them.
    """
    config = _plain(merged(to_table(Config()), config))
    ours = {**config, "train": {**config.get("train", {}), "checkpoint_every": None}}
    for section, switches in _OFF.items():
        values = ours.get(section, {})
        ours[section] = {key: value for key, value in values.items() if key not in switches or value != switches[key]}
    return ours


def _plain(config: dict[str, Any]) -> Any:
    """As a file holds it: a list is a list."""
    return parse_json(json.dumps(config))


def _under(prefix: str, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def _first_difference(old: dict[str, Any], new: dict[str, Any], prefix: str = "") -> str:
    for key in sorted(set(old) | set(new)):
        before, after = old.get(key), new.get(key)
        if before == after:
            continue
        if isinstance(before, dict) and isinstance(after, dict):
            return _first_difference(before, after, f"{prefix}{key}.")
        return f"{prefix}{key} was {reprlib.repr(before)}, is {reprlib.repr(after)}"
    return "no difference"
