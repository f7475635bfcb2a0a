"""The losses ELC is compared with, on the same similarity (K, K) with positives on the diagonal."""

from __future__ import annotations

import math

import torch
from torch.nn.functional import cross_entropy

from evidex.losses.edl import check_square, pair_masks


def info_nce_loss(
    similarity: torch.Tensor, *, scale: torch.Tensor | float, ignore: torch.Tensor | None = None
) -> torch.Tensor:
    """Return the symmetric InfoNCE loss of CLIP: cross entropy of softmax(scale · s), mean of both directions."""
    check_square(similarity)
    logits = similarity * scale
    target = torch.arange(len(logits), device=logits.device)
    if ignore is not None:
        _, negative = pair_masks(similarity, ignore)
        logits = logits.masked_fill(~negative & (target[:, None] != target), -math.inf)
    return 0.5 * (cross_entropy(logits, target) + cross_entropy(logits.T, target))


def hardest_triplet_loss(
    similarity: torch.Tensor, *, margin: float = 0.2, ignore: torch.Tensor | None = None
) -> torch.Tensor:
    """Return the VSE++ loss (Faghri et al., 2018): hinge on the hardest negative of each row and column."""
    check_square(similarity)
    _, negative = pair_masks(similarity, ignore)
    positive = similarity.diagonal()
    others = similarity.masked_fill(~negative, -math.inf)
    caption_cost = (margin + others.amax(1) - positive).clamp(min=0)
    image_cost = (margin + others.amax(0) - positive).clamp(min=0)
    return (caption_cost + image_cost).mean()


def all_triplets_loss(
    similarity: torch.Tensor, *, margin: float = 0.2, ignore: torch.Tensor | None = None
) -> torch.Tensor:
    """Return the sum of the hinges of every negative of each row and column, as losses before VSE++ took it."""
    check_square(similarity)
    _, negative = pair_masks(similarity, ignore)
    positive = similarity.diagonal()
    caption_cost = (margin + similarity - positive[:, None]).clamp(min=0)
    image_cost = (margin + similarity - positive).clamp(min=0)
    return torch.where(negative, caption_cost + image_cost, 0).sum()


def triplet_loss(
    similarity: torch.Tensor, *, hardest: bool, margin: float = 0.2, ignore: torch.Tensor | None = None
) -> torch.Tensor:
    """Return the hinges of the hardest negatives or of all of them, summed over rows and columns, divided by K.

    Where all pairs are about as similar, the hardest negative of a row is any other one, and drawing on it alone can
    draw everything into one point; the hinges of all negatives do not.
    """
    if hardest:
        return hardest_triplet_loss(similarity, margin=margin, ignore=ignore)
    return all_triplets_loss(similarity, margin=margin, ignore=ignore) / len(similarity)


def polynomial_loss(
    similarity: torch.Tensor,
    *,
    margin: float = 0.2,
    positive_coefficients: tuple[float, ...] = (0.5, -0.7, 0.2),
    negative_coefficients: tuple[float, ...] = (0.03, -0.4, 0.9),
    ignore: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return the universal weighting loss in its polynomial form (Wei et al., 2020, "Poly").

    In each row and column with an informative negative (one above the positive less ``margin``), the hardest one and
    the positive enter as polynomials of their similarity, none below 0. The coefficients, in rising order, are those
    of the authors' published code.
    """
    check_square(similarity)
    _, negative = pair_masks(similarity, ignore)
    positive = similarity.diagonal()
    hardest = torch.cat([similarity.masked_fill(~negative, -math.inf).amax(axis) for axis in (1, 0)])
    anchor = positive.repeat(2)
    informative = hardest > anchor - margin
    drawn = _polynomial(anchor, positive_coefficients).clamp(min=0)
    pushed = _polynomial(hardest, negative_coefficients).clamp(min=0)
    return torch.where(informative, drawn + pushed, 0).sum() / len(similarity)


def _polynomial(values: torch.Tensor, coefficients: tuple[float, ...]) -> torch.Tensor:
    total = torch.zeros_like(values)
    for coefficient in reversed(coefficients):
        total = total * values + coefficient
    return total
