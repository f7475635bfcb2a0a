"""The text tower: a BERT-shaped transformer in plain torch.

Parameter names are those of BERT checkpoints, so that MiniLM loads as it is; with a small shape and
random weights it is also the text tower of models trained from nothing. MPNet is the same but for its distances, which
all layers share, and for its names (`published_text`).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.functional import gelu, scaled_dot_product_attention

from evidex.encoders.sizes import TEXT_EPSILON, distance_buckets


@dataclass(frozen=True)
class TextShape:
    """The size of a text tower; the defaults are the small one of ours."""

    vocabulary: int
    hidden: int = 192
    layers: int = 2
    heads: int = 4
    intermediate: int = 512
    positions: int = 64
    token_types: int = 2
    """Rows of which the first is added to every token: BERT's two sentences; MPNet has none."""
    distances: int = 0
    """Buckets of the distance between tokens, for each of which each head learns how much it looks there; or none."""
    epsilon: float = TEXT_EPSILON

    def described(self) -> dict[str, Any]:
        """The sizes as a model's description has them: what only some towers have is left out of the others'."""
        sizes, usual = dataclasses.asdict(self), {each.name: each.default for each in dataclasses.fields(self)}
        return {name: size for name, size in sizes.items() if name not in _RARE or size != usual[name]}


_RARE = ("token_types", "distances", "epsilon")


class TextTower(nn.Module):
    """Token ids and mask (n, length) → the mean of the last layer over the tokens that count, (n, hidden)."""

    def __init__(self, shape: TextShape, dropout: float = 0.0) -> None:
        super().__init__()
        self.shape = shape
        self.out_dim = shape.hidden
        self.embeddings = _Embeddings(shape, dropout)
        self.encoder = _Encoder(shape, dropout)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)
            if isinstance(module, nn.Linear):
                nn.init.zeros_(module.bias)

    def tokens(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """Return the last layer, (n, length, hidden)."""
        hidden: torch.Tensor = self.embeddings(input_ids)
        attend = self.encoder.attend(attention_mask)
        for layer in self.encoder.layer:
            hidden = layer(hidden, attend)
        return hidden

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        hidden = self.tokens(input_ids, attention_mask)
        weight = attention_mask[..., None].to(hidden.dtype)
        return (hidden * weight).sum(1) / weight.sum(1)

    def hidden_units(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> list[torch.Tensor]:
        """Return what the hidden units of each layer give for each token that counts, (tokens, intermediate) each."""
        hidden, attend = self.embeddings(input_ids), self.encoder.attend(attention_mask)
        given = []
        for layer in self.encoder.layer:
            assert isinstance(layer, _Layer)
            attended = layer.attention(hidden, attend)
            units = layer.units(attended)
            hidden = layer.output(units, attended)
            given.append(units[attention_mask.bool()])
        return given

    def entry(self) -> nn.Module:
        """The module whose output is the first tokens."""
        return self.embeddings

    def blocks(self) -> list[nn.Module]:
        """The layers that follow one another from there."""
        return list(self.encoder.layer)

    def fit(self, name: str, value: torch.Tensor) -> torch.Tensor:
        """Return the published tensor ``name`` as this tower needs it: no more positions than it reads."""
        return value[: self.shape.positions] if name == "embeddings.position_embeddings.weight" else value


class _Embeddings(nn.Module):
    def __init__(self, shape: TextShape, dropout: float) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(shape.vocabulary, shape.hidden)
        self.position_embeddings = nn.Embedding(shape.positions, shape.hidden)
        self.token_type_embeddings = nn.Embedding(shape.token_types, shape.hidden) if shape.token_types else None
        self.LayerNorm = nn.LayerNorm(shape.hidden, eps=shape.epsilon)
        self.dropout = nn.Dropout(dropout)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        positions = self.position_embeddings(torch.arange(ids.shape[1], device=ids.device))
        total = self.word_embeddings(ids) + positions
        if self.token_type_embeddings is not None:
            total = total + self.token_type_embeddings(torch.zeros_like(ids))
        result: torch.Tensor = self.dropout(self.LayerNorm(total))
        return result


class _Encoder(nn.Module):
    def __init__(self, shape: TextShape, dropout: float) -> None:
        super().__init__()
        self.layer = nn.ModuleList(_Layer(shape, dropout) for _ in range(shape.layers))
        self.relative_attention_bias: nn.Embedding | None = None
        if shape.distances:
            self.relative_attention_bias = nn.Embedding(shape.distances, shape.heads)
            buckets = torch.empty((shape.positions, shape.positions), dtype=torch.int64)
            if not buckets.is_meta:  # a wrong size must not be laid out before it is held against the weights
                buckets.copy_(torch.from_numpy(distance_buckets(shape.positions, shape.distances)))
            self.register_buffer("buckets", buckets, persistent=False)

    def attend(self, mask: torch.Tensor) -> torch.Tensor:
        """Which tokens are looked at, (n, 1, 1, length), or how much, (n, heads, length, length)."""
        counts = mask[:, None, None, :].bool()
        if self.relative_attention_bias is None:
            return counts
        length = mask.shape[1]
        buckets = self.get_buffer("buckets")[:length, :length]
        bias: torch.Tensor = self.relative_attention_bias(buckets).permute(2, 0, 1)
        return torch.where(counts, bias, -torch.inf)


class _Layer(nn.Module):
    def __init__(self, shape: TextShape, dropout: float) -> None:
        super().__init__()
        self.attention = _Attention(shape, dropout)
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(shape.hidden, shape.intermediate)})
        self.output = _Output(shape.intermediate, shape, dropout)

    def forward(self, hidden: torch.Tensor, attend: torch.Tensor) -> torch.Tensor:
        attended = self.attention(hidden, attend)
        result: torch.Tensor = self.output(self.units(attended), attended)
        return result

    def units(self, attended: torch.Tensor) -> torch.Tensor:
        """Return what the layer's hidden units give, (n, length, intermediate)."""
        return gelu(self.intermediate["dense"](attended))


class _Attention(nn.Module):
    def __init__(self, shape: TextShape, dropout: float) -> None:
        super().__init__()
        self.heads = shape.heads
        self.self = nn.ModuleDict({name: nn.Linear(shape.hidden, shape.hidden) for name in ("query", "key", "value")})
        self.output = _Output(shape.hidden, shape, dropout)

    def forward(self, hidden: torch.Tensor, attend: torch.Tensor) -> torch.Tensor:
        count, length, width = hidden.shape
        query, key, value = (
            self.self[name](hidden).view(count, length, self.heads, -1).transpose(1, 2)
            for name in ("query", "key", "value")
        )
        mixed = scaled_dot_product_attention(query, key, value, attend).transpose(1, 2).reshape(count, length, width)
        result: torch.Tensor = self.output(mixed, hidden)
        return result


class _Output(nn.Module):
    """A projection, added to what went in and normalised."""

    def __init__(self, inputs: int, shape: TextShape, dropout: float) -> None:
        super().__init__()
        self.dense = nn.Linear(inputs, shape.hidden)
        self.LayerNorm = nn.LayerNorm(shape.hidden, eps=shape.epsilon)
        self.dropout = nn.Dropout(dropout)

    def forward(self, inner: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.LayerNorm(hidden + self.dropout(self.dense(inner)))
        return result
