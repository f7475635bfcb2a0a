"""The mean of several runs' weights: one encoder, no larger or slower than each of them.

Runs from one start that saw the pictures in other orders end in one basin, and the middle of it is better than its
rim (Wortsman et al., "Model soups", 2022). Runs whose heads started elsewhere have nothing in common to be averaged.
The mean of a model and what it began as knows most of what both know (Wortsman et al., "Robust fine-tuning", 2022).
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch

from evidex.encoders.towers import TowerEncoder
from evidex.errors import ModelError


@torch.no_grad()
def averaged(encoders: Sequence[TowerEncoder]) -> TowerEncoder:
    """Return an encoder with the mean of the weights of ``encoders``, which are all of one shape."""
    if not encoders:
        raise ModelError("an average of no models; give at least one")
    first, *others = encoders
    if any(_shape(other) != _shape(first) for other in others):
        raise ModelError("models of different shapes or vocabularies have no mean; average runs of one configuration")
    result = copy.deepcopy(first)
    states = [encoder.state_dict() for encoder in encoders]
    for name, value in result.state_dict().items():
        if value.is_floating_point():  # counts of steps, which batch norm keeps, are the first one's
            value.copy_(torch.stack([state[name].double() for state in states]).mean(0))
    return result


def _shape(encoder: TowerEncoder) -> dict[str, Any]:
    """What an encoder is made of; how it was trained is no part of that."""
    return {name: value for name, value in encoder.spec().items() if name != "dropout"}
