"""Small trainable layers inside towers that stay as they are: where they attach, whatever the tower is made of.

They attach by hooks, so that the towers and the names of their weights are untouched. The hooks are methods of plain
objects: a copy of an encoder has hooks of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.functional import dropout

from evidex.errors import ModelError


@dataclass(frozen=True)
class Spot:
    """Where an adapter attaches to a block: to what ``target`` gives, with what ``tap`` gets as its input."""

    target: nn.Module
    tap: nn.Module | None
    """None: the adapter gets what ``target`` gives."""
    width: int
    grid: bool = False
    """Whether channels come before places, as in convolutions."""


def spot_of(block: nn.Module) -> Spot:
    """The feed-forward part of a transformer's layer, or the whole of a convolutional block."""
    norm, mlp = getattr(block, "layer_norm2", None), getattr(block, "mlp", None)
    if isinstance(norm, nn.LayerNorm) and isinstance(mlp, nn.Module):
        return Spot(mlp, norm, norm.normalized_shape[0])
    inner, output = getattr(block, "intermediate", None), getattr(block, "output", None)
    if isinstance(inner, nn.ModuleDict) and isinstance(output, nn.Module):
        dense, last = inner["dense"], output.dense
        assert isinstance(dense, nn.Linear)
        assert isinstance(last, nn.Linear)
        return Spot(last, dense, dense.in_features)
    norms = [module for module in block.modules() if isinstance(module, nn.BatchNorm2d)]
    if not norms:
        raise ModelError(f"an adapter has no place in a {type(block).__name__}; choose another tower")
    return Spot(block, None, norms[-1].num_features, grid=True)


class AdapterBeside:
    """Adds what ``adapter`` makes to what a spot's target gives."""

    def __init__(self, adapter: nn.Module, spot: Spot, *, tapped: bool) -> None:
        self._adapter = adapter
        self._grid = spot.grid
        self._tapped: torch.Tensor | None = None
        self._taps = tapped and spot.tap is not None
        if self._taps and spot.tap is not None:
            spot.tap.register_forward_pre_hook(self._remember)
        spot.target.register_forward_hook(self._add)

    def _remember(self, module: nn.Module, given: tuple[torch.Tensor, ...]) -> None:
        del module
        self._tapped = given[0]

    def _add(self, module: nn.Module, given: Any, made: torch.Tensor) -> torch.Tensor:
        del module, given
        source = made
        if self._taps:
            assert self._tapped is not None
            source, self._tapped = self._tapped, None
        if self._grid:
            added: torch.Tensor = self._adapter(source.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        else:
            added = self._adapter(source)
        return made + added.to(made.dtype)


class Dropping:
    """Drops a share of what ``entry`` gives while ``active``."""

    def __init__(self, entry: nn.Module, share: float) -> None:
        self.active = False
        self._share = share
        entry.register_forward_hook(self._drop)

    def _drop(self, module: nn.Module, given: Any, made: torch.Tensor) -> torch.Tensor | None:
        del module, given
        return dropout(made, self._share) if self.active else None


def freeze(encoder: nn.Module, learning: list[nn.Module]) -> None:
    """Let only ``learning`` learn."""
    encoder.requires_grad_(False)
    for module in learning:
        module.requires_grad_(True)
