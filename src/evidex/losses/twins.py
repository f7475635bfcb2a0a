"""Captions against their twins: the same sentence with one thing exchanged, which the picture does not show."""

from __future__ import annotations

import torch
from torch.nn.functional import softplus

from evidex.evidence import Temperature, log_concentration


def twin_loss(true: torch.Tensor, twin: torch.Tensor, *, temperature: Temperature) -> torch.Tensor:
    """Return the evidential likelihood (Eq. 5) of each caption with its twin as the only negative, the mean over n.

    ``true`` and ``twin`` (n,): the similarity of each picture to its caption and to the caption's twin; 0 for none.
    """
    if true.shape != twin.shape or true.ndim != 1:
        raise ValueError(f"true and twin must be (n,), not {tuple(true.shape)} and {tuple(twin.shape)}")
    if not len(true):
        return true.sum().double()
    true, twin = (log_concentration(each.double(), temperature) for each in (true, twin))
    return softplus(twin - true).mean()
