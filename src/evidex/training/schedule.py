"""The learning rate and the averaged weights over the steps of a run."""

from __future__ import annotations

import copy
import math
import re

import torch
from torch import nn

from evidex.config import TrainConfig
from evidex.encoders.protocol import DualEncoder


def cosine(step: int, total: int, warmup: int) -> float:
    """Return the share of the full learning rate at ``step``: linear up over ``warmup``, then half a cosine to zero."""
    if step < warmup:
        return (step + 1) / warmup
    return 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(total - warmup, 1)))


def build_optimizer(encoder: DualEncoder, scale: nn.Parameter, config: TrainConfig) -> torch.optim.AdamW:
    """Return AdamW with groups by rate: image tower, text tower, what starts from nothing, and layers if they differ.

    Vectors (biases, norms) and the logit scale do not decay.
    """
    rates = {
        "image": config.learning_rate,
        "text": config.text_learning_rate or config.learning_rate,
        "head": config.head_learning_rate or config.learning_rate,
    }
    named = list(encoder.named_parameters())  # what is locked too: it has no gradient, and a checkpoint counts them all
    depths = _depths([name for name, _ in named])
    groups: dict[tuple[str, int, bool], list[nn.Parameter]] = {}
    for name, parameter in named:
        below = depths[name] if config.layer_decay < 1 else 0
        groups.setdefault((_part(name), below, parameter.ndim > 1), []).append(parameter)
    groups.setdefault(("head", 0, False), []).append(scale)
    return torch.optim.AdamW(
        [
            {
                "params": parameters,
                "lr": (rate := rates[part] * config.layer_decay**below),
                "base_lr": rate,
                "weight_decay": config.weight_decay if decays else 0.0,
            }
            for (part, below, decays), parameters in groups.items()
        ],
        fused=scale.device.type == "cuda",
    )


_LAYER = re.compile(r"\.layers?\.(\d+)\.")


_ENTRIES = ("embedding", "pre_layrnorm", "relative_attention_bias")  # the last of MPNet, whose layers all share it


def _depths(names: list[str]) -> dict[str, int]:
    """Return how many layers lie above each parameter: those of a transformer by number, embeddings below them all."""
    layers = {name: int(match[1]) for name in names if (match := _LAYER.search(name))}
    count: dict[str, int] = {}
    for name, layer in layers.items():
        count[_part(name)] = max(count.get(_part(name), 0), layer + 1)
    depths = {}
    for name in names:
        total = count.get(_part(name), 0)
        entry = any(part in name for part in _ENTRIES)
        depths[name] = total - layers[name] if name in layers else total + 1 if entry and total else 0
    return depths


def set_learning_rate(optimizer: torch.optim.Optimizer, share: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = group["base_lr"] * share


def _part(name: str) -> str:
    name = name.removeprefix("base.")  # of an encoder that a method stands around
    if name.startswith(("head", "image_head", "text_head", "logit_scale")):
        return "head"
    return "image" if name.startswith(("image", "clip.vision", "clip.visual")) else "text"


def lock_images(encoder: DualEncoder, *, head: bool) -> None:
    """Keep what is made of pictures as it is: all of it with the ``head``, or what the head is given."""
    for name, parameter in encoder.named_parameters():
        if _part(name) == "image" or (head and name.startswith("image_head")):
            parameter.requires_grad_(False)


class WeightAverage:
    """An exponential average of an encoder's weights and statistics."""

    def __init__(self, current: DualEncoder, decay: float) -> None:
        self.encoder = copy.deepcopy(current).eval()
        self._decay = decay
        pairs = list(zip(self.encoder.state_dict().values(), current.state_dict().values(), strict=True))
        self._averaged = [pair for pair in pairs if pair[0].is_floating_point()]
        self._copied = [pair for pair in pairs if not pair[0].is_floating_point()]

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Move towards the current weights; early on faster, so that the start is forgotten."""
        decay = min(self._decay, (1 + step) / (10 + step))
        torch._foreach_lerp_([a for a, _ in self._averaged], [b for _, b in self._averaged], 1 - decay)
        for target, source in self._copied:
            target.copy_(source)
