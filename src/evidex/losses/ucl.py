"""Uncertainty–correctness alignment (Eqs. 12–14)."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch.nn.functional import softplus

from evidex.evidence import Temperature, log_concentration, log_mean_evidence
from evidex.losses.edl import NOTHING, both_directions, check_square

UclTarget = Literal["vacuity", "belief"]


def ucl_loss(
    similarity: torch.Tensor,
    *,
    temperature: Temperature,
    target: UclTarget = "vacuity",
    ignore: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return L_UCL of Eq. 14, the mean over the batch, for a square ``similarity`` (K, K) in [-1, 1].

    A row is correct when its positive is strictly more similar than every negative: a model that gives
    all pairs one score is wrong everywhere. ``target`` says which confidence is aligned: ``vacuity``,
    1 − K/S as in the paper, or ``belief``, the expected probability of the best match α_max/S, which
    sees where the evidence sits and not only how much there is.
    """
    check_square(similarity)
    both, positive, negative = both_directions(similarity.double(), ignore)
    best_negative = both.detach().masked_fill(~negative, -math.inf).amax(-1)
    correct = both.detach().diagonal(dim1=-2, dim2=-1) > best_negative
    if target == "vacuity":
        logit = log_mean_evidence(both, temperature, positive | negative)  # u = sigmoid(−logit)
    else:
        log_alpha = log_concentration(both, temperature).masked_fill(~(positive | negative), NOTHING)
        best = log_alpha.argmax(-1, keepdim=True)
        rest = log_alpha.scatter(-1, best, NOTHING).logsumexp(-1)
        logit = log_alpha.gather(-1, best).squeeze(-1) - rest  # α_max/S = sigmoid(logit)
    return softplus(torch.where(correct, -logit, logit)).mean(-1).sum()  # −log(1−u) or −log u, both directions
