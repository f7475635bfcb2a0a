"""CUP: prompts in both towers of a frozen CLIP, those of a picture drawn from its context, with uncertainty.

"Cross-modal Remote Sensing Image-text Retrieval via Context and Uncertainty-aware Prompt", 2024. Learned tokens stand
after the first token of each sequence; the visual ones are mixed with what a small clustering network sees. A layer
says how wide a feature spreads, and the loss is the mean over ten features drawn so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.nn.functional import dropout, kl_div, nll_loss, normalize

from evidex.encoders.clip.encoder import ClipEncoder
from evidex.encoders.preprocess import normalise
from evidex.encoders.protocol import DualEncoder
from evidex.errors import ModelError
from evidex.losses.total import Features
from evidex.methods.adapters import freeze
from evidex.methods.context_cluster import ContextCluster
from evidex.methods.protocol import Implementation, MethodLesson
from evidex.methods.wrapped import MethodEncoder

_PROMPTS = 16
_DROPOUT = 0.1
_MOST_ADAPTED = 0.1  # share of a feature that its adapter may give
_SAMPLES = 10
_TINY = 1e-30


class _Prompts:
    """Puts tokens into what a module gives: between the first token and the others, or over those after the first."""

    def __init__(self, module: nn.Module, *, insert: bool) -> None:
        self.tokens: torch.Tensor | None = None
        self._insert = insert
        module.register_forward_hook(self._put)

    def _put(self, module: nn.Module, given: Any, made: torch.Tensor) -> torch.Tensor | None:
        del module, given
        if self.tokens is None:
            return None
        prompts = self.tokens.to(made.dtype)
        rest = made[:, 1:] if self._insert else made[:, 1 + prompts.shape[1] :]
        return torch.cat([made[:, :1], prompts, rest], 1)


class Adapted(nn.Module):
    """A unit feature (n, dim), with a small share of it from two layers, and how wide it spreads."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(dim, dim), nn.GELU(), nn.Linear(dim, dim))
        self.share = nn.Linear(dim, 1)
        self.spread = nn.Linear(dim, dim)

    def forward(self, feature: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        other = self.layers(feature)
        share = self.share(other).clamp(0, _MOST_ADAPTED)
        mixed = share * other + (1 - share) * feature
        return mixed, self.spread(mixed).clamp(min=0)


class CupEncoder(MethodEncoder):
    """A frozen CLIP with prompts; in training a row holds feature, spread and, of pictures, those of the context."""

    method = "cup"

    def __init__(self, base: DualEncoder) -> None:
        super().__init__(base)
        if not isinstance(base, ClipEncoder):
            raise ModelError("CUP puts prompts among the tokens of CLIP's two transformers; choose encoder.kind = clip")
        if base.image_size % 32:
            raise ModelError(f"CUP's clustering needs pictures of a multiple of 32 pixels, not {base.image_size}")
        freeze(base, [])
        width, text_width = base.architecture.image_width, base.architecture.text_width
        self.head = nn.ModuleDict(
            {
                "context": ContextCluster(width),
                "context_share": nn.Linear(width, 1),
                "context_feature": nn.Linear(width, base.dim),
                "context_spread": nn.Linear(base.dim, base.dim),
                "image_prompts": _Learned(width, 3 * base.architecture.patch_size**2),
                "image_mixed": _fan_out(width),
                "text_prompts": _Learned(text_width, 1),
                "image": Adapted(base.dim),
                "text": Adapted(base.dim),
            }
        )
        entry, _ = base.image_entry_and_blocks()
        self._into_image = _Prompts(entry, insert=True)
        words, _ = base.text_entry_and_blocks()
        self._into_text = _Prompts(
            next(part for part in words.modules() if isinstance(part, nn.Embedding)), insert=False
        )

    def train(self, mode: bool = True) -> CupEncoder:
        super().train(mode)
        self.base.eval()
        return self

    def image_features(self, pixels: torch.Tensor) -> torch.Tensor:
        return normalize(self._image(pixels)[0], dim=-1)

    def text_features(self, tokens: dict[str, torch.Tensor]) -> torch.Tensor:
        return normalize(self._text(tokens)[0], dim=-1)

    def image_outputs(self, pixels: torch.Tensor) -> torch.Tensor:
        return torch.cat(self._image(pixels), -1)

    def text_outputs(self, tokens: dict[str, torch.Tensor]) -> torch.Tensor:
        return torch.cat(self._text(tokens), -1)

    def _image(self, pixels: torch.Tensor) -> list[torch.Tensor]:
        base = self.base
        assert isinstance(base, ClipEncoder)
        seen = self.head["context"](normalise(pixels, base.mean, base.std))
        share = self.head["context_share"](seen)[:, None].clamp(0, 1)
        prompts = (1 - share) * seen[:, None] + share * self.head["image_prompts"]()
        self._into_image.tokens = dropout(self.head["image_mixed"](prompts), _DROPOUT, self.training)
        try:
            feature, spread = self.head["image"](base.image_features(pixels))
        finally:
            self._into_image.tokens = None
        context = self.head["context_feature"](seen)
        return [feature, spread, context, self.head["context_spread"](context).clamp(min=0)]

    def _text(self, tokens: dict[str, torch.Tensor]) -> list[torch.Tensor]:
        base = self.base
        assert isinstance(base, ClipEncoder)
        ids = tokens["input_ids"]
        room = base.architecture.context - _PROMPTS
        if ids.shape[1] > room:  # a text that is cut still has its end
            ids = torch.cat([ids[:, : room - 1], torch.full_like(ids[:, :1], base.architecture.end_token)], 1)
        held = ids[:, :1].expand(-1, _PROMPTS)  # these are written over
        self._into_text.tokens = self.head["text_prompts"]().expand(len(ids), -1, -1)
        try:
            unit = base.text_features({"input_ids": torch.cat([ids[:, :1], held, ids[:, 1:]], 1)})
        finally:
            self._into_text.tokens = None
        feature, spread = self.head["text"](unit)
        return [feature, spread]


class _Learned(nn.Module):
    """Learned tokens (1, prompts, width) through a layer, with dropout."""

    def __init__(self, width: int, fan: int) -> None:
        super().__init__()
        bound = math.sqrt(6 / (fan + width))
        self.tokens = nn.Parameter(torch.empty(1, _PROMPTS, width).uniform_(-bound, bound))
        self.layer = _fan_out(width)

    def forward(self) -> torch.Tensor:
        return dropout(self.layer(self.tokens), _DROPOUT, self.training)


def _fan_out(width: int) -> nn.Linear:
    layer = nn.Linear(width, width)
    nn.init.kaiming_normal_(layer.weight, a=0, mode="fan_out")
    return layer


def matching_loss(logits: torch.Tensor, ignore: torch.Tensor | None = None) -> torch.Tensor:
    """The negative log of the mean over draws (T, n, n) of the right one's probability, mean of both directions.

    Pairs that ``ignore`` marks are no negatives.
    """
    if ignore is not None:
        logits = logits.masked_fill(ignore, -math.inf)
    target = torch.arange(logits.shape[1], device=logits.device)
    count = math.log(len(logits))
    rows, columns = (each.log_softmax(-1).logsumexp(0) - count for each in (logits, logits.transpose(1, 2)))
    return (nll_loss(rows, target) + nll_loss(columns, target)) / 2


def mean_softmax(feature: torch.Tensor, spread: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
    """The mean over draws (T, n, d) of a feature's softmax over its dimensions."""
    return (feature + spread * noise).softmax(-1).mean(0)


class Cup(Implementation):
    """Matching of drawn features, likeness of both modalities' neighbourhoods, and a context that foretells them."""

    def wrap(self, base: DualEncoder, captions: Sequence[Sequence[str]]) -> DualEncoder:
        del captions
        return CupEncoder(base)

    def rebuild(self, base: DualEncoder, options: dict[str, Any]) -> DualEncoder:
        del options
        return CupEncoder(base)

    def loss(self, batch: Features, lesson: MethodLesson) -> dict[str, torch.Tensor]:
        image, spread, context, context_spread = batch.image.float().chunk(4, -1)
        text, text_spread = batch.text.float().chunk(2, -1)
        generator = torch.Generator().manual_seed(lesson.seed)
        shape = (6, _SAMPLES, *image.shape)
        noise = torch.randn(shape, generator=generator).to(image)
        drawn_image, drawn_text = image + spread * noise[0], text + text_spread * noise[1]
        logits = math.exp(lesson.encoder.start_scale) * drawn_image @ drawn_text.transpose(1, 2)
        near_image = mean_softmax(image, spread.detach(), noise[2])
        near_text = mean_softmax(text, text_spread.detach(), noise[3])
        told = mean_softmax(image, spread.detach(), noise[4]).detach()
        foretold = mean_softmax(context, context_spread, noise[5])
        return {
            "matching": matching_loss(logits, lesson.ignored(batch)),
            "neighbourhoods": (near_image @ near_image.T - near_text @ near_text.T).abs().mean(),
            "context": kl_div(foretold.clamp(min=_TINY).log(), told, reduction="none").mean(),
        }


METHOD = Cup()
