"""Text towers with fewer hidden units: those that move texts most stay, the others become constants.

Most of what a text takes is computed between a layer's two dense layers. A unit there that gives about the same for all
texts can be left out, if what it gives in the mean is added to the bias of what comes after it.
"""

from __future__ import annotations

from typing import Any

import torch

from evidex.encoders.towers import TowerEncoder

_AT_ONCE = 256
"""Texts that pass together."""


@torch.no_grad()
def with_fewer_hidden(encoder: TowerEncoder, kept: int, tokens: dict[str, torch.Tensor]) -> TowerEncoder:
    """Return ``encoder`` with ``kept`` hidden units in each layer of its text tower, those that move ``tokens`` most.

    How far a unit moves texts is how much it varies over their words, times the length of its column of weights.
    """
    encoder.eval()
    spec, weights = encoder.spec(), dict(encoder.state_dict())
    shape: dict[str, Any] = spec["text_shape"]
    for number, (mean, spread) in enumerate(_units(encoder, tokens)):
        wide, narrow = (f"text_tower.encoder.layer.{number}.{part}.dense" for part in ("intermediate", "output"))
        columns = weights[f"{narrow}.weight"]
        moving = spread * columns.norm(dim=0)
        stay = moving.topk(kept).indices.sort().values
        gone = torch.ones(len(moving), dtype=torch.bool).index_fill(0, stay, False)
        weights[f"{narrow}.bias"] = weights[f"{narrow}.bias"] + columns[:, gone] @ mean[gone]
        weights[f"{narrow}.weight"] = columns[:, stay]
        for name in (f"{wide}.weight", f"{wide}.bias"):
            weights[name] = weights[name][stay]
    fewer = TowerEncoder({**spec, "text_shape": {**shape, "intermediate": kept}})
    fewer.load_state_dict(weights)
    return fewer.eval()


def _units(encoder: TowerEncoder, tokens: dict[str, torch.Tensor]) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Of each layer's hidden units the mean and the standard deviation over all words of the texts."""
    sums = [torch.zeros(2, 1, dtype=torch.float64) for _ in encoder.text_tower.blocks()]
    for start in range(0, len(tokens["input_ids"]), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        given = encoder.text_tower.hidden_units(tokens["input_ids"][part], tokens["attention_mask"][part])
        for at, units in enumerate(each.double() for each in given):
            sums[at] = sums[at] + torch.stack([units.sum(0), units.square().sum(0)])
    words = int(tokens["attention_mask"].sum())
    means = [(total / words, squares / words) for total, squares in sums]
    return [(mean.float(), (square - mean.square()).clamp(min=0).sqrt().float()) for mean, square in means]
