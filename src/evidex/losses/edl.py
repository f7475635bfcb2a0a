"""Evidential learning between images and captions (Eqs. 5–10)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch.nn.functional import softplus

from evidex.evidence import Temperature, log_concentration, log_mean_evidence
from evidex.losses.dirichlet import dirichlet_kl

KlReduction = Literal["sum", "mean"]

NOTHING = -1e30  # the log of no evidence; −inf would give NaN gradients where a row has no negative at all


@dataclass(frozen=True)
class EdlParts:
    """The two parts of Eq. 8, each summed over both directions."""

    likelihood: torch.Tensor
    kl: torch.Tensor


def edl_loss(
    similarity: torch.Tensor,
    *,
    temperature: Temperature,
    kl_weight: float,
    weighted: bool = True,
    detach_weight: bool = False,
    kl_reduction: KlReduction = "sum",
    ignore: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return L_EDL of Eq. 10 for a square ``similarity`` (K, K) in [-1, 1] with positives on the diagonal.

    The defaults are the paper's equations to the letter; see ``edl_parts`` for the switches.
    """
    parts = edl_parts(
        similarity,
        temperature=temperature,
        weighted=weighted,
        detach_weight=detach_weight,
        kl=kl_weight != 0,
        kl_reduction=kl_reduction,
        ignore=ignore,
    )
    return parts.likelihood + kl_weight * parts.kl


def edl_parts(
    similarity: torch.Tensor,
    *,
    temperature: Temperature,
    weighted: bool = True,
    detach_weight: bool = False,
    kl: bool = True,
    kl_reduction: KlReduction = "sum",
    ignore: torch.Tensor | None = None,
) -> EdlParts:
    """Return the parts of L_EDL over both directions.

    ``weighted``: the weight 1 − u of Eq. 5. ``detach_weight``: no gradient through that weight, which
    otherwise rewards lowering all evidence. ``kl_reduction``: ``sum`` over the K concentrations as in
    Eq. 7, or that divided by K. ``ignore`` (K, K), bool: off-diagonal pairs that are no negatives,
    for example captions equal to the positive's; they bring no evidence and no penalty.
    """
    check_square(similarity)
    # K × K numbers in float64: cheap, and exact where float32 would cancel. Both directions together.
    both, positive, negative = both_directions(similarity.double(), ignore)
    log_alpha = log_concentration(both, temperature)

    # Eq. 5: log S − log α_ii, written so that it does not cancel when the positive has all the evidence.
    others = log_alpha.masked_fill(~negative, NOTHING).logsumexp(-1)
    nll = softplus(others - log_alpha.diagonal(dim1=-2, dim2=-1))
    if weighted:
        weight = torch.sigmoid(log_mean_evidence(both, temperature, positive | negative))  # 1 − u
        nll = (weight.detach() if detach_weight else weight) * nll

    likelihood = nll.mean(-1).sum()
    if not kl:
        return EdlParts(likelihood, nll.new_zeros(()))
    misleading = torch.where(negative, log_alpha, 0).exp()  # Eq. 7: α̃ is 1 at the positive
    divergence = dirichlet_kl(misleading, torch.ones_like(misleading)).mean(-1).sum()
    return EdlParts(likelihood, divergence / similarity.shape[-1] if kl_reduction == "mean" else divergence)


def both_directions(
    similarity: torch.Tensor, ignore: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return ``similarity`` (K, K) and its transpose as (2, K, K), and which of these are positives and negatives."""
    positive, negative = pair_masks(similarity, ignore)
    both = torch.stack([similarity, similarity.T])
    return both, positive.expand_as(both), torch.stack([negative, negative.T])


def pair_masks(similarity: torch.Tensor, ignore: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the masks (K, K) of the positives (the diagonal) and of the negatives that count."""
    positive = torch.eye(similarity.shape[0], dtype=torch.bool, device=similarity.device)
    negative = ~positive if ignore is None else ~(positive | ignore)
    return positive, negative


def check_square(similarity: torch.Tensor) -> None:
    if similarity.ndim != 2 or similarity.shape[0] != similarity.shape[1]:
        raise ValueError(
            f"similarity must be square (K, K) with positives on the diagonal, not {tuple(similarity.shape)}"
        )
