"""FGVLA: nouns aligned with places beside whole captions with whole pictures, by adapters in frozen towers.

An adapter narrows what a layer's feed-forward part gives, lets its tokens attend to one another and widens it again.
At test time a tenth of the similarity is the mean over all nouns and places. That mean is an inner product of means,
so a row is a unit vector like any other: whole, mean part, and what is missing to unit length.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, normalize

from evidex.encoders.protocol import DualEncoder, Places
from evidex.losses.contrastive import all_triplets_loss, info_nce_loss
from evidex.losses.total import Features
from evidex.methods.adapters import AdapterBeside, Spot, freeze, spot_of
from evidex.methods.nouns import NounTokens
from evidex.methods.protocol import Implementation, MethodLesson, placed
from evidex.methods.wrapped import MethodEncoder

_NARROW, _HEADS = 128, 8
_MOST_PLACES = 256  # that attend to one another; the first grids of a convolutional tower have thousands
_WHOLE = 0.9  # of the similarity
_NEAREST = 5
_TEMPERATURE = 0.07
_CONTRAST, _MASK = 0.6, 0.4
_MARGIN = 0.1


class AttendingAdapter(nn.Module):
    """(n, length, width) → the same: down, attention with a residual, up; ``mask`` tells which tokens count."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.down, self.up = nn.Linear(width, _NARROW), nn.Linear(_NARROW, width)
        self.attention = nn.MultiheadAttention(_NARROW, _HEADS, batch_first=True)
        nn.init.zeros_(self.up.weight)
        nn.init.zeros_(self.up.bias)
        self.mask: torch.Tensor | None = None

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        narrow = self.down(tokens.flatten(1, -2))
        hidden = None if self.mask is None else ~self.mask
        attended, _ = self.attention(narrow, narrow, narrow, key_padding_mask=hidden, need_weights=False)
        widened: torch.Tensor = self.up(attended + narrow)
        return widened.view(tokens.shape)


class FgvlaEncoder(MethodEncoder):
    """Frozen towers with adapters; in training a row holds the whole and all its parts."""

    method = "fgvla"
    per_token = MethodEncoder.per_token | {"nouns"}

    def __init__(self, base: DualEncoder, options: dict[str, Any]) -> None:
        super().__init__(base, options)
        towers = placed(base, "FGVLA")
        freeze(base, towers.heads())
        self.dim = 2 * base.dim + 2
        self._nouns = NounTokens(base)
        place, word = towers.new_place_head(), towers.new_word_head()
        if not towers.heads():  # CLIP's own projections, which stay as well
            freeze(place, [])
            freeze(word, [])
        self.head = nn.ModuleDict({"place": place, "word": word, "image": nn.ModuleList(), "text": nn.ModuleList()})
        for name, (_, blocks) in (("image", towers.image_entry_and_blocks()), ("text", towers.text_entry_and_blocks())):
            spots = [spot_of(block) for block in blocks]
            for spot in spots[options["first"] :] if name == "image" else spots:
                self._attach(name, spot)

    def _attach(self, name: str, spot: Spot) -> None:
        adapter = AttendingAdapter(spot.width)
        adapters = self.head[name]
        assert isinstance(adapters, nn.ModuleList)
        adapters.append(adapter)
        AdapterBeside(adapter, spot, tapped=False)

    def train(self, mode: bool = True) -> FgvlaEncoder:
        super().train(mode)
        self.base.eval()
        return self

    def tokenize(self, texts: Sequence[str]) -> dict[str, torch.Tensor]:
        tokens = self.base.tokenize(texts)
        return tokens | {"nouns": self._nouns.mask(texts, tokens["input_ids"].shape[1])}

    def image_features(self, pixels: torch.Tensor) -> torch.Tensor:
        whole, parts = self._image(pixels)
        return _row(whole, parts.rows.mean(1), first=True)

    def text_features(self, tokens: dict[str, torch.Tensor]) -> torch.Tensor:
        whole, parts = self._text(tokens)
        weight = parts.mask[..., None].to(parts.rows.dtype)
        return _row(whole, (parts.rows * weight).sum(1) / weight.sum(1).clamp(min=1), first=False)

    def image_outputs(self, pixels: torch.Tensor) -> torch.Tensor:
        whole, parts = self._image(pixels)
        return torch.cat([whole, parts.rows.flatten(1)], -1)

    def text_outputs(self, tokens: dict[str, torch.Tensor]) -> torch.Tensor:
        whole, parts = self._text(tokens)
        return torch.cat([whole, parts.mask.to(whole.dtype), parts.rows.flatten(1)], -1)

    def _image(self, pixels: torch.Tensor) -> tuple[torch.Tensor, Places]:
        towers = placed(self.base, "FGVLA")
        places = towers.image_places(pixels)
        parts = normalize(self.head["place"](places.rows).float(), dim=-1)
        return towers.image_features(pixels), Places(parts, places.mask)

    def _text(self, tokens: dict[str, torch.Tensor]) -> tuple[torch.Tensor, Places]:
        towers = placed(self.base, "FGVLA")
        known = {name: ids for name, ids in tokens.items() if name != "nouns"}
        counted = towers.word_mask(known)
        for adapter in self.head["text"].children():
            assert isinstance(adapter, AttendingAdapter)
            adapter.mask = counted
        words = towers.text_places(known)
        parts = normalize(self.head["word"](words.rows).float(), dim=-1)
        return towers.text_features(known), Places(parts, tokens["nouns"].bool() & counted)


def _row(whole: torch.Tensor, part: torch.Tensor, *, first: bool) -> torch.Tensor:
    """A unit row whose inner products with rows of the other side are 0.9 wholes and 0.1 parts.

    What is missing to unit length has a place of its own on each side, where the other side is 0.
    """
    weighted = torch.cat([_WHOLE**0.5 * whole, (1 - _WHOLE) ** 0.5 * part], -1)
    missing = (1 - weighted.square().sum(-1, keepdim=True)).clamp(min=0).sqrt()
    nothing = torch.zeros_like(missing)
    return torch.cat([weighted, *((missing, nothing) if first else (nothing, missing))], -1)


def fine_loss(places: torch.Tensor, words: torch.Tensor, nouns: torch.Tensor) -> torch.Tensor:
    """Draw each noun (n, length, d) to the five places (n, places, d) of its own picture that are nearest to it.

    ``nouns`` (n, length), bool. The second part makes the same five stand out in the mean over a caption's nouns.
    """
    near = min(_NEAREST, places.shape[1])
    similarity = words @ places.transpose(1, 2)  # (n, length, places)
    drawn = similarity.topk(near, -1).indices
    contrast = -(similarity / _TEMPERATURE).log_softmax(-1).gather(-1, drawn).sum(-1)
    count = nouns.sum(1, keepdim=True).clamp(min=1)
    pooled = (similarity * nouns[..., None]).sum(1) / count
    target = torch.zeros_like(pooled).scatter(-1, pooled.topk(near, -1).indices, 1.0)
    mask = binary_cross_entropy_with_logits(pooled / _TEMPERATURE, target)
    return _CONTRAST * contrast[nouns].mean() + _MASK * mask


class Fgvla(Implementation):
    """Contrast of wholes, hinges of all negatives, and the alignment of parts."""

    def wrap(self, base: DualEncoder, captions: Sequence[Sequence[str]]) -> DualEncoder:
        del captions
        return FgvlaEncoder(base, {"first": first_attending(base)})

    def rebuild(self, base: DualEncoder, options: dict[str, Any]) -> DualEncoder:
        return FgvlaEncoder(base, options)

    def loss(self, batch: Features, lesson: MethodLesson) -> dict[str, torch.Tensor]:
        width = lesson.encoder.dim // 2 - 1
        image, places = batch.image.float()[:, :width], batch.image.float()[:, width:].unflatten(1, (-1, width))
        length = (batch.text.shape[1] - width) // (width + 1)
        text, nouns, words = batch.text.float().split([width, length, length * width], 1)
        similarity = image @ text.T
        scale = lesson.encoder.start_scale  # the logarithm itself, and it stays, as in the authors' code
        return {
            "contrast": info_nce_loss(similarity, scale=scale, ignore=lesson.ignored(batch)),
            "triplet": all_triplets_loss(similarity, margin=_MARGIN, ignore=lesson.ignored(batch)) / 2,
            "fine": fine_loss(places, words.unflatten(1, (length, width)), nouns.bool()),
        }


def first_attending(base: DualEncoder) -> int:
    """The first block of the image tower whose places are few enough to attend to one another."""
    towers = placed(base, "FGVLA")
    _, blocks = towers.image_entry_and_blocks()
    found: list[int] = []

    def count(module: nn.Module, given: Any, made: torch.Tensor) -> None:
        del module, given
        found.append(made.shape[1] if made.ndim == 3 else made[0, 0].numel())

    hooks = [spot_of(block).target.register_forward_hook(count) for block in blocks]
    was_training = base.training
    with torch.no_grad():
        towers.eval().image_pyramid(torch.zeros(1, 3, base.image_size, base.image_size, device=base.device))
    base.train(was_training)
    for hook in hooks:
        hook.remove()
    return next((place for place, count in enumerate(found) if count <= _MOST_PLACES), len(blocks) - 1)


METHOD = Fgvla()
