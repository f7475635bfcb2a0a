"""Intra-modal relationship learning: the student keeps the mentor's neighbourhoods (Eqs. 15–18)."""

from __future__ import annotations

import torch

from evidex.losses.dirichlet import dirichlet_kl


def relation_loss(student: torch.Tensor, mentor: torch.Tensor, *, temperature: float) -> torch.Tensor:
    """Return L_RL of Eq. 17 for one modality: unit rows ``student`` (K, d) and ``mentor`` (K, d′).

    A mild temperature is needed: the divergence grows with exp(1/τ) of the diagonal.
    """
    if student.shape[0] != mentor.shape[0]:
        raise ValueError(f"student and mentor must have as many rows, not {student.shape[0]} and {mentor.shape[0]}")
    return dirichlet_kl(_relations(student, temperature), _relations(mentor.detach(), temperature)).mean()


def _relations(features: torch.Tensor, temperature: float) -> torch.Tensor:
    """Return the concentrations α = exp(⟨f_i, f_j⟩/τ) + 1 of Eq. 16."""
    features = features.double()
    return (features @ features.T / temperature).exp() + 1
