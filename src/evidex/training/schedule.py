"""The learning rate and the averaged weights over the steps of a run."""

from __future__ import annotations

import math

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
    """Return AdamW with a group for each of image tower, text tower and what starts from nothing.

    Vectors (biases, norms) and the logit scale do not decay.
    """
    rates = {
        "image": config.learning_rate,
        "text": config.text_learning_rate or config.learning_rate,
        "head": config.head_learning_rate or config.learning_rate,
    }
    groups: dict[tuple[str, bool], list[nn.Parameter]] = {}
    for name, parameter in encoder.named_parameters():
        groups.setdefault((_part(name), parameter.ndim > 1), []).append(parameter)
    groups.setdefault(("head", False), []).append(scale)
    return torch.optim.AdamW(
        [
            {
                "params": parameters,
                "lr": rates[part],
                "base_lr": rates[part],
                "weight_decay": config.weight_decay if decays else 0.0,
            }
            for (part, decays), parameters in groups.items()
        ]
    )


def set_learning_rate(optimizer: torch.optim.Optimizer, share: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = group["base_lr"] * share


def _part(name: str) -> str:
    if name.startswith(("image_head", "text_head", "logit_scale")):
        return "head"
    return "image" if name.startswith(("image", "vision", "model.vision", "model.visual")) else "text"


@torch.no_grad()
def update_average(average: nn.Module, current: nn.Module, decay: float, step: int) -> None:
    """Move ``average`` towards ``current``; early on faster, so that the start is forgotten."""
    decay = min(decay, (1 + step) / (10 + step))
    target, source = list(average.state_dict().values()), list(current.state_dict().values())
    floating = [(a, b) for a, b in zip(target, source, strict=True) if a.is_floating_point()]
    torch._foreach_lerp_([a for a, _ in floating], [b for _, b in floating], 1 - decay)
    for a, b in zip(target, source, strict=True):
        if not a.is_floating_point():
            a.copy_(b)
