"""The text tower: a BERT-shaped transformer in plain torch.

Parameter names are those of BERT checkpoints, so that MiniLM loads as it is; with a small shape and
random weights it is also the text tower of models trained from nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.functional import gelu, scaled_dot_product_attention


@dataclass(frozen=True)
class TextShape:
    """The size of a text tower; the defaults are the small one of ours."""

    vocabulary: int
    hidden: int = 192
    layers: int = 2
    heads: int = 4
    intermediate: int = 512
    positions: int = 64


class TextTower(nn.Module):
    """Token ids and mask (n, length) → the mean of the last layer over the tokens that count, (n, hidden)."""

    def __init__(self, shape: TextShape, dropout: float = 0.0) -> None:
        super().__init__()
        self.shape = shape
        self.out_dim = shape.hidden
        self.embeddings = nn.ModuleDict(
            {
                "word_embeddings": nn.Embedding(shape.vocabulary, shape.hidden),
                "position_embeddings": nn.Embedding(shape.positions, shape.hidden),
                "token_type_embeddings": nn.Embedding(2, shape.hidden),
                "LayerNorm": nn.LayerNorm(shape.hidden, eps=1e-12),
            }
        )
        self.encoder = nn.ModuleDict({"layer": nn.ModuleList(_Layer(shape, dropout) for _ in range(shape.layers))})
        self._dropout = nn.Dropout(dropout)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)
            if isinstance(module, nn.Linear):
                nn.init.zeros_(module.bias)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        positions = torch.arange(input_ids.shape[1], device=input_ids.device)
        hidden = (
            self.embeddings["word_embeddings"](input_ids)
            + self.embeddings["position_embeddings"](positions)
            + self.embeddings["token_type_embeddings"](torch.zeros_like(input_ids))
        )
        hidden = self._dropout(self.embeddings["LayerNorm"](hidden))
        attend = attention_mask[:, None, None, :].bool()
        for layer in self.encoder["layer"]:
            hidden = layer(hidden, attend)
        weight = attention_mask[..., None].to(hidden.dtype)
        return (hidden * weight).sum(1) / weight.sum(1)


class _Layer(nn.Module):
    def __init__(self, shape: TextShape, dropout: float) -> None:
        super().__init__()
        self.heads = shape.heads
        self.attention = nn.ModuleDict(
            {
                "self": nn.ModuleDict({name: nn.Linear(shape.hidden, shape.hidden) for name in ("query", "key", "value")}),
                "output": _output(shape.hidden, shape.hidden),
            }
        )
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(shape.hidden, shape.intermediate)})
        self.output = _output(shape.intermediate, shape.hidden)
        self._dropout = nn.Dropout(dropout)

    def forward(self, hidden: torch.Tensor, attend: torch.Tensor) -> torch.Tensor:
        count, length, width = hidden.shape
        query, key, value = (
            self.attention["self"][name](hidden).view(count, length, self.heads, -1).transpose(1, 2)
            for name in ("query", "key", "value")
        )
        mixed = scaled_dot_product_attention(query, key, value, attend).transpose(1, 2).reshape(count, length, width)
        attention_output = self.attention["output"]
        hidden = attention_output["LayerNorm"](hidden + self._dropout(attention_output["dense"](mixed)))
        inner = gelu(self.intermediate["dense"](hidden))
        return self.output["LayerNorm"](hidden + self._dropout(self.output["dense"](inner)))


def _output(inputs: int, outputs: int) -> nn.ModuleDict:
    return nn.ModuleDict({"dense": nn.Linear(inputs, outputs), "LayerNorm": nn.LayerNorm(outputs, eps=1e-12)})
