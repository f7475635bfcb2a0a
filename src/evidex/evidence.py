"""Similarity → evidence → concentration → uncertainty (Eqs. 1–4).

Everything goes through logarithms: exp(1 / 0.01) overflows float32, and u is a function of one
well-behaved number, the log of the mean evidence m = log(mean_j exp(s_j / τ)):

    u = K / S = K / Σ(exp(s_j/τ) + 1) = 1 / (1 + mean_j exp(s_j/τ)) = sigmoid(−m)
"""

from __future__ import annotations

import math

import torch

Temperature = float | torch.Tensor
"""τ; a tensor without axes where it is learned."""


def evidence(similarity: torch.Tensor, temperature: float) -> torch.Tensor:
    """Return exp(s/τ), cut off at the largest finite number of the tensor's type (Eq. 2)."""
    similarity = at_least_float32(similarity)
    largest = math.log(torch.finfo(similarity.dtype).max) - 1
    return (similarity / temperature).clamp(max=largest).exp()


def concentration(similarity: torch.Tensor, temperature: float) -> torch.Tensor:
    """Return the Dirichlet parameters α = exp(s/τ) + 1 of each row (Eqs. 2–3)."""
    return evidence(similarity, temperature) + 1


def log_concentration(similarity: torch.Tensor, temperature: Temperature) -> torch.Tensor:
    """Return log α = log(exp(s/τ) + 1), finite wherever s/τ is."""
    scaled = at_least_float32(similarity) / temperature
    return torch.logaddexp(scaled, scaled.new_zeros(()))


def log_mean_evidence(
    similarity: torch.Tensor, temperature: Temperature, keep: torch.Tensor | None = None
) -> torch.Tensor:
    """Return m = log(mean_j exp(s_j/τ)) for each row, over the entries where ``keep`` is true."""
    scaled = at_least_float32(similarity) / temperature
    if keep is None:
        return scaled.logsumexp(-1) - math.log(scaled.shape[-1])
    count = keep.sum(-1).to(scaled.dtype)
    return scaled.masked_fill(~keep, -math.inf).logsumexp(-1) - count.log()


def uncertainty(similarity: torch.Tensor, temperature: float) -> torch.Tensor:
    """Return u = K / Σα of each row (…, K): the mass no evidence supports, in (0, 1)."""
    return torch.sigmoid(-log_mean_evidence(similarity, temperature))


def expected_probability(similarity: torch.Tensor, temperature: float) -> torch.Tensor:
    """Return E[p] = α / S of each row (Eq. 11)."""
    return log_concentration(similarity, temperature).softmax(-1)


def at_least_float32(values: torch.Tensor) -> torch.Tensor:
    """Half precision overflows above exp(11): evidence is never computed in it."""
    return values if values.dtype in (torch.float32, torch.float64) else values.float()
