"""Heads whose features are centred and less alike: fewer pictures that are near to every query.

Trained features share a common direction and a few dominant ones, so that some items become neighbours of everything
(hubs). Both modalities are centred on their own mean and brought into the common basis of their covariance, where each
direction is divided by a small power of its variance. All of it is linear and becomes part of the heads: a whitened
encoder has the shape, size and speed of the one it was made from.
"""

from __future__ import annotations

import copy

import torch
from torch import nn
from torch.nn.functional import normalize

from evidex.encoders.towers import TowerEncoder

_AT_ONCE = 256  # pictures or sentences that pass together
_LEAST_VARIANCE = 1e-6  # of the largest: what lies below is rounding


@torch.no_grad()
def whitened(
    encoder: TowerEncoder, pixels: torch.Tensor, tokens: dict[str, torch.Tensor], power: float
) -> TowerEncoder:
    """Return a copy of ``encoder`` whose heads flatten the spread of these pictures and sentences.

    A direction of variance λ is scaled by λ^−power: 0 centres only, ½ whitens fully.
    """
    images = torch.cat([encoder.image_projection(part.to(encoder.device)) for part in pixels.split(_AT_ONCE)]).double()
    count = len(tokens["input_ids"])
    sentences = [{name: ids[at : at + _AT_ONCE] for name, ids in tokens.items()} for at in range(0, count, _AT_ONCE)]
    texts = torch.cat([encoder.text_projection(part) for part in sentences]).double()
    mapping = flattening(images, texts, power)
    result = copy.deepcopy(encoder)
    _fold(result.image_head, images.mean(0), mapping)
    _fold(result.text_head, texts.mean(0), mapping)
    return result


def flattening(images: torch.Tensor, texts: torch.Tensor, power: float) -> torch.Tensor:
    """Return the symmetric map (dim, dim) for projections (n, dim) and (m, dim); both modalities weigh the same."""
    spread = torch.stack([_covariance(rows) for rows in (images, texts)]).mean(0)
    variance, basis = torch.linalg.eigh(spread)
    largest = variance[-1].clamp(min=torch.finfo(variance.dtype).tiny)  # features that are all alike have none
    scale = (variance / largest).clamp(min=_LEAST_VARIANCE).pow(-power)
    mapping: torch.Tensor = (basis * scale) @ basis.T
    return mapping


def _covariance(rows: torch.Tensor) -> torch.Tensor:
    """Of the centred rows at unit length, which is how they are compared."""
    directions = normalize(rows - rows.mean(0), dim=-1)
    return directions.T @ directions / len(rows)


def _fold(head: nn.Linear, mean: torch.Tensor, mapping: torch.Tensor) -> None:
    weight, bias = head.weight.double(), head.bias.double()
    head.weight.copy_(mapping @ weight)
    head.bias.copy_(mapping @ (bias - mean))
