"""Heads that begin where captions and their pictures are most alike, instead of at random.

Pretrained towers know much, but not of each other: heads that are drawn at random send them gradients that undo part of
it before anything is aligned. Canonical correlation analysis of what the towers pool gives the directions in which
pictures and captions agree, in closed form. Each is weighed by how far it does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from evidex.encoders.towers import TowerEncoder
from evidex.training.splits import PreparedSplit

_AT_ONCE = 256  # pictures or sentences that pass together
_RIDGE = 0.1  # of the mean variance, added to each direction's: few pictures, many directions


@dataclass(frozen=True)
class Canonical:
    """The directions (inputs, r) of both sides, the side's mean, and how far each pair of directions agrees (r,)."""

    image: torch.Tensor
    text: torch.Tensor
    image_mean: torch.Tensor
    text_mean: torch.Tensor
    correlation: torch.Tensor


@torch.no_grad()
def align_heads(encoder: TowerEncoder, split: PreparedSplit, generator: torch.Generator) -> None:
    """Set both heads of ``encoder`` by the pairs of ``split``; ``generator`` turns the directions into the space."""
    encoder.eval()
    found = canonical(
        _pooled_images(encoder, split),
        _pooled_texts(encoder, split),
        torch.from_numpy(split.dataset.image_of_caption),
        torch.from_numpy(split.sentences.of_caption),
    )
    kept = min(len(found.correlation), encoder.dim)
    turn = torch.linalg.qr(torch.randn(encoder.dim, kept, generator=generator, dtype=torch.float64)).Q
    for head, directions, mean in (
        (encoder.image_head, found.image, found.image_mean),
        (encoder.text_head, found.text, found.text_mean),
    ):
        _set(head, turn @ (directions[:, :kept] * found.correlation[:kept]).T, mean)


def canonical(
    images: torch.Tensor, texts: torch.Tensor, image_of_pair: torch.Tensor, text_of_pair: torch.Tensor
) -> Canonical:
    """Return the canonical directions of the pairs of rows of ``images`` (n, p) and ``texts`` (m, q), with a ridge."""
    left, right = images.double()[image_of_pair], texts.double()[text_of_pair]
    means = left.mean(0), right.mean(0)
    left, right = left - means[0], right - means[1]
    half, other = (_inverse_root(rows.T @ rows / len(rows)) for rows in (left, right))
    shared = half @ (left.T @ right / len(left)) @ other
    u, correlation, v = torch.linalg.svd(shared, full_matrices=False)
    return Canonical(half @ u, other @ v.T, *means, correlation)


def _inverse_root(covariance: torch.Tensor) -> torch.Tensor:
    ridge = _RIDGE * covariance.diagonal().mean().clamp(min=torch.finfo(covariance.dtype).tiny)
    variance, basis = torch.linalg.eigh(covariance)
    root: torch.Tensor = (basis * (variance.clamp(min=0) + ridge).rsqrt()) @ basis.T
    return root


def _set(head: nn.Linear, weight: torch.Tensor, mean: torch.Tensor) -> None:
    """Give ``head`` these directions at the size of weights that it had, which learning rates are made for."""
    weight = weight * (head.weight.double().square().mean().sqrt().cpu() / weight.square().mean().sqrt())
    head.weight.copy_(weight)
    head.bias.copy_(-weight @ mean)


def _pooled_images(encoder: TowerEncoder, split: PreparedSplit) -> torch.Tensor:
    pixels = split.pixels if isinstance(split.pixels, torch.Tensor) else torch.from_numpy(np.array(split.pixels))
    if pixels.ndim == 2:  # of a locked tower, which has looked at them
        return pixels.cpu()
    tower = encoder.image_tower
    return torch.cat([tower(tower.normalise(part.to(encoder.device))).cpu() for part in pixels.split(_AT_ONCE)])


def _pooled_texts(encoder: TowerEncoder, split: PreparedSplit) -> torch.Tensor:
    ids, mask = split.tokens["input_ids"], split.tokens["attention_mask"]
    order = mask.sum(1).argsort(stable=True)
    parts = []
    for rows in order.split(_AT_ONCE):
        longest = int(mask[rows].sum(1).max())
        parts.append(encoder.text_tower(ids[rows, :longest], mask[rows, :longest]).cpu())
    return torch.cat(parts)[order.argsort().cpu()]
