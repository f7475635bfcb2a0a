"""CLIP's image tower, a vision transformer in plain torch, under the names of its published weights."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import nn
from torch.nn.functional import interpolate, scaled_dot_product_attention

from evidex.encoders.image_tower import ImageTower
from evidex.encoders.sizes import CLIP_PIXELS
from evidex.errors import ModelError

Pooling = Literal["mean", "cls", "cls_mean", "projected"]

PRETRAINED_SIZE = 224
_PATCH, _WIDTH, _LAYERS, _HEADS, _PROJECTED = 16, 768, 12, 12, 512


class ClipImageTower(ImageTower):
    """ViT-B/16 as OpenAI trained it: QuickGELU, a norm before and after the layers, a class token.

    ``pooling``: the patches' mean, the class token, both side by side, or the class token through CLIP's own
    projection into the space it shared with CLIP's texts (what a frozen mentor gives).
    """

    pixels = CLIP_PIXELS
    channels = (_WIDTH, _WIDTH, _WIDTH, _WIDTH)

    def __init__(self, pooling: Pooling = "mean", image_size: int = PRETRAINED_SIZE) -> None:
        super().__init__()
        if pooling not in get_args(Pooling):
            raise ModelError(f"unknown pooling '{pooling}' of CLIP's tower; choose {', '.join(get_args(Pooling))}")
        if image_size % _PATCH:
            raise ModelError(f"{image_size} pixels do not divide into patches of {_PATCH}; choose a multiple")
        self.pooling = pooling
        self.out_dim = {"mean": _WIDTH, "cls": _WIDTH, "cls_mean": 2 * _WIDTH, "projected": _PROJECTED}[pooling]
        self.embeddings = _Embeddings((image_size // _PATCH) ** 2)
        self.pre_layrnorm = nn.LayerNorm(_WIDTH, eps=1e-5)  # spelt as in the published weights
        self.encoder = _Layers()
        self.post_layernorm = nn.LayerNorm(_WIDTH, eps=1e-5)
        if pooling == "projected":
            self.visual_projection = nn.Linear(_WIDTH, _PROJECTED, bias=False)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        tokens: torch.Tensor = self.pre_layrnorm(self.embeddings(pixels))
        for layer in self.encoder.layers:
            tokens = layer(tokens)
        if self.pooling == "mean":
            return self._normed(tokens[:, 1:].mean(1))
        cls = self._normed(tokens[:, 0])
        if self.pooling == "cls":
            return cls
        if self.pooling == "cls_mean":
            return torch.cat([cls, self._normed(tokens[:, 1:].mean(1))], -1)
        projected: torch.Tensor = self.visual_projection(cls)
        return projected

    def grids(self, pixels: torch.Tensor) -> list[torch.Tensor]:
        """The patches after each quarter of the layers: a transformer has one scale, so all grids are of one size."""
        tokens: torch.Tensor = self.pre_layrnorm(self.embeddings(pixels))
        found = []
        for number, layer in enumerate(self.encoder.layers, start=1):
            tokens = layer(tokens)
            if number % (_LAYERS // 4) == 0:
                patches = tokens[:, 1:]
                found.append(self._normed(patches) if number == _LAYERS else patches)
        side = round(found[0].shape[1] ** 0.5)
        return [patches.transpose(1, 2).unflatten(2, (side, side)) for patches in found]

    def entry(self) -> nn.Module:
        return self.pre_layrnorm

    def blocks(self) -> list[nn.Module]:
        return list(self.encoder.layers)

    def _normed(self, token: torch.Tensor) -> torch.Tensor:
        normed: torch.Tensor = self.post_layernorm(token)
        return normed

    def fit(self, name: str, value: torch.Tensor) -> torch.Tensor:
        """Stretch the grid of learned positions to this tower's number of patches."""
        wanted = self.embeddings.position_embedding.weight.shape[0] - 1
        if name != "embeddings.position_embedding.weight" or len(value) == wanted + 1:
            return value
        side, target = round((len(value) - 1) ** 0.5), round(wanted**0.5)
        grid = value[1:].float().T.reshape(1, -1, side, side)
        stretched = interpolate(grid, (target, target), mode="bicubic", align_corners=False, antialias=target < side)
        return torch.cat([value[:1].float(), stretched.flatten(2)[0].T])


class _Embeddings(nn.Module):
    def __init__(self, patches: int) -> None:
        super().__init__()
        self.class_embedding = nn.Parameter(0.02 * torch.randn(_WIDTH))
        self.patch_embedding = nn.Conv2d(3, _WIDTH, _PATCH, _PATCH, bias=False)
        self.position_embedding = nn.Embedding(1 + patches, _WIDTH)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        patches = self.patch_embedding(pixels).flatten(2).transpose(1, 2)
        cls = self.class_embedding.to(patches.dtype).expand(len(patches), 1, -1)
        return torch.cat([cls, patches], 1) + self.position_embedding.weight.to(patches.dtype)


class _Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(_Layer() for _ in range(_LAYERS))


class _Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer_norm1 = nn.LayerNorm(_WIDTH, eps=1e-5)
        self.self_attn = _Attention()
        self.layer_norm2 = nn.LayerNorm(_WIDTH, eps=1e-5)
        self.mlp = _Mlp()

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        tokens = tokens + self.self_attn(self.layer_norm1(tokens))
        result: torch.Tensor = tokens + self.mlp(self.layer_norm2(tokens))
        return result


class _Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(_WIDTH, _WIDTH) for _ in range(4))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        query, key, value = (
            projection(tokens).unflatten(-1, (_HEADS, -1)).transpose(1, 2)
            for projection in (self.q_proj, self.k_proj, self.v_proj)
        )
        mixed = scaled_dot_product_attention(query, key, value)
        result: torch.Tensor = self.out_proj(mixed.transpose(1, 2).flatten(2))
        return result


class _Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(_WIDTH, 4 * _WIDTH), nn.Linear(4 * _WIDTH, _WIDTH)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        inner = self.fc1(tokens)
        result: torch.Tensor = self.fc2(inner * torch.sigmoid(1.702 * inner))  # QuickGELU
        return result
