"""The vision transformer of Unicom: patch tokens only, all of them into a feature head of two linear layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from evidex.encoders.state_dicts import check_state_dict
from evidex.errors import ModelError

_BATCH_NORM_EPS = 2e-5
_HEAD_WIDTH = 64


@dataclass(frozen=True)
class UnicomShape:
    image_size: int
    patch_size: int
    width: int
    hidden: int
    layers: int
    dim: int


class _Attention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.proj = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        heads = self.qkv(x).unflatten(-1, (3, -1, _HEAD_WIDTH))
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value)
        out: torch.Tensor = self.proj(mixed.transpose(1, 2).flatten(2))
        return out


class _Mlp(nn.Module):
    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width, hidden)
        self.fc2 = nn.Linear(hidden, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.fc2(functional.relu6(self.fc1(x)))
        return out


class _Block(nn.Module):
    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.norm2 = nn.LayerNorm(width)
        self.attn = _Attention(width)
        self.mlp = _Mlp(width, hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attn(self.norm1(x))
        out: torch.Tensor = x + self.mlp(self.norm2(x))
        return out


class Unicom(nn.Module):
    """Normalised images (n, 3, s, s) to features (n, dim). Module names are those of the published weights."""

    def __init__(self, shape: UnicomShape) -> None:
        super().__init__()
        patches = (shape.image_size // shape.patch_size) ** 2
        self.patch_embed = nn.ModuleDict({"proj": nn.Conv2d(3, shape.width, shape.patch_size, shape.patch_size)})
        self.pos_embed = nn.Parameter(torch.zeros(1, patches, shape.width))
        self.blocks = nn.ModuleList(_Block(shape.width, shape.hidden) for _ in range(shape.layers))
        self.norm = nn.LayerNorm(shape.width)
        self.feature = nn.Sequential(
            nn.Linear(shape.width * patches, shape.width, bias=False),
            nn.BatchNorm1d(shape.width, eps=_BATCH_NORM_EPS),
            nn.Linear(shape.width, shape.dim, bias=False),
            nn.BatchNorm1d(shape.dim, eps=_BATCH_NORM_EPS),
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.patch_embed["proj"](images).flatten(2).transpose(1, 2) + self.pos_embed
        for block in self.blocks:
            x = block(x)
        out: torch.Tensor = self.feature(self.norm(x).flatten(1))
        return out


def infer_shape(state: Mapping[str, torch.Tensor]) -> UnicomShape:
    needed = ("patch_embed.proj.weight", "pos_embed", "blocks.0.mlp.fc1.weight", "feature.2.weight")
    for key, dimensions in zip(needed, (4, 3, 2, 2), strict=True):
        if key not in state or state[key].dim() != dimensions:
            raise ModelError(f"{key} is missing or has the wrong shape; give the state dict of a Unicom ViT")
    width, _, patch_size, _ = state["patch_embed.proj.weight"].shape
    side = round(state["pos_embed"].shape[1] ** 0.5)
    numbers = (key.split(".")[1] for key in state if key.startswith("blocks."))
    if width % _HEAD_WIDTH:
        raise ModelError(f"the width {width} is no multiple of {_HEAD_WIDTH}; give the state dict of a Unicom ViT")
    return UnicomShape(
        image_size=side * patch_size,
        patch_size=patch_size,
        width=width,
        hidden=state["blocks.0.mlp.fc1.weight"].shape[0],
        layers=1 + max(int(number) for number in numbers if number.isdecimal()),
        dim=state["feature.2.weight"].shape[0],
    )


def load_unicom(state: Mapping[str, torch.Tensor], *, source: str) -> tuple[Unicom, UnicomShape]:
    """Build the network that ``state`` belongs to and fill it; every key has to fit."""
    shape = infer_shape(state)
    with torch.random.fork_rng(devices=[]):
        network = Unicom(shape)
    counters = [key for key in network.state_dict() if key.endswith("num_batches_tracked")]
    expected = {key: tuple(value.shape) for key, value in network.state_dict().items() if key not in counters}
    check_state_dict(state, expected, source=source, optional=counters)
    network.load_state_dict({key: value.float() for key, value in state.items() if key in expected}, strict=False)
    return network.eval(), shape
